/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barriers by membarrier(2).
 */
#include "base/barrier.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A store leaves the buffer in well under a microsecond, and at once when its
 * thread is interrupted. */
#define LONG_ENOUGH_NS 100000

static int membarrier(int command)
{
	return (int)syscall(__NR_membarrier, command, 0, 0);
}

bool wf_base_barrier_join(void)
{
	return !membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

void wf_base_barrier_all(bool all_joined)
{
	const struct timespec nap = { .tv_nsec = LONG_ENOUGH_NS };

	atomic_thread_fence(memory_order_seq_cst);
	if (all_joined && !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		return;
	nanosleep(&nap, NULL);
	atomic_thread_fence(memory_order_seq_cst);
}
