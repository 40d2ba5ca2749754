/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock whose kind is chosen at creation: a real one if several threads may
 * use it, none if the application promised to serialize. A waiter spins
 * briefly, then sleeps, because the holder may need the same processor
 * (lock.c). Without waiters, taking the lock is one atomic exchange and
 * dropping it a store.
 */
#ifndef WF_BASE_LOCK_H
#define WF_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"

struct wf_lock {
	atomic_uint held;
	bool real;
	atomic_uint waiters; /* that sleep, or are about to */
};

static inline void wf_base_lock_init(struct wf_lock *lock, bool real)
{
	atomic_init(&lock->held, 0);
	atomic_init(&lock->waiters, 0);
	lock->real = real;
}

static inline bool wf_base_lock_try(struct wf_lock *lock)
{
	return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

/* Out of line: callers stay small where there is no lock at all. The second
 * drops the lock. */
__attribute__((cold)) void wf_base_lock_wait(struct wf_lock *lock);
__attribute__((cold)) void wf_base_lock_wake(struct wf_lock *lock);

static inline void wf_base_lock_take(struct wf_lock *lock)
{
	if (wf_unlikely(lock->real) && !wf_base_lock_try(lock))
		wf_base_lock_wait(lock);
}

static inline void wf_base_lock_drop(struct wf_lock *lock)
{
	if (wf_likely(!lock->real))
		return;
	if (wf_unlikely(
		    atomic_load_explicit(&lock->waiters, memory_order_relaxed)))
		wf_base_lock_wake(lock);
	else
		atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#endif
