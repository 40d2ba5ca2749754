/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages with descriptors over a Unix socket that preserves message
 * boundaries.
 */
#ifndef WF_BASE_FDS_H
#define WF_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>

#include "os/types.h"

/* Sends @len bytes with 1 to 4 descriptors. 0 or -errno. */
int wf_base_fds_send(int sock, const void *buf, size_t len, const int *fds,
		     size_t count);

/* Receives up to @count descriptors; missing ones are -1, and additional ones
 * are closed. *@cut: some were lost because our table of descriptors is full.
 * Returns bytes, 0 at the end, or -errno. */
ssize_t wf_base_fds_recv(int sock, void *buf, size_t len, int *fds,
			 size_t count, bool *cut);

void wf_base_fds_close(const int *fds, size_t count);

#endif
