/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a lock that someone else holds.
 */
#include "base/lock.h"

#include <sched.h>

/* About a microsecond: longer than any holder needs that is running. */
#define SPINS 100

void wf_base_lock_wait(struct wf_lock *lock)
{
	for (unsigned int spins = 0; !wf_base_lock_try(lock); spins++) {
		if (spins < SPINS)
			wf_base_cpu_relax();
		else
			sched_yield();
	}
}
