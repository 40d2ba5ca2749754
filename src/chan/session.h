/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of this process to one software device process. All channels
 * share it. For the device it identifies the process, and its end is the end of
 * all of them. A request holds its lock until the reply; polling and waiting do
 * not take it. A forked child closes its copy and opens its own.
 */
#ifndef WF_CHAN_SESSION_H
#define WF_CHAN_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "chan/broker_defs.h"

struct wf_chan_session;

/* Milliseconds without an answer after which a device is given up: 5000. For
 * tests. */
extern int wf_chan_session_reply_ms;

/* The session with the device at @socket (a path), new or shared. Before a byte
 * is sent, and again whenever the connection is made anew, the listener must
 * be a process of root or of this user. -ENODEV: nobody there; -EACCES:
 * refused, or a stranger listens there; -EBUSY: too many wait to be let in;
 * -EPROTO; -ENOMEM and such. */
int wf_chan_session_get(const char *socket, struct wf_chan_session **session);
void wf_chan_session_put(struct wf_chan_session *session);

/* One request. Sends @send_fd unless -1; puts up to WF_BROKER_FDS_MAX received
 * descriptors into @fds (-1 where none came), or closes them if it is NULL.
 * The status of the reply, or -ENODEV if the device is gone. */
int wf_chan_session_call(struct wf_chan_session *session,
			 struct wf_broker_request *request, int send_fd,
			 struct wf_broker_reply *reply, int *fds);

/* Whether the device is there. Asks the kernel at most once a millisecond. */
bool wf_chan_session_alive(struct wf_chan_session *session);

/* Readable at its end; for poll() beside something else, then _alive(). */
int wf_chan_session_fd(const struct wf_chan_session *session);

/* Whether the device has closed its end: it does so when its last worker has
 * released our channels, or it died. A device that we gave up because it was
 * silent may still work on our memory. */
bool wf_chan_session_has_ended(struct wf_chan_session *session);

/* Takes one more reference, which wf_chan_session_put() gives back. */
void wf_chan_session_hold(struct wf_chan_session *session);

/* Marks it dead after poll() said so. */
void wf_chan_session_end(struct wf_chan_session *session);

#endif
