/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second listener of an endpoint, in the folder (folder.h): for peers in
 * other network namespaces, who do not see abstract names. A connection to
 * either of the two is served in the same way (guest.h).
 */
#ifndef WF_SHM_DOOR_H
#define WF_SHM_DOOR_H

#include <stdint.h>

struct wf_shm_ep;
struct wf_source;

/* Listens in the folder, if the endpoint has one; @ready is called when
 * somebody connects. Most failures are only logged, because peers can send
 * packets instead. -EADDRINUSE: another process holds our name. Its user may
 * be one that peers trust, and they would take it for us. */
int wf_shm_door_open(struct wf_shm_ep *ep,
		     void (*ready)(struct wf_source *source, uint32_t events,
				   uint64_t now));

/* Removes the file and closes the socket. */
void wf_shm_door_close(struct wf_shm_ep *ep);

/* In a child: the file is the parent's. */
void wf_shm_door_forked(struct wf_shm_ep *ep);

#endif
