/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listener in the folder.
 */
#include "shm/door.h"

#include <string.h>

#include "base/log.h"
#include "os/file.h"
#include "shm/ep.h"

void wf_shm_door_open(struct wf_shm_ep *ep,
		      void (*ready)(struct wf_source *source, uint32_t events,
				    uint64_t now))
{
	const struct wf_shm_home *home = &ep->attr.home;
	int fd, err;

	if (!home->folder || ep->attr.refuses)
		return;
	fd = wf_shm_folder_listen(home, &ep->host->addr, ep->attr.allow_uid);
	err = fd;
	if (fd >= 0) {
		ep->door = (struct wf_source){ .fd = fd, .ready = ready };
		err = wf_transport_loop_add(&ep->host->loop, &ep->door);
		if (!err)
			return;
		wf_shm_door_close(ep);
	}
	wf_tell("no socket in %s (%s): other network namespaces of this host "
		"reach this process by packets",
		home->folder, strerror(-err));
}

void wf_shm_door_close(struct wf_shm_ep *ep)
{
	if (ep->door.fd < 0)
		return;
	/* First: a socket that refuses would be taken for a leftover. */
	wf_shm_folder_leave(&ep->attr.home, &ep->host->addr);
	wf_transport_loop_drop(&ep->host->loop, &ep->door);
}

void wf_shm_door_forked(struct wf_shm_ep *ep)
{
	if (ep->door.fd >= 0)
		wf_os_close(ep->door.fd);
	ep->door.fd = -1;
}
