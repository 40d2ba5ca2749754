/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scans the processes that the command line asks for, and prints what is missing
 * from the result.
 */
#ifndef WF_TOOLS_STAT_LOOK_H
#define WF_TOOLS_STAT_LOOK_H

#include <stdio.h>

#include "tools/stat/options.h"
#include "tools/stat/scan.h"

/* With the jobs of endpoints. @before: an earlier look, or NULL. 0 or -errno;
 * -ESRCH: the only process that was asked for does not exist. */
int wf_tools_look(const struct wf_tools_stat_options *options,
		  const struct wf_tools_scan *before,
		  struct wf_tools_scan *scan);

/* Says why a look failed. Returns @error. */
int wf_tools_look_failed(const struct wf_tools_stat_options *options,
			 int error);

/* Reports what is missing from the numbers, and why. */
void wf_tools_look_missing(const struct wf_tools_stat_options *options,
			   const struct wf_tools_scan *scan, FILE *out);

/* Prints what you must know when you read the numbers: also that there are
 * none. */
void wf_tools_look_notes(const struct wf_tools_stat_options *options,
			 const struct wf_tools_scan *scan, FILE *out);

#endif
