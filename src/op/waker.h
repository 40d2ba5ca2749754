/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes who sleeps on something of this process: a queue that another thread
 * fills, a counter it counts. A descriptor that is readable from the ring on
 * until it is stilled. Ringing costs nothing while nobody sleeps.
 *
 * Whoever goes to sleep says so (doze), then looks once more; whoever has
 * something new shows it, then rings. The owner's lock, or a sequentially
 * consistent change of what is looked at, orders the two.
 */
#ifndef WF_OP_WAKER_H
#define WF_OP_WAKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"

struct wf_waker {
	atomic_bool asleep;
	int fd; /* eventfd; -1: nobody can sleep here */
};

#define WF_WAKER_NONE                                                          \
	{                                                                      \
		.fd = -1                                                       \
	}

/* 0 or -errno. */
int wf_op_waker_open(struct wf_waker *waker);
void wf_op_waker_close(struct wf_waker *waker);

/* Makes the descriptor readable, whether or not somebody sleeps. */
void wf_op_waker_wake(struct wf_waker *waker);

/* Makes it unreadable again. */
void wf_op_waker_still(struct wf_waker *waker);

static inline void wf_op_waker_doze(struct wf_waker *waker)
{
	atomic_store(&waker->asleep, true);
}

static inline void wf_op_waker_ring(struct wf_waker *waker)
{
	if (wf_unlikely(
		    atomic_load_explicit(&waker->asleep, memory_order_relaxed)))
		wf_op_waker_wake(waker);
}

#endif
