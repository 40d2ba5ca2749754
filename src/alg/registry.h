/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which drivers there are, and which one gets a stream: the one that can do
 * exactly what is asked, by priority, then by NUMA distance. Looking takes no
 * lock (a child may be forked at any time); only (un)registration does.
 */
#ifndef WF_ALG_REGISTRY_H
#define WF_ALG_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

struct wf_alg_slot;

struct wf_alg_want {
	unsigned int can; /* all of these WD_COMP_CAN_* */
	int level;	  /* -1: none in particular */
	int window;	  /* for deflate; 0 means 15 */
	int node;	  /* NUMA node + 1, 0: wherever */
	const char *name; /* this driver only; NULL: any */
	bool small; /* rather one that streams: it works without large tables */
	bool local; /* none that works in another process or device */
	uint32_t except; /* bits of slots that failed already */
};

/* A reference to the best driver, or NULL. */
struct wf_alg_slot *wf_alg_registry_get(const struct wf_alg_want *want);
void wf_alg_registry_put(struct wf_alg_slot *slot);
const struct wd_alg_comp *wf_alg_registry_driver(const struct wf_alg_slot *);
/* Another reference to the same. */
struct wf_alg_slot *wf_alg_registry_dup(struct wf_alg_slot *slot);
/* Whether WD_COMP_REPRODUCIBLE asks for output that does not depend on how a
 * stream is cut into calls. */
bool wf_alg_registry_reproducible(void);
/* Its bit in want.except. */
uint32_t wf_alg_registry_bit(const struct wf_alg_slot *slot);

#endif
