/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The core of an endpoint: the part that its transports share. It owns the
 * lock, the clock, the descriptors, routing, progress, sleep and closing. It
 * knows transports only by their table (transport/transport.h). Every caller
 * has entered the core, except callers of the functions that open and close it.
 */
#ifndef WF_CORE_CORE_H
#define WF_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/rest.h"
#include "base/trace.h"
#include "core/report.h"
#include "op/tx.h"
#include "transport/host.h"
#include "transport/transport.h"

#define WF_CORE_WAYS 2

/* Whether a thread that polls shall rest (base/rest.h). */
enum wf_core_rest {
	WF_CORE_REST_NO,
	WF_CORE_REST_ON,   /* and go on with the row of sleeps */
	WF_CORE_REST_ANEW, /* something came before: its first sleeps are short */
};

struct wf_core {
	/* The endpoint's lock, which covers its receives as well: own_lock, or
	 * that of the core it shares them with. It is there before the core is
	 * opened and after it is closed. */
	struct wf_lock *lock;
	struct wf_host host;
	/* In the order in which they are asked for an address. */
	struct wf_way ways[WF_CORE_WAYS];
	uint32_t way_count;
	uint32_t route_count;
	uint8_t *routes;     /* number of the way + 1 by name; 0: not known */
	uint64_t names_seen; /* of host.names.changes */
	struct wf_rest rest;
	/* Nothing came for a while, and how often that began to be so; changed
	 * with the lock. */
	bool rest_due;
	uint32_t rest_row;
	struct wf_lock own_lock;
	struct wf_report report;
	struct wf_trace trace;
};

/* The first call. @threads: several may enter at once, and the lock is a real
 * one. */
void wf_core_init(struct wf_core *core, bool threads);

/* @core receives messages for receives of @other, under its lock. Call it
 * before the core is opened. */
static inline void wf_core_share(struct wf_core *core, struct wf_core *other)
{
	core->lock = &other->own_lock;
}

static inline void wf_core_enter(struct wf_core *core)
{
	wf_base_lock_take(core->lock);
}

static inline void wf_core_leave(struct wf_core *core)
{
	wf_base_lock_drop(core->lock);
}

/* Whether entering may have to wait. */
static inline bool wf_core_has_threads(const struct wf_core *core)
{
	return core->lock->real;
}

/* Whether the polling thread should rest after it has dropped the lock. *@row is
 * the last row of sleeps that the caller has begun: there may be several callers,
 * and each has a row of its own. Lock held. */
static inline enum wf_core_rest wf_core_take_rest(struct wf_core *core,
						  uint32_t *row)
{
	if (wf_likely(!core->rest_due))
		return WF_CORE_REST_NO;
	core->rest_due = false;
	/* Something has come since. */
	if (!core->host.quiet_ticks)
		return WF_CORE_REST_NO;
	core->host.rested = true;
	core->host.polls = WF_HOST_POLLS_PER_CLOCK - 1;
	if (*row == core->rest_row)
		return WF_CORE_REST_ON;
	*row = core->rest_row;
	return WF_CORE_REST_ANEW;
}

/* Fills in @core for a host whose queues, names, registrations, address and
 * depth are set; opens the loop. 0 or -errno. */
int wf_core_open(struct wf_core *core, const struct wf_host *host);

/* The next way; the caller opens its transport with it. */
struct wf_way *wf_core_add(struct wf_core *core, const struct wf_transport *ops,
			   void *self);

/* Lingers, then closes the transports and the loop. */
void wf_core_close(struct wf_core *core);

/* In a forked child. Async-signal-safe. */
void wf_core_forked(struct wf_core *core);

/* -- route.c -- */

/* Sends @tx by the transport for @dst. 0, -EAGAIN or -errno. */
int wf_core_submit(struct wf_core *core, uint64_t dst, const struct wf_tx *tx);

/* The AV or the registrations changed. */
void wf_core_inserted(struct wf_core *core, uint64_t name,
		      const struct wf_addr *addr);
void wf_core_removed(struct wf_core *core, uint64_t name);
void wf_core_unregistered(struct wf_core *core, uint64_t key);

/* Other processes can change the names of a shared AV: checks whether they
 * have. Only if host.names.changes is set. */
void wf_core_follow(struct wf_core *core);

/* -- progress.c -- */

/* Everything that progress may have to do. */
void wf_core_progress(struct wf_core *core);

/* One poll in WF_HOST_POLLS_PER_CLOCK, or more of them if polls are slow or rare:
 * looks at the clock, and if it is time, at the descriptors. */
void wf_core_tick(struct wf_core *core);

/* Whether nothing came for so long that the processor is offered to others. */
bool wf_core_is_quiet(const struct wf_core *core);

/* Looks at the descriptors. */
void wf_core_look(struct wf_core *core, uint64_t now);

/* -- sleep.c -- */

/* True: there is nothing to do, and a thread that waits for the loop will miss
 * nothing. False: make progress. */
bool wf_core_sleep(struct wf_core *core);

/* Ends what wf_core_sleep() began. Progress calls it. */
void wf_core_wake(struct wf_core *core);

/* -- linger.c -- */

/* Injected operations have no completion that the application could wait for.
 * Those that are pending when the endpoint is closed get some time. */
void wf_core_linger(struct wf_core *core);

#endif
