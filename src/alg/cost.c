/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measured costs. If two threads record a job at once, one of them may be lost:
 * the value is a mean of many.
 */
#include "alg/cost.h"

#include <stdbool.h>

#define KNOWN 8u  /* jobs before a mean is believed */
#define PROBE 64u /* one job in so many goes to the slower one */

static unsigned int kind_of(const struct wd_comp_job *job)
{
	if (job->inflate)
		return 0;
	return job->level > 0 && job->level < WF_ALG_COST_KINDS ?
		       (unsigned int)job->level :
		       1;
}

static unsigned int size_of(const struct wd_comp_job *job)
{
	uint64_t len = job->src_len | 1;
	unsigned int size = (63 - (unsigned int)__builtin_clzll(len)) / 2;

	return size < WF_ALG_COST_SIZES ? size : WF_ALG_COST_SIZES - 1;
}

void wf_alg_cost_note(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		      uint64_t ns)
{
	unsigned int kind = kind_of(job), size = size_of(job);
	uint64_t now = ns * 1024 / (job->src_len | 1);
	uint64_t old = atomic_load_explicit(&cost->of[kind][size].ns_per_kib,
					    memory_order_relaxed);

	/* An improvement counts faster: a single slow job says less. */
	if (!atomic_fetch_add_explicit(&cost->of[kind][size].jobs, 1,
				       memory_order_relaxed))
		old = now;
	else if (now < old)
		old -= (old - now) / 2;
	else
		old += (now - old) / 8;
	atomic_store_explicit(&cost->of[kind][size].ns_per_kib, old,
			      memory_order_relaxed);
}

static bool is_known(const struct wf_alg_cost *cost, unsigned int kind,
		     unsigned int size)
{
	return atomic_load_explicit(&cost->of[kind][size].jobs,
				    memory_order_relaxed) >= KNOWN;
}

int wf_alg_cost_prefers_next(struct wf_alg_cost *first,
			     struct wf_alg_cost *next,
			     const struct wd_comp_job *job)
{
	unsigned int kind = kind_of(job), size = size_of(job);
	bool slower;

	if (!is_known(first, kind, size))
		return 0;
	if (!is_known(next, kind, size))
		return 1;
	slower = atomic_load_explicit(&first->of[kind][size].ns_per_kib,
				      memory_order_relaxed) >
		 atomic_load_explicit(&next->of[kind][size].ns_per_kib,
				      memory_order_relaxed);
	if (!((atomic_fetch_add_explicit(&first->turns, 1,
					 memory_order_relaxed) +
	       1) %
	      PROBE))
		return !slower;
	return slower;
}
