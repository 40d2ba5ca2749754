/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UCX measured by its own benchmark, ucx_perftest: a server and a client that
 * run one test after the other.
 */
#ifndef WF_TOOLS_BENCH_UCX_H
#define WF_TOOLS_BENCH_UCX_H

#include "tools/bench/plan.h"

#include <sys/types.h>

struct wf_tools_ucx {
	pid_t pids[2]; /* client, server; 0: not running */
	int orders[2]; /* pipes from which they read what to do */
	int output;    /* what they print */
	int port;
	/* ns per message last seen, for the number of messages of a run */
	double seen[WF_TOOLS_TESTS][WF_TOOLS_MAX_SIZES];
	char text[4096]; /* output that was not parsed yet */
	size_t text_len;
	int column; /* of overall_lat, once the header has been seen */
	char error[320];
	char about[256];
};

#define WF_TOOLS_UCX_MISSING "not installed (Debian: apt install ucx-utils)"

/*
 * Starts a server of ucx_perftest and waits until it listens: its pid, port and
 * the pipe for its commands, or -errno (-ENOENT: not installed).
 */
pid_t wf_tools_ucx_serve(const struct wf_tools_plan *plan, int output,
			 int *port, int *orders);

/* Once, before everything else. */
void wf_tools_ucx_init(struct wf_tools_ucx *ucx);

/*
 * The same as the calls of struct wf_tools_pair, with the index of the size in
 * the plan added to run. -ENOENT from start: not installed, and error says what
 * to do.
 */
int wf_tools_ucx_start(struct wf_tools_ucx *ucx,
		       const struct wf_tools_plan *plan);
int wf_tools_ucx_ready(struct wf_tools_ucx *ucx,
		       const struct wf_tools_plan *plan);
int wf_tools_ucx_run(struct wf_tools_ucx *ucx, const struct wf_tools_plan *plan,
		     enum wf_tools_test test, unsigned index, double *ns);
void wf_tools_ucx_stop(struct wf_tools_ucx *ucx);

#endif
