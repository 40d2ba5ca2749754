/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes, all to all: the parent's side.
 */
#ifndef WF_TOOLS_BENCH_CROWD_H
#define WF_TOOLS_BENCH_CROWD_H

#include "tools/bench/plan.h"

struct wf_tools_crowd {
	char error[320]; /* of the last run, if it failed; else empty */
};

struct wf_tools_crowd_result {
	double ns; /* from the start signal until the last member has everything */
	double bytes; /* that all of them use beyond their start */
};

/*
 * Starts n processes, has each send a message to every other, and ends them.
 * env as in struct wf_tools_process. 0 or -errno; then no process is left.
 */
int wf_tools_crowd_run(struct wf_tools_crowd *crowd,
		       const struct wf_tools_plan *plan, const char *provider,
		       const char *const *env, unsigned n,
		       struct wf_tools_crowd_result *result);

#endif
