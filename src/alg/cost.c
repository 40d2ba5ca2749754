/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measured costs. If two threads record a job at once, one of them may be lost:
 * the value is a mean of many.
 */
#include "alg/cost.h"

#define KNOWN 8u   /* jobs before a mean is believed */
#define PROBE 64u  /* one job in so many goes to the slower one */
#define LATELY 64u /* jobs of this size: older ones count half, and so on */

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

	/* An improvement counts faster: a single slow job says less, however
	 * slow it was (the process was stopped, or lost its processor). */
	if (now > 3 * old && old)
		now = 3 * old;
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
	return wf_alg_cost_is_probe(first) ? !slower : slower;
}

bool wf_alg_cost_is_probe(struct wf_alg_cost *cost)
{
	return !((atomic_fetch_add_explicit(&cost->turns, 1,
					    memory_order_relaxed) +
		  1) %
		 PROBE);
}

/* -- jobs that overlap ----------------------------------------------------- */

bool wf_alg_cost_is_new(struct wf_alg_cost *cost, const struct wd_comp_job *job)
{
	atomic_uint *tried = &cost->of[kind_of(job)][size_of(job)].tried;

	if (atomic_load_explicit(tried, memory_order_relaxed) >= KNOWN)
		return false;
	atomic_fetch_add_explicit(tried, 1, memory_order_relaxed);
	return true;
}

/*
 * Alone it takes what jobs alone took. Behind others it has to wait until the
 * driver has worked through them, at the rate that it has while it is busy: a
 * driver that does many at once has a good rate and a long time for each.
 */
uint64_t wf_alg_cost_expect(struct wf_alg_cost *cost,
			    const struct wd_comp_job *job)
{
	unsigned int kind = kind_of(job), size = size_of(job);
	uint64_t bytes = atomic_load_explicit(&cost->of[kind][size].added_bytes,
					      memory_order_relaxed);
	double alone, rate;

	if (!bytes)
		return UINT64_MAX;
	alone = (double)atomic_load_explicit(&cost->of[kind][size].ns_per_kib,
					     memory_order_relaxed) *
		(double)job->src_len / 1024;
	rate = (double)atomic_load_explicit(&cost->of[kind][size].added_ns,
					    memory_order_relaxed) /
	       (double)bytes;
	return (uint64_t)(alone +
			  rate * (double)atomic_load_explicit(
					 &cost->backlog, memory_order_relaxed));
}

struct wf_alg_start wf_alg_cost_begin(struct wf_alg_cost *cost,
				      const struct wd_comp_job *job,
				      uint64_t now)
{
	return (struct wf_alg_start){
		.at = now,
		.alone = !atomic_fetch_add(&cost->backlog, job->src_len),
	};
}

void wf_alg_cost_end(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		     struct wf_alg_start start, bool good, uint64_t now)
{
	unsigned int kind = kind_of(job), size = size_of(job);
	uint64_t len = job->src_len | 1;
	uint64_t last = atomic_exchange(&cost->last, now), bytes, ns;

	atomic_fetch_sub(&cost->backlog, job->src_len);
	if (!good)
		return;
	ns = atomic_load_explicit(&cost->of[kind][size].ns_per_kib,
				  memory_order_relaxed);
	if (start.alone || !ns || (now - start.at) * 1024 / len < ns)
		wf_alg_cost_note(cost, job, now - start.at);
	/* What it added: the driver was busy with others before that. */
	if (last < start.at)
		last = start.at;
	ns = now > last ? now - last : 0;
	bytes = atomic_load_explicit(&cost->of[kind][size].added_bytes,
				     memory_order_relaxed);
	ns += atomic_load_explicit(&cost->of[kind][size].added_ns,
				   memory_order_relaxed);
	bytes += len;
	if (bytes > LATELY * len) {
		bytes /= 2;
		ns /= 2;
	}
	atomic_store_explicit(&cost->of[kind][size].added_ns, ns,
			      memory_order_relaxed);
	atomic_store_explicit(&cost->of[kind][size].added_bytes, bytes,
			      memory_order_relaxed);
}
