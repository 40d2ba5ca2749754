/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One piece of raw deflate data through the best driver: the unit that
 * stateless calls, chunked streams and parallel work are all made of. If a
 * device dies under it, the next driver does it again.
 */
#ifndef WF_ALG_PIECE_H
#define WF_ALG_PIECE_H

#include "alg/registry.h"

/*
 * Fills in job's results. Never expands by more than stored blocks do, so dst
 * needs wf_alg_piece_bound(). @slot: a driver to begin with, or NULL to choose.
 * *used (may be NULL) gets the name of the driver that did it. 0 or as wd_comp.h says.
 */
int wf_alg_piece_deflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used);
int wf_alg_piece_inflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used);
size_t wf_alg_piece_bound(size_t len);

/* The parts of these, for a job that is on a queue meanwhile. _want()
 * writes to @want what the job needs. _is_final() says whether the result is
 * the job's own and no failure of the driver's; _settle() then returns what the
 * caller gets. */
void wf_alg_piece_want(struct wd_comp_job *job, struct wf_alg_want *want,
		       bool inflate);
bool wf_alg_piece_is_final(int result);
int wf_alg_piece_settle(struct wd_comp_job *job, int result);

#endif
