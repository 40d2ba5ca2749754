/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header describes where device processes listen by default: on a socket
 * in a folder that only its user (or root) can write to. With a name that
 * anybody can take, as in the abstract namespace, any user could keep a device
 * from starting, or listen in its place.
 *
 * root: /run/weft/devd.sock; a user: $XDG_RUNTIME_DIR/weft/devd.sock, or
 * without that variable /tmp/weft-UID/devd.sock
 */
#ifndef WF_CHAN_PLACE_H
#define WF_CHAN_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define WF_CHAN_PLACES 3
#define WF_CHAN_PLACE_SIZE 108 /* of sun_path */

/* Where a device process of the effective user listens. XDG_RUNTIME_DIR counts
 * if it is a folder of that user, and not in a set-uid program. */
void wf_chan_place_own(char socket[WF_CHAN_PLACE_SIZE]);

/* Where a program looks, in order: its user's sockets, then root's. Sockets
 * whose folder does not exist or is not safe are left out; the first that is
 * there and left out is reported. Returns their number. */
int wf_chan_place_list(char sockets[WF_CHAN_PLACES][WF_CHAN_PLACE_SIZE]);

/* 0 if the folder of @socket belongs to root or the effective user, and nobody
 * else can write to it, -ENOENT if there is none, else -EPERM. Both come from one
 * look: a folder that is removed and made again meanwhile is not refused. */
int wf_chan_place_check(const char *socket);

/* The folder of @socket. */
void wf_chan_place_folder(const char *socket, char folder[WF_CHAN_PLACE_SIZE]);

#endif
