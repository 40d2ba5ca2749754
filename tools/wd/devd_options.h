/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft devd`.
 */
#ifndef WF_TOOLS_WD_DEVD_OPTIONS_H
#define WF_TOOLS_WD_DEVD_OPTIONS_H

#include <stdbool.h>

#include "devd/devd.h"

struct wf_tools_devd_options {
	struct wf_devd_config config;
	char socket[WF_DEVD_SOCKET_SIZE]; /* the default one */
	bool list;
	bool verbose;
};

/* 0; 1: help was asked for and given; -EINVAL: complained. */
int wf_tools_devd_options_read(struct wf_tools_devd_options *options, int argc,
			       char **argv);

#endif
