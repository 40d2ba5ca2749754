/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints in a folder: a Unix socket for each, in a file that is named after
 * the endpoint's place (base/place.h) and address. Every process that shares
 * the folder finds it, whatever its network namespace is.
 *
 * A file of that name is a socket that listens, or was left by a process that
 * was killed: the file gets its name, by a rename, after the socket listens. So
 * a socket that refuses connections is a leftover, and the process that finds
 * it removes it. An endpoint holds its port, so no other endpoint of its place
 * has its name. Links are not followed.
 */
#ifndef WF_SHM_FOLDER_H
#define WF_SHM_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* The place of an endpoint, and the folder where processes of other places find
 * it. */
struct wf_shm_home {
	const char *folder; /* NULL: nowhere; outlives the endpoint */
	uint64_t place;	    /* 0: not found out */
};

/* A socket that listens in @home for @addr. @open: users other than ours may
 * connect, too. The descriptor, -EADDRINUSE where another process listens or
 * another user holds the name, or -errno. Removes some leftovers of others. */
int wf_shm_folder_listen(const struct wf_shm_home *home,
			 const struct wf_addr *addr, bool open);

/* The end of what wf_shm_folder_listen() made. The caller closes the socket
 * after that. */
void wf_shm_folder_leave(const struct wf_shm_home *home,
			 const struct wf_addr *addr);

/* Connects to the process that listens for @addr: the one at the place that the
 * address states; without one, the only one of this host. The descriptor or
 * -errno: -ECONNREFUSED when none does, -ENOTUNIQ when several do, -EAGAIN when
 * its backlog is full. */
int wf_shm_folder_connect(const struct wf_shm_home *home,
			  const struct wf_addr *addr);

#endif
