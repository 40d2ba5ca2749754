/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench --server`: the other host of `weft bench HOST`.
 */
#ifndef WF_TOOLS_BENCH_SERVER_H
#define WF_TOOLS_BENCH_SERVER_H

#include "tools/bench/plan.h"

/* Serves until a signal. Returns 0 or 1; errors have been printed. */
int wf_tools_server_run(const struct wf_tools_plan *plan);

#endif
