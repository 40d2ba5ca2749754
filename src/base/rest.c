/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A yield costs a third of a microsecond where nobody else wants the processor,
 * and hands it on at once where other processes poll and yield as well. Beside a
 * process that computes it is a trap: since Linux 6.18 each sched_yield() gives
 * away the rest of a time slice in virtual time, and a process that yields in a
 * loop got so far ahead that it did not run again for 9 s. A sleep gives away
 * nothing. So a yield that took as long as a time slice is followed by sleeps.
 */
#include "base/rest.h"

#include "base/clock.h"
#include "os/thread.h"

/* A round through a hundred processes that poll takes less, a time slice more. */
#define SLICE WF_NS_PER_MS
#define NAP_NS 50000
#define NAPS 200

void wf_base_rest(struct wf_rest *rest)
{
	unsigned int naps =
		atomic_load_explicit(&rest->naps, memory_order_relaxed);
	uint64_t begin;

	if (naps) {
		atomic_store_explicit(&rest->naps, naps - 1,
				      memory_order_relaxed);
		wf_os_sleep(NAP_NS);
		return;
	}
	begin = wf_base_clock_ns();
	wf_os_yield();
	if (wf_base_clock_ns() - begin > SLICE)
		atomic_store_explicit(&rest->naps, NAPS, memory_order_relaxed);
}
