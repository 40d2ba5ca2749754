/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft info`: shows what weft finds on this machine.
 */
#ifndef WF_TOOLS_INFO_INFO_H
#define WF_TOOLS_INFO_INFO_H

/* The subcommand. 0: weft can be used; 1: it cannot, and the reason was
 * printed; 2: the command line is invalid. */
int wf_tools_info_main(int argc, char **argv);

#endif
