/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft bench`.
 */
#ifndef WF_TOOLS_BENCH_OPTIONS_H
#define WF_TOOLS_BENCH_OPTIONS_H

#include "tools/bench/plan.h"

/*
 * Fills the plan. Strings of the plan point into argv, which is modified.
 * Returns 0 to continue, 1 when help was printed and nothing is left to do,
 * -EINVAL after a message on stderr that says what is wrong and what to write
 * instead.
 */
int wf_tools_options_read(struct wf_tools_plan *plan, int argc, char **argv);

#endif
