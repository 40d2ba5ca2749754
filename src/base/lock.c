/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock that someone else holds: spin, then sleep.
 *
 * The holder may wait for this very processor, so it is given up after a
 * microsecond. sched_yield() would not do. Under SCHED_FIFO and SCHED_RR it
 * does not let a holder of lower priority run. And since Linux 6.18 it gives
 * away the rest of a time slice for good, so that a process that calls it in a
 * loop beside busy ones does not run again for seconds.
 */
#include "base/lock.h"

#include <stddef.h>

#include "os/thread.h"

/* About a microsecond: longer than any holder needs that is running. */
#define SPINS 100

/* wf_base_lock_drop() runs no fence, so it may miss a waiter that goes to sleep
 * at that very moment. So each waiter looks again after this time. */
#define SLEEP_NS 100000

static void sleep_until_taken(struct wf_lock *lock)
{
	atomic_fetch_add(&lock->waiters, 1);
	while (!wf_base_lock_try(lock))
		wf_os_futex_wait(&lock->held, 1, SLEEP_NS);
	atomic_fetch_sub(&lock->waiters, 1);
}

void wf_base_lock_wait(struct wf_lock *lock)
{
	for (int i = 0; i < SPINS; i++) {
		if (wf_base_lock_try(lock))
			return;
		wf_base_cpu_relax();
	}
	sleep_until_taken(lock);
}

/* The next holder may free the memory of the lock before the second call. That
 * call then wakes nobody: it does not read the lock. */
void wf_base_lock_wake(struct wf_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
	wf_os_futex_wake(&lock->held, 1);
}
