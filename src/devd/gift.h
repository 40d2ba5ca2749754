/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A descriptor that came with a request, looked at: the client's memory (OPEN
 * of an SVA device), or memory to be mapped (ATTACH). Nothing else is kept.
 * Looking at a descriptor of a client, and closing it, may block for as long
 * as the client likes, so the manager never does it (errand.h).
 */
#ifndef WF_DEVD_GIFT_H
#define WF_DEVD_GIFT_H

#include <stdint.h>
#include <sys/types.h>

#include "chan/broker_defs.h"

struct wf_devd_region;

struct wf_devd_gift {
	/* OPEN: /proc/<pid>/mem of the client, opened by itself; or -1. It
	 * stays with the address space it was opened for, so that neither a
	 * new process of the same number nor a program that the client becomes
	 * can be reached by it. Closing it does not block. */
	int memory;
	/* ATTACH: mapped, or NULL and why not. */
	struct wf_devd_region *region;
	int status;
};

#define WF_DEVD_NO_GIFT ((struct wf_devd_gift){ .memory = -1 })

/* Looks at @fd (-1: none came) for what @request needs, closes it unless it is
 * kept. ATTACH maps no more than @limit bytes. */
struct wf_devd_gift wf_devd_gift_take(const struct wf_broker_request *request,
				      int fd, pid_t pid, uint64_t limit);

#endif
