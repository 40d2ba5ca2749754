/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands behind a descriptor in an endpoint's epoll set. First member of
 * the object that owns the descriptor.
 */
#ifndef WF_SHM_SOCK_H
#define WF_SHM_SOCK_H

enum wf_shm_sock_kind {
	WF_SHM_SOCK_LISTENER,
	WF_SHM_SOCK_GUEST, /* connected to us, has not said hello yet */
	WF_SHM_SOCK_IN,
	WF_SHM_SOCK_OUT,
	WF_SHM_SOCK_TIMER,
	WF_SHM_SOCK_BESIDE, /* of another transport, which owns it */
};

struct wf_shm_sock {
	int fd; /* -1: none */
	enum wf_shm_sock_kind kind;
};

#endif
