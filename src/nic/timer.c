/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A binary heap of timers that is corrected lazily: a timer that was moved to a
 * later time keeps its place until it comes to the top.
 */
#include "nic/timer.h"

#include <errno.h>
#include <stdlib.h>

int wf_nic_timers_room(struct wf_nic_timers *timers, uint32_t count)
{
	struct wf_nic_timer **heap;

	if (count <= timers->room)
		return 0;
	heap = realloc(timers->heap, count * sizeof(struct wf_nic_timer *));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = count;
	return 0;
}

void wf_nic_timers_fini(struct wf_nic_timers *timers)
{
	free(timers->heap);
	*timers = (struct wf_nic_timers){ .count = 0 };
}

static void put(struct wf_nic_timers *timers, uint32_t at,
		struct wf_nic_timer *timer)
{
	timers->heap[at] = timer;
	timer->at = at;
}

static void rise(struct wf_nic_timers *timers, uint32_t at)
{
	struct wf_nic_timer *timer = timers->heap[at];

	while (at && timers->heap[(at - 1) / 2]->key > timer->key) {
		put(timers, at, timers->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(timers, at, timer);
}

static void sink(struct wf_nic_timers *timers, uint32_t at)
{
	struct wf_nic_timer *timer = timers->heap[at];

	for (;;) {
		uint32_t low = 2 * at + 1;

		if (low >= timers->count)
			break;
		if (low + 1 < timers->count &&
		    timers->heap[low + 1]->key < timers->heap[low]->key)
			low++;
		if (timers->heap[low]->key >= timer->key)
			break;
		put(timers, at, timers->heap[low]);
		at = low;
	}
	put(timers, at, timer);
}

void wf_nic_timers_set(struct wf_nic_timers *timers, struct wf_nic_timer *timer,
		       uint64_t due)
{
	timer->due = due;
	if (timer->at == WF_NIC_TIMER_NONE) {
		if (due == UINT64_MAX)
			return;
		timer->key = due;
		put(timers, timers->count, timer);
		rise(timers, timers->count++);
	} else if (due < timer->key) {
		timer->key = due;
		rise(timers, timer->at);
	}
}

void wf_nic_timers_drop(struct wf_nic_timers *timers,
			struct wf_nic_timer *timer)
{
	uint32_t at = timer->at;

	if (at == WF_NIC_TIMER_NONE)
		return;
	timer->at = WF_NIC_TIMER_NONE;
	if (at == --timers->count)
		return;
	put(timers, at, timers->heap[timers->count]);
	rise(timers, at);
	sink(timers, timers->heap[at]->at);
}

/* Puts the first right until it is the first by its time, too. */
static struct wf_nic_timer *first(struct wf_nic_timers *timers)
{
	while (timers->count) {
		struct wf_nic_timer *timer = timers->heap[0];

		if (timer->key == timer->due)
			return timer;
		if (timer->due == UINT64_MAX) {
			wf_nic_timers_drop(timers, timer);
			continue;
		}
		timer->key = timer->due;
		sink(timers, 0);
	}
	return NULL;
}

struct wf_nic_timer *wf_nic_timers_take(struct wf_nic_timers *timers,
					uint64_t now)
{
	struct wf_nic_timer *timer;

	/* The usual case, and cheap. */
	if (!wf_nic_timers_due(timers, now))
		return NULL;
	timer = first(timers);
	if (!timer || timer->due > now)
		return NULL;
	wf_nic_timers_drop(timers, timer);
	return timer;
}

uint64_t wf_nic_timers_next(struct wf_nic_timers *timers)
{
	const struct wf_nic_timer *timer = first(timers);

	return timer ? timer->due : UINT64_MAX;
}
