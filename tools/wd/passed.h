/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket that the process was started with, as systemd's socket units do.
 */
#ifndef WF_TOOLS_WD_PASSED_H
#define WF_TOOLS_WD_PASSED_H

#include <stddef.h>

/*
 * The descriptor of the one listening socket that was passed (LISTEN_PID and
 * LISTEN_FDS, see sd_listen_fds(3)), with its path in @path. 0: none was
 * passed. -EINVAL: the socket that was passed cannot be used, and @why says so.
 */
int wf_tools_passed_socket(char *path, size_t path_len, char *why,
			   size_t why_len);

#endif
