/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes who sleeps on something of this process: a queue that another thread
 * fills, a counter it counts. A descriptor that is readable from the ring on
 * until it is stilled. Ringing costs nothing while nobody sleeps.
 *
 * Whoever goes to sleep says so (doze), then looks once more; whoever has
 * something new shows it, then rings. The owner's lock, or a sequentially
 * consistent change of what is looked at, orders the two.
 *
 * Several threads may sleep on one descriptor, each between enter and leave. It
 * stays readable until each of those that slept when it was rung has left:
 * otherwise the first to look would still it, and the others would sleep on.
 */
#ifndef WF_OP_WAKER_H
#define WF_OP_WAKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <stdint.h>

#include "base/cpu.h"
#include "base/lock.h"

struct wf_waker {
	atomic_bool asleep; /* ring, please */
	int fd;		    /* eventfd; -1: nobody can sleep here */
	/* Comes after every other lock, and covers what follows. */
	struct wf_lock lock;
	uint32_t rings;	   /* so far, free-running */
	uint32_t sleepers; /* threads between enter and leave ... */
	uint32_t rung;	   /* ... that entered before the last ring */
};

#define WF_WAKER_NONE                                                          \
	{                                                                      \
		.fd = -1                                                       \
	}

/* @threads: more than one may come. 0 or -errno. */
int wf_op_waker_open(struct wf_waker *waker, bool threads);
void wf_op_waker_close(struct wf_waker *waker);

/* In a child of fork(): the other threads do not exist here. */
void wf_op_waker_forked(struct wf_waker *waker);

/* Makes the descriptor readable, whether or not somebody sleeps. */
void wf_op_waker_wake(struct wf_waker *waker);

/* Makes it unreadable again, unless a thread sleeps that it was made readable
 * for. */
void wf_op_waker_still(struct wf_waker *waker);

/* The calling thread stills it and will sleep on it: before it dozes. Leaves
 * when it has slept or decided otherwise, with what enter returned. */
uint32_t wf_op_waker_enter(struct wf_waker *waker);
void wf_op_waker_leave(struct wf_waker *waker, uint32_t entered);

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
