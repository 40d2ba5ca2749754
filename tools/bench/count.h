/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header computes how many messages a run has, for programs that are told
 * a number of messages and not a time (Open MPI's ranks, ucx_perftest).
 */
#ifndef WF_TOOLS_BENCH_COUNT_H
#define WF_TOOLS_BENCH_COUNT_H

#include "tools/bench/plan.h"

/* Runs @count messages of @size bytes; *@ns gets the time of one. 0 or -errno. */
typedef int (*wf_tools_count_play)(void *arg, const struct wf_tools_plan *plan,
				   enum wf_tools_test test, size_t size,
				   double count, double *ns);

/*
 * Calls @play with a number of messages that takes as long as the plan wants; up
 * to three times, because the first number comes from *@seen, the time of a
 * message in the last run, or from a guess while that is 0. *@ns gets the last
 * result, *@seen, too. 0, or what @play returned.
 */
int wf_tools_count_run(const struct wf_tools_plan *plan,
		       enum wf_tools_test test, unsigned index, double *seen,
		       double guess, wf_tools_count_play play, void *arg,
		       double *ns);

#endif
