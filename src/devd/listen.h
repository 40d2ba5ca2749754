/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of the software device: a path, and beside it a lock that says
 * whether a process serves it. What a killed one has left is replaced, what
 * is ours is removed at the end.
 */
#ifndef WF_DEVD_LISTEN_H
#define WF_DEVD_LISTEN_H

struct wf_devd;

/* Sets listen_fd and lock_fd. Errors of wf_devd_open(). */
int wf_devd_listen_open(struct wf_devd *devd);
void wf_devd_listen_close(struct wf_devd *devd);

/* The socket's permissions are those of the configuration again. */
void wf_devd_listen_mode(struct wf_devd *devd);

#endif
