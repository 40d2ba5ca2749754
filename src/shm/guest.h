/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listening side of a handshake (conn.h): accepts processes that connect to
 * the endpoint, checks who they are and what their hello says, and opens the
 * receiving end of their channel. One that has not said hello yet is a guest.
 */
#ifndef WF_SHM_GUEST_H
#define WF_SHM_GUEST_H

#include <stdint.h>

struct wf_shm_ep;

/* Opens the endpoint's sockets. 0, -EADDRINUSE or -errno. */
int wf_shm_guest_listen(struct wf_shm_ep *ep);
void wf_shm_guest_unlisten(struct wf_shm_ep *ep);
void wf_shm_guest_forked(struct wf_shm_ep *ep);

/* Accepts the peers that wait, unless the endpoint sleeps. */
void wf_shm_guest_accept(struct wf_shm_ep *ep);

/* Ends connections without a hello; listens again. Call it after the events of
 * the sockets were handled. */
void wf_shm_guest_tend(struct wf_shm_ep *ep, uint64_t now);

/* Tells who sent a hello or a letter over @fd that it is not taken: @status is a
 * positive errno. 0 or -errno. */
int wf_shm_guest_refuse(const struct wf_shm_ep *ep, int fd, int status);

#endif
