/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A yield costs a third of a microsecond where nobody else wants the processor,
 * and hands it on at once where other processes poll and yield as well. Beside a
 * process that computes it is a trap: since Linux 6.18 each sched_yield() gives
 * away the rest of a time slice in virtual time, and a process that yields in a
 * loop got so far ahead that it did not run again for 9 s. A sleep gives away
 * nothing. So a yield that took as long as a time slice is followed by sleeps of
 * 10 ms in all.
 *
 * Each of these is longer than the one before. 64 processes that sleep for 50 us
 * at a time take all of two processors for falling asleep and waking up, and in
 * Linux 6.18 such a session or cgroup kept all others, the kernel's own threads
 * among them, from running for up to 107 s.
 */
#include "base/rest.h"

#include "base/clock.h"
#include "os/thread.h"

/* A round through a hundred processes that poll takes less, a time slice more. */
#define SLICE WF_NS_PER_MS
#define NAP_LEAST (50 * WF_NS_PER_US)
/* Naps of NAP_LEAST from one yield to the next. */
#define NAPS 200
/* A program that takes so long from rest to rest does something else, too, and
 * does not sleep for longer than that takes. */
#define BUSY_US 100
/* A thread may go round through many loops, each with a rest of its own. One that
 * is away from here for so long does not make that worse. */
#define AWAY_US 500

static uint32_t now_us(void)
{
	return (uint32_t)(wf_base_clock_ns() / WF_NS_PER_US);
}

/* How long to sleep, in ns, if it was @since us ago that we slept. */
static uint32_t length_of(uint32_t last, uint32_t since)
{
	uint32_t ns = last + last / 2;

	if (since > AWAY_US)
		return 0;
	if (since > BUSY_US && ns > since * WF_NS_PER_US)
		ns = since * WF_NS_PER_US;
	return ns < NAP_LEAST ? NAP_LEAST : ns;
}

static void nap(struct wf_rest *rest, uint32_t naps)
{
	uint32_t last = atomic_load_explicit(&rest->nap, memory_order_relaxed);
	uint32_t since = now_us() - atomic_load_explicit(&rest->woke_us,
							 memory_order_relaxed);
	uint32_t ns = length_of(last, since);
	uint32_t cost = ns > NAP_LEAST ? ns / NAP_LEAST : 1;

	if (cost > naps) {
		cost = naps;
		ns = naps * NAP_LEAST;
	}
	if (ns)
		wf_os_sleep(ns);
	atomic_store_explicit(&rest->naps, naps - cost, memory_order_relaxed);
	atomic_store_explicit(&rest->nap, ns, memory_order_relaxed);
	atomic_store_explicit(&rest->woke_us, now_us(), memory_order_relaxed);
}

void wf_base_rest_begin(struct wf_rest *rest)
{
	atomic_store_explicit(&rest->nap, 0, memory_order_relaxed);
}

void wf_base_rest(struct wf_rest *rest)
{
	uint32_t naps = atomic_load_explicit(&rest->naps, memory_order_relaxed);
	uint64_t begin;

	if (naps) {
		nap(rest, naps);
		return;
	}
	begin = wf_base_clock_ns();
	wf_os_yield();
	if (wf_base_clock_ns() - begin <= SLICE)
		return;
	wf_base_rest_begin(rest);
	atomic_store_explicit(&rest->woke_us, now_us(), memory_order_relaxed);
	atomic_store_explicit(&rest->naps, NAPS, memory_order_relaxed);
}
