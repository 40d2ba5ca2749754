/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes threads that sleep on an object of this process: a queue that another
 * thread fills, a counter that it increments. It has a descriptor that is
 * readable from a ring until it is cleared. Ringing costs nothing while nobody
 * sleeps.
 *
 * A thread that goes to sleep announces it (doze), then checks once more. A
 * thread with news publishes it, then rings. The owner's lock, or a
 * sequentially consistent change of the object, orders the two.
 *
 * Several threads may sleep on one descriptor, each between enter and leave. It
 * stays readable until each thread that slept at the time of the ring has left:
 * otherwise the first to check would clear it, and the others would sleep on.
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

/* Makes it unreadable again, unless a thread sleeps for which it was made
 * readable. */
void wf_op_waker_still(struct wf_waker *waker);

/* The calling thread clears it and will sleep on it: call it before doze. The
 * thread leaves when it has slept or decided not to, with the value that enter
 * returned. */
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
