/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two workers, as the parent sees them.
 */
#ifndef WF_TOOLS_BENCH_PAIR_H
#define WF_TOOLS_BENCH_PAIR_H

#include "tools/bench/plan.h"

#include <sys/types.h>

struct wf_tools_pair {
	pid_t pids[2];	 /* 0: not running */
	int controls[2]; /* -1: closed */
	char error[320]; /* of the last call that failed */
	char about[256]; /* what the initiator opened */
};

void wf_tools_pair_init(struct wf_tools_pair *pair);

/*
 * Starts both workers, which prepare meanwhile. env as in struct
 * wf_tools_process. Returns 0 or -errno; then no process is left.
 */
int wf_tools_pair_start(struct wf_tools_pair *pair,
			const struct wf_tools_plan *plan, const char *engine,
			const char *name, const char *const *env);

/*
 * Waits until both are ready. After an error (-errno, -ETIMEDOUT, -EINTR when
 * the user wants to stop), here and below, the pair has been ended.
 */
int wf_tools_pair_ready(struct wf_tools_pair *pair,
			const struct wf_tools_plan *plan);

/* Measures once: ns per message, one way. */
int wf_tools_pair_run(struct wf_tools_pair *pair,
		      const struct wf_tools_plan *plan, enum wf_tools_test test,
		      size_t size, double *ns);

/* Ends the workers properly. May be called at any time. */
void wf_tools_pair_stop(struct wf_tools_pair *pair);

#endif
