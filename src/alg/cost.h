/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long recent jobs of a driver took, including its queue, by kind and size
 * of the job; and the choice between a device and the next driver: a job goes
 * where it is expected to end sooner. Any thread may use it, without a lock.
 */
#ifndef WF_ALG_COST_H
#define WF_ALG_COST_H

#include <stdatomic.h>
#include <stdint.h>

#include <weft/wd_comp_drv.h>

#define WF_ALG_COST_KINDS (WD_COMP_LEVEL_MOST + 1) /* inflate, then levels */
#define WF_ALG_COST_SIZES 16			   /* a factor of 4 each */

struct wf_alg_cost {
	struct {
		atomic_uint jobs;	     /* that were measured */
		_Atomic uint64_t ns_per_kib; /* lately */
	} of[WF_ALG_COST_KINDS][WF_ALG_COST_SIZES];
	atomic_uint turns; /* choices made */
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

#endif
