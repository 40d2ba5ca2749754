/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft bench`.
 */
#ifndef WF_TOOLS_BENCH_OPTIONS_H
#define WF_TOOLS_BENCH_OPTIONS_H

#include "tools/bench/plan.h"

/*
 * Fills the plan. Strings of the plan point into argv (which is taken apart).
 * Returns 0 to go on, 1 when help was printed and all is done, -EINVAL after
 * having said on stderr what is wrong and what to write instead.
 */
int wf_tools_options_read(struct wf_tools_plan *plan, int argc, char **argv);

#endif
