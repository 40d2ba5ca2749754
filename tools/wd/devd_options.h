/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft devd`.
 */
#ifndef WF_TOOLS_WD_DEVD_OPTIONS_H
#define WF_TOOLS_WD_DEVD_OPTIONS_H

#include <stdbool.h>

#include "devd/devd.h"
#include "tools/wd/devd_file.h"

struct wf_tools_devd_options {
	struct wf_devd_config config;
	char socket[WF_DEVD_SOCKET_SIZE]; /* the default one */
	const char *file;		  /* --config; NULL */
	struct wf_tools_devd_args args;	  /* what it says */
	bool list;
	bool verbose;
};

/* From the file of options, then from the command line, which overrides it. 0; 1:
 * help was asked for and given; -EINVAL: complained. The strings of the
 * configuration are in @argv and in @options. */
int wf_tools_devd_options_read(struct wf_tools_devd_options *options, int argc,
			       char **argv);

/* The same again, for a device that serves already. */
int wf_tools_devd_options_again(struct wf_tools_devd_options *options, int argc,
				char **argv);

void wf_tools_devd_options_free(struct wf_tools_devd_options *options);

#endif
