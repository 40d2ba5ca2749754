/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Unix names of endpoints, made from their addresses. In the same network
 * namespace they are abstract, and vanish with the socket. Endpoints that state
 * another place (base/place.h) are met in the folder of both (folder.h).
 * Anybody may take a name first, so it proves nothing but which user holds it.
 */
#ifndef WF_SHM_NAME_H
#define WF_SHM_NAME_H

#include <stdbool.h>

#include "base/addr.h"
#include "os/types.h"
#include "shm/folder.h"

/* A socket that holds the name of @addr, or of every address of this node with
 * its port, and does not listen yet. The descriptor, -EADDRINUSE or -errno. */
int wf_shm_name_bind(const struct wf_addr *addr, bool any);

/* Connects from @home to the process that listens as @addr. The descriptor or
 * -errno: -ECONNREFUSED when none does, -EAGAIN when its backlog is full,
 * -EHOSTUNREACH when the address is not of this node. */
int wf_shm_name_connect(const struct wf_shm_home *home,
			const struct wf_addr *addr);

/* The user that listens as @addr. 0 or what wf_shm_name_connect() says. */
int wf_shm_name_owner(const struct wf_shm_home *home,
		      const struct wf_addr *addr, uid_t *uid);

/* Whether @addr is to be reached through shared memory, 1 or 0: it is of our
 * network namespace; or it is of another one of this host and its process,
 * which @allow permits (user.h), is in the folder; or packets could not reach
 * it. -errno: that cannot be determined now. */
int wf_shm_name_reaches(const struct wf_shm_home *home, const char *allow,
			const struct wf_addr *addr);

/* Whether @addr states a place that is not that of @home. */
bool wf_shm_name_is_elsewhere(const struct wf_shm_home *home,
			      const struct wf_addr *addr);

#endif
