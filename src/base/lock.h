/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock that is chosen at creation: real under FI_THREAD_SAFE, nothing where
 * the application promised to serialize. Spins briefly, then yields the
 * processor: the holder may sit on the same core.
 */
#ifndef WF_BASE_LOCK_H
#define WF_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cpu.h"

struct wf_lock {
	atomic_uint held;
	bool real;
};

static inline void wf_base_lock_init(struct wf_lock *lock, bool real)
{
	atomic_init(&lock->held, 0);
	lock->real = real;
}

static inline bool wf_base_lock_try(struct wf_lock *lock)
{
	return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

/* Out of line: callers stay small where there is no lock at all. */
void wf_base_lock_wait(struct wf_lock *lock);

static inline void wf_base_lock_take(struct wf_lock *lock)
{
	if (wf_unlikely(lock->real) && !wf_base_lock_try(lock))
		wf_base_lock_wait(lock);
}

static inline void wf_base_lock_drop(struct wf_lock *lock)
{
	if (wf_unlikely(lock->real))
		atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#endif
