/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When no descriptors are left: closes idle connections for others.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "os/inline.h"

/* Closes the connection that has not been used for longest, if it is idle. */
static bool make_room(struct wf_tcp_dev *dev)
{
	struct wf_tcp_chan *found = NULL;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->conns) {
		struct wf_tcp_chan *chan =
			wf_container_of(pos, struct wf_tcp_conn, link)->chan;

		if (chan->state == WF_TCP_UP && !wf_tcp_chan_is_busy(chan) &&
		    (!found || chan->peer->used_at < found->peer->used_at))
			found = chan;
	}
	if (found)
		wf_tcp_conn_rest(dev, found);
	return found;
}

/* Devices of a process share its descriptors: how often one of them found none,
 * and had none to give. */
WF_PER_PROCESS static _Atomic uint32_t shortages;

void wf_tcp_files_share(struct wf_tcp_dev *dev)
{
	uint32_t now = atomic_load_explicit(&shortages, memory_order_relaxed);

	if (wf_likely(now == dev->shortages))
		return;
	dev->shortages = now;
	(void)make_room(dev);
}

void wf_tcp_files_short(struct wf_tcp_dev *dev, int err)
{
	bool room = make_room(dev);

	if (!room)
		dev->shortages = atomic_fetch_add(&shortages, 1) + 1;
	if (dev->warned_files)
		return;
	dev->warned_files = true;
	wf_tell("a connection to a peer cannot be opened: %s (%s)",
		strerror(-err),
		room ? "an idle one is closed for it" :
		       "raise the limit of descriptors, `ulimit -n`");
}

bool wf_tcp_files_is_short(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOBUFS ||
	       err == -ENOMEM;
}
