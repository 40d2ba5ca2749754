/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft stat`: live counters of running endpoints.
 */
#ifndef WF_TOOLS_STAT_STAT_H
#define WF_TOOLS_STAT_STAT_H

/* The subcommand. 0: an endpoint was seen; 1: none, or a failure; 2: the
 * command line makes no sense. */
int wf_tools_stat_main(int argc, char **argv);

#endif
