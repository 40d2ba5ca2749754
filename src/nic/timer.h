/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers in a heap, the soonest first. Moving one to a later time costs nothing
 * until its old time has come: most are moved on with every packet and never
 * run out.
 */
#ifndef WF_NIC_TIMER_H
#define WF_NIC_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define WF_NIC_TIMER_NONE UINT32_MAX

struct wf_nic_timer {
	uint64_t due; /* UINT64_MAX: never */
	uint64_t key; /* its place in the heap is by this, never later */
	uint32_t at;  /* in the heap; WF_NIC_TIMER_NONE: not there */
};

struct wf_nic_timers {
	struct wf_nic_timer **heap;
	uint32_t count;
	uint32_t room;
};

static inline void wf_nic_timer_init(struct wf_nic_timer *timer)
{
	timer->due = UINT64_MAX;
	timer->at = WF_NIC_TIMER_NONE;
}

/* Room for @count timers, so that setting one of them never fails. -ENOMEM. */
int wf_nic_timers_room(struct wf_nic_timers *timers, uint32_t count);
void wf_nic_timers_fini(struct wf_nic_timers *timers);

void wf_nic_timers_set(struct wf_nic_timers *timers, struct wf_nic_timer *timer,
		       uint64_t due);
/* It is in no heap afterwards. */
void wf_nic_timers_drop(struct wf_nic_timers *timers,
			struct wf_nic_timer *timer);
/* Takes out one that is due; NULL: none is. */
struct wf_nic_timer *wf_nic_timers_take(struct wf_nic_timers *timers,
					uint64_t now);
/* Whether one may be due: its place in the heap says so. */
static inline bool wf_nic_timers_due(const struct wf_nic_timers *timers,
				     uint64_t now)
{
	return timers->count && timers->heap[0]->key <= now;
}

/* When the first is due; UINT64_MAX: none. */
uint64_t wf_nic_timers_next(struct wf_nic_timers *timers);

#endif
