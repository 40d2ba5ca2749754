/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measured costs. If two threads record a job at once, one of them may be lost:
 * the value is a mean of many.
 */
#include "alg/cost.h"

#include "base/clock.h"
#include "chan/uacce.h"

#define KNOWN 8u  /* jobs before a mean is believed */
#define PROBE 64u /* a part of the time, for jobs on the slower one */
/* This cost is expected of a driver that has never done such a job. */
#define SLOWEST WF_NS_PER_S
#define SETTLED 16u
#define SMALL_NS (100 * WF_NS_PER_US)
#define FAR 4
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

/* Jobs of a kind and size that this thread need not compare. It is the thread's
 * own: a job that is settled writes to no line that others use. Few, because
 * programs that load us later have little room for such data: kinds and sizes that
 * a program mixes have places of their own most times. */
struct settled {
	uint32_t first; /* see tag_of() */
	uint8_t kind, size;
	uint8_t left; /* jobs to come */
};

#define PLACES 32u

static __thread struct settled settled[PLACES];

/* Which cost it is: they are far less than 256 GiB from each other. */
static uint32_t tag_of(const struct wf_alg_cost *cost)
{
	return (uint32_t)((uintptr_t)cost / 64);
}

/* The entry for jobs like @job, or NULL if other jobs have its place. */
static struct settled *entry_of(const struct wf_alg_cost *first,
				const struct wd_comp_job *job)
{
	unsigned int kind = kind_of(job), size = size_of(job);
	struct settled *s = &settled[(5 * kind + size) % PLACES];

	return s->first == tag_of(first) && s->kind == kind && s->size == size ?
		       s :
		       NULL;
}

static void settle(const struct wf_alg_cost *first,
		   const struct wd_comp_job *job)
{
	unsigned int kind = kind_of(job), size = size_of(job);

	settled[(5 * kind + size) % PLACES] =
		(struct settled){ .first = tag_of(first),
				  .kind = (uint8_t)kind,
				  .size = (uint8_t)size,
				  .left = SETTLED - 1 };
}

unsigned int wf_alg_cost_stands_for(struct wf_alg_cost *first,
				    const struct wd_comp_job *job)
{
	struct settled *s = entry_of(first, job);
	unsigned int jobs = s ? SETTLED - s->left : 1;

	if (s)
		*s = (struct settled){ 0 };
	return jobs;
}

bool wf_alg_cost_is_settled(struct wf_alg_cost *first,
			    const struct wd_comp_job *job)
{
	struct settled *s = entry_of(first, job);

	if (!s || !s->left)
		return false;
	s->left--;
	return true;
}

bool wf_alg_cost_is_far(uint64_t device_ns, uint64_t library_ns,
			uint64_t job_ns)
{
	return device_ns / FAR > library_ns && job_ns < SMALL_NS;
}

/* Where the job's times are, of this thread. */
static struct wf_alg_cell *cell_of(struct wf_alg_cost *cost,
				   const struct wd_comp_job *job)
{
	bool far = cost->node >= 0 && wf_chan_uacce_here() != cost->node;

	return &cost->of[far][kind_of(job)][size_of(job)];
}

static void note(struct wf_alg_cell *cell, const struct wd_comp_job *job,
		 uint64_t ns)
{
	uint64_t now = ns * 1024 / (job->src_len | 1);
	uint64_t old =
		atomic_load_explicit(&cell->ns_per_kib, memory_order_relaxed);

	/* An improvement counts faster: a single slow job says less, however
	 * slow it was (the process was stopped, or lost its processor). */
	if (now > 3 * old && old)
		now = 3 * old;
	if (!atomic_fetch_add_explicit(&cell->jobs, 1, memory_order_relaxed))
		old = now;
	else if (now < old)
		old -= (old - now) / 2;
	else
		old += (now - old) / 8;
	atomic_store_explicit(&cell->ns_per_kib, old, memory_order_relaxed);
}

void wf_alg_cost_note(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		      uint64_t ns)
{
	note(cell_of(cost, job), job, ns);
}

static bool is_known(const struct wf_alg_cell *cell)
{
	return atomic_load_explicit(&cell->jobs, memory_order_relaxed) >= KNOWN;
}

static uint64_t alone_of(const struct wf_alg_cell *cell,
			 const struct wd_comp_job *job)
{
	return (uint64_t)((double)atomic_load_explicit(&cell->ns_per_kib,
						       memory_order_relaxed) *
			  (double)job->src_len / 1024);
}

/* A job goes to the slower driver when the others have taken PROBE times as long
 * as it is expected to take there. */
static bool is_probe(struct wf_alg_cell *cell, uint64_t ns, uint64_t best)
{
	uint64_t most = ns < SLOWEST ? ns : SLOWEST;

	if (atomic_fetch_add_explicit(&cell->elsewhere_ns, best,
				      memory_order_relaxed) +
		    best <
	    PROBE * most)
		return false;
	atomic_store_explicit(&cell->elsewhere_ns, 0, memory_order_relaxed);
	return true;
}

bool wf_alg_cost_is_probe(struct wf_alg_cost *cost,
			  const struct wd_comp_job *job, uint64_t ns,
			  uint64_t best)
{
	return is_probe(cell_of(cost, job), ns, best);
}

