/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of options of `weft devd` (--config): what it says, as arguments.
 */
#ifndef WF_TOOLS_WD_DEVD_FILE_H
#define WF_TOOLS_WD_DEVD_FILE_H

struct wf_tools_devd_args {
	char **argv; /* [0] is the path */
	int argc;
};

/* Reads @path: an option in each line, without the dashes, then its value; text
 * behind # is a comment. -ENOENT: there is no such file; other errors of the
 * system. @args is to be freed only after 0. */
int wf_tools_devd_file_read(const char *path, struct wf_tools_devd_args *args);
void wf_tools_devd_file_free(struct wf_tools_devd_args *args);

#endif
