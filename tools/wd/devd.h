/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft devd`.
 */
#ifndef WF_TOOLS_WD_DEVD_H
#define WF_TOOLS_WD_DEVD_H

int wf_tools_devd_main(int argc, char **argv);

#endif
