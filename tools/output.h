/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that commands write results to. One that could not be written whole, or that
 * nothing was written to, does not stay.
 */
#ifndef WF_TOOLS_OUTPUT_H
#define WF_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct wf_tools_output {
	FILE *file; /* NULL: not open */
	const char *path;
	int fd;
	int err;  /* -errno of the first write that failed */
	bool any; /* something was written */
};

/* Opens @path, which must stay valid, anew. 0 or -errno. */
int wf_tools_output_open(struct wf_tools_output *out, const char *path);

/* 0, or -errno of whatever failed since it was opened. A regular file is removed
 * then, and if it is empty because there was no result; not if the path leads to
 * another one by now. */
int wf_tools_output_close(struct wf_tools_output *out);

/* For commands that SIGINT, SIGTERM or SIGHUP end at once: the signal removes the
 * file of @out, too, from when it is open until it is closed. @out must stay valid.
 * One for each process; a child that is forked sets its own handlers. */
void wf_tools_output_guard(const struct wf_tools_output *out);

#endif
