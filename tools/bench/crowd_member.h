/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hidden subcommand: one process of a crowd.
 */
#ifndef WF_TOOLS_BENCH_CROWD_MEMBER_H
#define WF_TOOLS_BENCH_CROWD_MEMBER_H

#define WF_TOOLS_CROWD_COMMAND "bench-crowd"

enum { WF_TOOLS_CROWD_FD = 3 }; /* SOCK_SEQPACKET to the parent */

/* Arguments: the provider, and how many there are. */
int wf_tools_crowd_member_main(int argc, char **argv);

#endif
