/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drivers, and the choice of one for a stream: the driver that can do
 * exactly what is requested, by priority, then by NUMA distance. A search takes
 * no lock (a child may be forked at any time); only (un)registration does.
 */
#ifndef WF_ALG_REGISTRY_H
#define WF_ALG_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

#include "alg/cost.h"
#include "alg/stats.h"

/* Drivers at a time: bits of want.except. */
#define WF_ALG_SLOTS 32

struct wf_alg_slot;

struct wf_alg_want {
	unsigned int can; /* all of these WD_COMP_CAN_* */
	int level;	  /* -1: none in particular */
	int window;	  /* for deflate; 0 means 15 */
	int node;	  /* NUMA node + 1, 0: wherever */
	const char *name; /* this driver only; NULL: any */
	bool small; /* rather one that streams: it works without large tables */
	bool local; /* none that asks a device process: this is one */
	uint32_t except; /* bits of slots that failed already */
	/* The application's channel: only a driver that knows its device. */
	struct wd_chan *ch;
};

/* A reference to the best driver, or NULL. */
struct wf_alg_slot *wf_alg_registry_get(const struct wf_alg_want *want);
void wf_alg_registry_put(struct wf_alg_slot *slot);

/* The driver that wf_alg_registry_get() would find, without a reference to it.
 * Use these members only, which are never freed, and not the driver itself. */
struct wf_alg_seen {
	const struct wd_alg_comp *driver;
	struct wf_alg_cost *cost;
	struct wf_alg_stats *stats;
	uint32_t bit;
};
bool wf_alg_registry_look(const struct wf_alg_want *want,
			  struct wf_alg_seen *seen);
/* Its table as a library of this version defines it: members that the driver
 * does not have are 0. It is never freed. */
const struct wd_alg_comp *wf_alg_registry_driver(const struct wf_alg_slot *);
/* The driver has returned an impossible result: it is reported with @why, a
 * constant, and not used again. */
void wf_alg_registry_distrust(struct wf_alg_slot *slot, const char *why);
/* How long jobs of the driver took. */
struct wf_alg_cost *wf_alg_registry_cost(const struct wf_alg_slot *slot);
/* Returns the counters of the driver's work, for `weft stat`. */
struct wf_alg_stats *wf_alg_registry_stats(const struct wf_alg_slot *slot);
/* In a forked child: the jobs under way are the parent's. */
void wf_alg_registry_forked(void);
/* Whether WD_COMP_DRIVER names it. */
bool wf_alg_registry_is_preferred(const struct wd_alg_comp *driver);
/* Takes another reference to the driver in @slot. */
struct wf_alg_slot *wf_alg_registry_dup(struct wf_alg_slot *slot);
/* Whether WD_COMP_REPRODUCIBLE asks for output that does not depend on how a
 * stream is cut into calls. */
bool wf_alg_registry_reproducible(void);
/* Whether any driver knows the device of this channel. */
bool wf_alg_registry_drives(const struct wd_chan *ch);
/* The number of a slot, and its bit in want.except. */
unsigned int wf_alg_registry_index(const struct wf_alg_slot *slot);
uint32_t wf_alg_registry_bit(const struct wf_alg_slot *slot);
/* As wd_alg_comp_register(), for a plug-in: @from is its file, and stays; @node is
 * that of its device, -1 if none is known. Only while the plug-ins are loaded. */
int wf_alg_registry_plug(const struct wd_alg_comp *driver, const char *from,
			 int node);

/* This is known of a driver, for `weft info`. */
struct wf_alg_known {
	const struct wd_alg_comp *driver;
	const char *from; /* "built in", "program", or a file */
	const char *bad;  /* why it is not asked any more; NULL: it is */
};

/* The Nth that was ever registered and still is; false if there are no more. */
bool wf_alg_registry_known(unsigned int n, struct wf_alg_known *known);
/* Whether WD_COMP_CONSIDER names it: it comes before all others, and if it has
 * channels cost decides. */
bool wf_alg_registry_is_considered(const char *name);
/* WD_COMP_DRIVER, or NULL. */
const char *wf_alg_registry_preferred(void);

#endif
