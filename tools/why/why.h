/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft why`: what endpoints wait for, and who is to blame.
 */
#ifndef WF_TOOLS_WHY_WHY_H
#define WF_TOOLS_WHY_WHY_H

/* The subcommand. 0: nothing waits for long; 3: something does; 1: there is no
 * endpoint, or a failure; 2: the command line makes no sense. */
int wf_tools_why_main(int argc, char **argv);

#endif
