/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping without losing a doorbell. One word in shared memory says that a
 * side is about to sleep; the other looks at it after it has published
 * something and only then pays for a system call. Owns no descriptor: how to
 * wake (eventfd, futex) is the caller's.
 *
 *   sleeper   arm, look for work once more, sleep, disarm
 *   waker     publish, then if (needed) wake
 *
 * Both sides have a full fence between their store and their load, so one of
 * them sees the other.
 */
#ifndef WF_QUEUE_WAKE_H
#define WF_QUEUE_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline void wf_queue_wake_arm(_Atomic uint32_t *asleep)
{
	atomic_store_explicit(asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void wf_queue_wake_disarm(_Atomic uint32_t *asleep)
{
	atomic_store_explicit(asleep, 0, memory_order_relaxed);
}

/* True for one waker per arming. A hostile word costs wake-ups and nothing
 * else. */
static inline bool wf_queue_wake_needed(_Atomic uint32_t *asleep)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(asleep, memory_order_relaxed) &&
	       atomic_exchange_explicit(asleep, 0, memory_order_relaxed);
}

#endif
