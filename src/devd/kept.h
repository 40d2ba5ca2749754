/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the device that a client has, and may go on having after its channel
 * is closed: as a mapping, as a descriptor, in a child, or in a process to which it
 * sent the descriptor. It counts against the limits of client and user until nobody
 * but the device has it, which the kernel says: a lease for writing is granted only
 * if the file is open nowhere else. Used by the manager thread.
 */
#ifndef WF_DEVD_KEPT_H
#define WF_DEVD_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct wf_devd;
struct wf_devd_client;
struct wf_devd_user;

struct wf_devd_kept {
	struct wf_list link;
	int fd;
	uint64_t size;	   /* that is charged; 0: a channel's queues */
	uint64_t *counter; /* of the device; or NULL */
	struct wf_devd_client *client; /* NULL: gone */
	struct wf_devd_user *user;
};

/* Zeroed memory that cannot change its size, open twice: for us, and for the client,
 * to be closed here. All that it takes to count it later is there from now on.
 * -ENOMEM. */
int wf_devd_kept_make(const char *name, uint64_t size,
		      struct wf_devd_kept **ours, int *theirs);
/* Frees memory that no client got, or that need not be counted any more. */
void wf_devd_kept_drop(struct wf_devd_kept *kept);

/* Counts @kept from now on, because its channel is closed. Takes over @kept and
 * the bytes that are charged for it. */
void wf_devd_kept_add(struct wf_devd_client *client, struct wf_devd_kept *kept,
		      uint64_t size, uint64_t *counter);
/* Frees kept memory that no process has any more: of all users, or of one user, so
 * that a request of one user does not look at the memory of others. */
void wf_devd_kept_sweep(struct wf_devd *devd);
void wf_devd_kept_sweep_user(struct wf_devd *devd,
			     const struct wf_devd_user *user);
/* The client is freed; the memory that it has kept stays its user's. */
void wf_devd_kept_leave(struct wf_devd_client *client);
/* The device ends. */
void wf_devd_kept_free_all(struct wf_devd *devd);

#endif
