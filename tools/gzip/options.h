/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the command line of `weft gzip`.
 */
#ifndef WF_TOOLS_GZIP_OPTIONS_H
#define WF_TOOLS_GZIP_OPTIONS_H

#include "tools/gzip/gzip.h"

/* Fills in all but decompress, which is set before. -1 to go on with
 * argv[optind], or an exit code. */
int wf_tools_gzip_options(struct wf_gzip_options *options, int argc,
			  char **argv);

#endif
