/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft trace`: a timeline of messages between processes.
 */
#ifndef WF_TOOLS_TRACE_TRACE_H
#define WF_TOOLS_TRACE_TRACE_H

/* The subcommand. 0: a file was written; 1: there is no endpoint, or a failure;
 * 2: the command line makes no sense. */
int wf_tools_trace_main(int argc, char **argv);

#endif
