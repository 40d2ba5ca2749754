/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench wd`.
 */
#ifndef WF_TOOLS_WD_BENCH_H
#define WF_TOOLS_WD_BENCH_H

int wf_tools_bench_wd_main(int argc, char **argv);

#endif
