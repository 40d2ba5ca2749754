/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header keeps how long recent jobs of a driver took, including its queue,
 * by kind and size of the job, and apart for threads on the NUMA node of its
 * device and on others; how fast it works on many at a time, and how much it
 * has to do now. From that follows when a job would end. Any thread may use it,
 * without a lock. alg/choice.h asks.
 */
#ifndef WF_ALG_COST_H
#define WF_ALG_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

#define WF_ALG_COST_KINDS (WD_COMP_LEVEL_MOST + 1) /* inflate, then levels */
#define WF_ALG_COST_SIZES 16			   /* a factor of 4 each */
#define WF_ALG_COST_PLACES 2			   /* near, far */

struct wf_alg_cell {
	atomic_uint jobs;	     /* that were measured */
	_Atomic uint64_t ns_per_kib; /* lately */
	/* Of jobs that may overlap: how many were begun, and lately the time
	 * that they added, and their bytes. */
	atomic_uint tried;
	_Atomic uint64_t added_ns, added_bytes;
	/* Time of jobs that another driver was preferred for, since one was
	 * given to this one nevertheless. */
	_Atomic uint64_t elsewhere_ns;
	/* Jobs that one stands for, see wf_alg_cost_settle(); 0: 1. */
	atomic_uint weight;
};

struct wf_alg_cost {
	int node; /* of the device, -1: all threads are near */
	struct wf_alg_cell of[WF_ALG_COST_PLACES][WF_ALG_COST_KINDS]
			     [WF_ALG_COST_SIZES];
	_Atomic uint64_t backlog; /* bytes of overlapping jobs under way */
	_Atomic uint64_t last;	  /* when one of them ended */
};

/* Of a job that may overlap with others of the same driver. */
struct wf_alg_start {
	uint64_t at;
	struct wf_alg_cell *cell;
	unsigned int weight;
	bool alone; /* there were no others */
};

/* A job that succeeded. */
void wf_alg_cost_note(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		      uint64_t ns);

/*
 * Whether @next is to do the job in place of @first, a device: because it does
 * such jobs sooner, or because too little is known of it. Now and then the
 * slower one gets a job, so that a change is noticed: for a small part of the
 * time, not of the jobs, because it may be slower by any factor. @settles: where
 * @next wins by far, the next jobs like this one are settled.
 */
int wf_alg_cost_prefers_next(struct wf_alg_cost *first,
			     struct wf_alg_cost *next,
			     const struct wd_comp_job *job, bool settles);

/* Whether a job that takes @ns on this driver is to go there although it takes
 * @best of the time of a better one. */
bool wf_alg_cost_is_probe(struct wf_alg_cost *cost,
			  const struct wd_comp_job *job, uint64_t ns,
			  uint64_t best);

/* Whether a device that would end the job in @device_ns is far from winning against
 * a library that ends it in @library_ns, and the job is small: it takes @job_ns of
 * the library. */
bool wf_alg_cost_is_far(uint64_t device_ns, uint64_t library_ns,
			uint64_t job_ns);

/*
 * Where small jobs are many and no device is near to winning, measuring and
 * comparing each of them would cost a good part of its time, because all threads
 * write to the same lines. @yes: the next jobs like this one, of this thread, go to
 * @best, a library, without that, and one job of @best stands for as many. @first
 * is the first candidate, which is asked about it.
 */
void wf_alg_cost_settle(struct wf_alg_cost *first, struct wf_alg_cost *best,
			const struct wd_comp_job *job, bool yes);
bool wf_alg_cost_is_settled(struct wf_alg_cost *first,
			    const struct wd_comp_job *job);
/* How many jobs one that is compared stands for, which is asked once: those of this
 * thread before it that were settled, and itself. */
unsigned int wf_alg_cost_stands_for(struct wf_alg_cost *first,
				    const struct wd_comp_job *job);

/* Whether too few jobs like this one were given to the driver to know it; then
 * this is one more. */
bool wf_alg_cost_is_new(struct wf_alg_cost *cost,
			const struct wd_comp_job *job);
/* Nanoseconds until a job would end that begins now, behind those that are under
 * way; UINT64_MAX if none has ever ended well. */
uint64_t wf_alg_cost_expect(struct wf_alg_cost *cost,
			    const struct wd_comp_job *job);
/* Nanoseconds that the job adds to what a busy driver has to do. */
uint64_t wf_alg_cost_adds(struct wf_alg_cost *cost,
			  const struct wd_comp_job *job);
/* Around each overlapping job, at the time @now; @good: it succeeded. */
struct wf_alg_start wf_alg_cost_begin(struct wf_alg_cost *cost,
				      const struct wd_comp_job *job,
				      uint64_t now);
void wf_alg_cost_end(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		     struct wf_alg_start start, bool good, uint64_t now);

#endif
