/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommand `weft bench`, seen from the table of subcommands.
 */
#ifndef WF_TOOLS_BENCH_BENCH_H
#define WF_TOOLS_BENCH_BENCH_H

/*
 * argv[0] is "bench". Returns the exit status: 0, 1 when the provider under
 * test failed somewhere or a file could not be written, 2 for wrong usage.
 */
int wf_tools_bench_main(int argc, char **argv);

#endif
