/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock that someone else holds: spin, then yield, then sleep.
 */
#include "base/lock.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About a microsecond: longer than any holder needs that is running. */
#define SPINS 100

/* A holder that shares the CPU gets there by these, unless its priority is
 * lower under SCHED_FIFO or SCHED_RR: it runs only once we sleep. */
#define YIELDS 50

/* wf_base_lock_drop() runs no fence, so that it may miss a waiter that goes to
 * sleep at that very moment: it looks again by itself. */
#define SLEEP_NS 1000000

static long futex(struct wf_lock *lock, int op, unsigned int value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, &lock->held, op | FUTEX_PRIVATE_FLAG, value,
		       timeout, NULL, 0);
}

static void sleep_until_taken(struct wf_lock *lock)
{
	const struct timespec timeout = { .tv_nsec = SLEEP_NS };

	atomic_fetch_add(&lock->waiters, 1);
	while (!wf_base_lock_try(lock))
		futex(lock, FUTEX_WAIT, 1, &timeout);
	atomic_fetch_sub(&lock->waiters, 1);
}

void wf_base_lock_wait(struct wf_lock *lock)
{
	for (int i = 0; i < SPINS + YIELDS; i++) {
		if (wf_base_lock_try(lock))
			return;
		if (i < SPINS)
			wf_base_cpu_relax();
		else
			sched_yield();
	}
	sleep_until_taken(lock);
}

/* The next holder may free what the lock is part of: the wake then is for an
 * address only. */
void wf_base_lock_wake(struct wf_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
	futex(lock, FUTEX_WAKE, 1, NULL);
}