int wf_alg_cost_prefers_next(struct wf_alg_cost *first,
			     struct wf_alg_cost *next,
			     const struct wd_comp_job *job, bool settles)
{
	struct wf_alg_cell *a = cell_of(first, job), *b = cell_of(next, job);
	uint64_t a_ns, b_ns;
	unsigned int jobs;
	bool slower;

	if (!is_known(a))
		return 0;
	if (!is_known(b))
		return 1;
	a_ns = alone_of(a, job);
	b_ns = alone_of(b, job);
	slower = a_ns > b_ns;
	jobs = wf_alg_cost_stands_for(first, job);
	settles = settles && wf_alg_cost_is_far(a_ns, b_ns, b_ns);
	if (slower ? is_probe(a, a_ns, b_ns * jobs) : is_probe(b, b_ns, a_ns))
		return !slower;
	if (settles)
		settle(first, job);
	return slower;
}

void wf_alg_cost_settle(struct wf_alg_cost *first, struct wf_alg_cost *best,
			const struct wd_comp_job *job, bool yes)
{
	struct wf_alg_cell *of_best = cell_of(best, job);
	unsigned int weight = yes ? SETTLED : 1;

	/* Most times it is so already: the line stays shared. */
	if (atomic_load_explicit(&of_best->weight, memory_order_relaxed) !=
	    weight)
		atomic_store_explicit(&of_best->weight, weight,
				      memory_order_relaxed);
	if (yes)
		settle(first, job);
}

static unsigned int weight_of(const struct wf_alg_cell *cell)
{
	unsigned int weight =
		atomic_load_explicit(&cell->weight, memory_order_relaxed);

	return weight ? weight : 1;
}

/* -- jobs that overlap ----------------------------------------------------- */

bool wf_alg_cost_is_new(struct wf_alg_cost *cost, const struct wd_comp_job *job)
{
	atomic_uint *tried = &cell_of(cost, job)->tried;

	if (atomic_load_explicit(tried, memory_order_relaxed) >= KNOWN)
		return false;
	atomic_fetch_add_explicit(tried, 1, memory_order_relaxed);
	return true;
}

/* For a byte, while the driver is busy; 0 if nothing is known. */
static double rate_of(const struct wf_alg_cell *cell)
{
	uint64_t bytes =
		atomic_load_explicit(&cell->added_bytes, memory_order_relaxed);

	return bytes ? (double)atomic_load_explicit(&cell->added_ns,
						    memory_order_relaxed) /
			       (double)bytes :
		       0;
}

uint64_t wf_alg_cost_adds(struct wf_alg_cost *cost,
			  const struct wd_comp_job *job)
{
	return (uint64_t)(rate_of(cell_of(cost, job)) * (double)job->src_len);
}

/*
 * It takes what jobs alone take, or as long as the driver needs for all that is
 * under way and for this one, at the rate that it has while it is busy: a driver
 * that does many at once has a good rate and a long time for each.
 */
uint64_t wf_alg_cost_expect(struct wf_alg_cost *cost,
			    const struct wd_comp_job *job)
{
	const struct wf_alg_cell *cell = cell_of(cost, job);
	double waiting = (double)atomic_load_explicit(&cost->backlog,
						      memory_order_relaxed);
	uint64_t alone, busy;

	if (!atomic_load_explicit(&cell->added_bytes, memory_order_relaxed))
		return UINT64_MAX;
	alone = alone_of(cell, job);
	busy = (uint64_t)(rate_of(cell) * (waiting + (double)job->src_len));
	return waiting > 0 && busy > alone ? busy : alone;
}

struct wf_alg_start wf_alg_cost_begin(struct wf_alg_cost *cost,
				      const struct wd_comp_job *job,
				      uint64_t now)
{
	struct wf_alg_cell *cell = cell_of(cost, job);
	unsigned int weight = weight_of(cell);

	return (struct wf_alg_start){
		.at = now,
		.cell = cell,
		.weight = weight,
		.alone = !atomic_fetch_add(&cost->backlog,
					   weight * job->src_len),
	};
}

void wf_alg_cost_end(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		     struct wf_alg_start start, bool good, uint64_t now)
{
	struct wf_alg_cell *cell = start.cell;
	uint64_t len = job->src_len | 1;
	uint64_t last = atomic_exchange(&cost->last, now), bytes, ns;

	atomic_fetch_sub(&cost->backlog, start.weight * job->src_len);
	if (!good)
		return;
	ns = atomic_load_explicit(&cell->ns_per_kib, memory_order_relaxed);
	if (start.alone || !ns || (now - start.at) * 1024 / len < ns)
		note(cell, job, now - start.at);
	/* Count only the time that this job added: the driver was busy with
	 * others before that. */
	if (last < start.at)
		last = start.at;
	ns = now > last ? now - last : 0;
	bytes = atomic_load_explicit(&cell->added_bytes, memory_order_relaxed);
	ns += atomic_load_explicit(&cell->added_ns, memory_order_relaxed);
	/* A job alone stands for itself. */
	len *= start.alone ? 1 : start.weight;
	bytes += len;
	if (bytes > LATELY * len) {
		bytes /= 2;
		ns /= 2;
	}
	atomic_store_explicit(&cell->added_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&cell->added_bytes, bytes, memory_order_relaxed);
}
