/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `weft stat`.
 */
#ifndef WF_TOOLS_STAT_OPTIONS_H
#define WF_TOOLS_STAT_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "tools/stat/rows.h"

#define WF_TOOLS_STAT_PIDS 256

struct wf_tools_stat_options {
	unsigned long count; /* 0: until interrupted */
	double interval;
	pid_t pids[WF_TOOLS_STAT_PIDS];
	size_t n_pids;
	enum wf_tools_sort sort;
	bool paths;
	bool json;
	bool openmetrics;
	const char *listen; /* [ADDRESS:]PORT; NULL: once to standard output */
};

/* 0, 1 when help was printed, -EINVAL when it was said what is wrong. */
int wf_tools_stat_options_read(struct wf_tools_stat_options *options, int argc,
			       char **argv);

/* Writes to standard error what is wrong. Returns -EINVAL. */
int wf_tools_stat_complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
