/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A yield costs a third of a microsecond where nobody else wants the processor,
 * and hands it on at once where other processes poll and yield as well. Beside a
 * process that computes it is a trap: since Linux 6.18 each sched_yield() gives
 * away the rest of a time slice in virtual time, and a process that yields in a
 * loop got so far ahead that it did not run again for 9 s. A sleep gives away
 * nothing. So a yield that took as long as a time slice is followed by sleeps,
 * and so are yields in which others ran for long.
 *
 * Sleeps must become longer while nothing happens. 64 processes that sleep for
 * 50 us at a time take all of two processors for falling asleep and waking up,
 * and in Linux 6.18 such a session or cgroup kept all others, the kernel's own
 * threads among them, from running for up to 107 s.
 */
#include "base/rest.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "os/thread.h"

/* A round through a hundred processes that poll takes less, a time slice more. */
#define SLICE WF_NS_PER_MS
/* In a shorter yield nobody else ran. */
#define ALONE (20 * WF_NS_PER_US)
/* For so long others run in our yields before we sleep. */
#define ENOUGH (10 * WF_NS_PER_MS)
#define NAP_LEAST (50 * WF_NS_PER_US)
#define NAP_MOST (4 * WF_NS_PER_MS)
#define NAPS 200

/* A thread may go round through many loops, each with a rest of its own. One that
 * is away from here for longer does not make that worse by long sleeps. */
#define ROUND_MOST (500 * WF_NS_PER_US)

static uint32_t now_us(void)
{
	return (uint32_t)(wf_base_clock_ns() / WF_NS_PER_US);
}

static void nap(struct wf_rest *rest)
{
	uint32_t ns = atomic_load_explicit(&rest->nap, memory_order_relaxed);
	uint32_t since = now_us() - atomic_load_explicit(&rest->woke_us,
							 memory_order_relaxed);

	if (since > ROUND_MOST / WF_NS_PER_US) {
		ns = 0;
	} else {
		ns = ns < NAP_LEAST ? NAP_LEAST : ns;
		wf_os_sleep(ns);
		ns += ns / 2;
	}
	atomic_store_explicit(&rest->nap, ns < NAP_MOST ? ns : NAP_MOST,
			      memory_order_relaxed);
	atomic_store_explicit(&rest->woke_us, now_us(), memory_order_relaxed);
}

/* How long others ran in yields, one after the other. */
static void note_yield(struct wf_rest *rest, uint64_t took)
{
	uint32_t away = atomic_load_explicit(&rest->away, memory_order_relaxed);

	if (took < ALONE) {
		if (wf_unlikely(away))
			wf_base_rest_begin(rest);
		return;
	}
	if (took > SLICE || away + took > ENOUGH) {
		away = 0;
		atomic_store_explicit(&rest->naps, NAPS, memory_order_relaxed);
	} else {
		away += took;
	}
	atomic_store_explicit(&rest->away, away, memory_order_relaxed);
}

void wf_base_rest_begin(struct wf_rest *rest)
{
	atomic_store_explicit(&rest->nap, 0, memory_order_relaxed);
	atomic_store_explicit(&rest->away, 0, memory_order_relaxed);
}

void wf_base_rest(struct wf_rest *rest)
{
	unsigned int naps =
		atomic_load_explicit(&rest->naps, memory_order_relaxed);
	uint64_t begin;

	if (naps) {
		atomic_store_explicit(&rest->naps, naps - 1,
				      memory_order_relaxed);
		nap(rest);
		return;
	}
	begin = wf_base_clock_ns();
	wf_os_yield();
	note_yield(rest, wf_base_clock_ns() - begin);
}
