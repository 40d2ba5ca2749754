/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft efa`: runs a program on the software EFA device.
 */
#ifndef WF_TOOLS_EFA_EFA_H
#define WF_TOOLS_EFA_EFA_H

/* The subcommand. It becomes the program, so that the status is the program's;
 * 127: there is none of that name, 126: it cannot be run, 1: the device's
 * library is not there, 2: the command line makes no sense. */
int wf_tools_efa_main(int argc, char **argv);

#endif
