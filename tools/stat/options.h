/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft stat`.
 */
#ifndef WF_TOOLS_STAT_OPTIONS_H
#define WF_TOOLS_STAT_OPTIONS_H

#include <stdbool.h>

#include "tools/options.h"
#include "tools/stat/rows.h"

struct wf_tools_stat_options {
	unsigned long count; /* 0: until interrupted */
	double interval;
	struct wf_tools_pids pids; /* none: all processes */
	enum wf_tools_sort sort;
	bool paths;
	bool json;
	bool openmetrics;
	const char *listen; /* [ADDRESS:]PORT; NULL: once to standard output */
};

/* 0, 1 when help was printed, -EINVAL when it was said what is wrong. */
int wf_tools_stat_options_read(struct wf_tools_stat_options *options, int argc,
			       char **argv);

#define wf_tools_stat_complain(...) wf_tools_complain("stat", __VA_ARGS__)

#endif
