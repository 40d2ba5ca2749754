/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The abstract Unix names of endpoints: one for each address, made from it.
 * Abstract names live in one network namespace and vanish with the socket.
 * Anybody may take one first, so a name proves nothing but which user holds it.
 */
#ifndef WF_SHM_NAME_H
#define WF_SHM_NAME_H

#include <stdbool.h>

#include "base/addr.h"
#include "os/types.h"

/* A socket that holds the name of @addr, or of every address of this node with
 * its port, and does not listen yet. The descriptor, -EADDRINUSE or -errno. */
int wf_shm_name_bind(const struct wf_addr *addr, bool any);

/* Connects to the process that listens as @addr. The descriptor or -errno:
 * -ECONNREFUSED when none does, -EAGAIN when its backlog is full, -EHOSTUNREACH
 * when the address is not of this node. */
int wf_shm_name_connect(const struct wf_addr *addr);

/* The user that listens as @addr. 0 or what wf_shm_name_connect() says. */
int wf_shm_name_owner(const struct wf_addr *addr, uid_t *uid);

#endif
