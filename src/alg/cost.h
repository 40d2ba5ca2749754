/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long recent jobs of a driver took, including its queue, by kind and size
 * of the job; how fast it works on many at a time, and how much it has to do
 * now. From that follows when a job would end. Any thread may use it, without a
 * lock. alg/choice.h asks.
 */
#ifndef WF_ALG_COST_H
#define WF_ALG_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

#define WF_ALG_COST_KINDS (WD_COMP_LEVEL_MOST + 1) /* inflate, then levels */
#define WF_ALG_COST_SIZES 16			   /* a factor of 4 each */

struct wf_alg_cost {
	struct {
		atomic_uint jobs;	     /* that were measured */
		_Atomic uint64_t ns_per_kib; /* lately */
		/* Of jobs that may overlap: how many were begun, and lately the
		 * time that they added, and their bytes. */
		atomic_uint tried;
		_Atomic uint64_t added_ns, added_bytes;
	} of[WF_ALG_COST_KINDS][WF_ALG_COST_SIZES];
	atomic_uint turns;	  /* choices made */
	_Atomic uint64_t backlog; /* bytes of overlapping jobs under way */
	_Atomic uint64_t last;	  /* when one of them ended */
};

/* Of a job that may overlap with others of the same driver. */
struct wf_alg_start {
	uint64_t at;
	bool alone; /* there were no others */
};

/* A job that succeeded. */
void wf_alg_cost_note(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		      uint64_t ns);

/*
 * Whether @next is to do the job in place of @first, a device: because it does
 * such jobs sooner, or because too little is known of it. Now and then the
 * slower one gets a job, so that a change is noticed.
 */
int wf_alg_cost_prefers_next(struct wf_alg_cost *first,
			     struct wf_alg_cost *next,
			     const struct wd_comp_job *job);

/* Whether this choice, one in 64, is for a driver that is thought to be slower. */
bool wf_alg_cost_is_probe(struct wf_alg_cost *cost);

/* Whether too few jobs like this one were given to the driver to know it; then
 * this is one more. */
bool wf_alg_cost_is_new(struct wf_alg_cost *cost,
			const struct wd_comp_job *job);
/* Nanoseconds until a job would end that begins now, behind those that are under
 * way; UINT64_MAX if none has ever ended well. */
uint64_t wf_alg_cost_expect(struct wf_alg_cost *cost,
			    const struct wd_comp_job *job);
/* Around each overlapping job, at the time @now; @good: it succeeded. */
struct wf_alg_start wf_alg_cost_begin(struct wf_alg_cost *cost,
				      const struct wd_comp_job *job,
				      uint64_t now);
void wf_alg_cost_end(struct wf_alg_cost *cost, const struct wd_comp_job *job,
		     struct wf_alg_start start, bool good, uint64_t now);

#endif
