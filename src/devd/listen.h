/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of the software device: a path, and next to it a lock that says
 * whether a process serves it. Files of a killed process are replaced, our own
 * are removed at the end.
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
