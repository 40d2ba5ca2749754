/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header asks whether libfabric has the providers that were asked for.
 */
#ifndef WF_TOOLS_BENCH_NAMES_H
#define WF_TOOLS_BENCH_NAMES_H

#include "tools/bench/plan.h"

#define WF_TOOLS_NAMES_COMMAND "bench-names"

/* 0, or -ENOENT after a complaint that names what there is. */
int wf_tools_names_check(const struct wf_tools_plan *plan);

/* The child that asks libfabric. */
int wf_tools_names_main(int argc, char **argv);

#endif
