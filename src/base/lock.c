/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock that someone else holds.
 *
 * The holder may wait for this very core, so after a microsecond the processor
 * is given up, by a sleep. sched_yield() would not do: since Linux 6.18 it gives
 * away the rest of a time slice for good, so that a process that calls it in a
 * loop beside busy ones does not run again for seconds.
 */
#include "base/lock.h"

#include <time.h>

/* About a microsecond: longer than any holder needs that is running. */
#define SPINS 100
#define NAP_NS 20000

void wf_base_lock_wait(struct wf_lock *lock)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	for (unsigned int spins = 0; !wf_base_lock_try(lock); spins++) {
		if (spins < SPINS)
			wf_base_cpu_relax();
		else
			nanosleep(&nap, NULL);
	}
}
