/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barriers by membarrier(2).
 */
#include "base/barrier.h"

#include "os/shared.h"
#include "os/thread.h"

/* A store leaves the buffer in well under a microsecond, and at once when its
 * thread is interrupted. */
#define LONG_ENOUGH_NS 100000

bool wf_base_barrier_join(void)
{
	return !wf_os_membarrier_join();
}

void wf_base_barrier_all(bool all_joined)
{
	wf_shared_fence(seq_cst);
	if (all_joined && !wf_os_membarrier_all())
		return;
	wf_os_sleep(LONG_ENOUGH_NS);
	wf_shared_fence(seq_cst);
}
