/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are in use all the time. While there are only a few of them,
 * every pass reads them without asking epoll. Connections that stay busy are
 * also taken out of the epoll set.
 */
#include "base/cpu.h"
#include "nic/tcp/dev.h"

/* Reads of a connection that is hot, before epoll is not asked for it. */
#define APART_AFTER 64u

/* While the socket of a connection is watched, the sender's kernel tells each
 * epoll of it, ours and the one that has ours: 0.3 us of a message within a host.
 * A connection that is read by every pass does not need that. Not for a few reads:
 * it costs two calls, here and before the next sleep. */
static void set_apart(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	if (++conn->warms < APART_AFTER)
		return;
	conn->warms = 0;
	if (dev->hot_count > WF_TCP_HOT_MOST || dev->attending ||
	    dev->worker.on || conn->watches || conn->full || conn->deaf ||
	    !conn->chan || conn->chan->state != WF_TCP_UP ||
	    wf_tcp_sock_unwatch(dev, conn->fd))
		return;
	conn->apart = true;
	dev->apart_count++;
	/* Before thousands that may become hot later: each pass looks for it. */
	wf_base_list_unlink(&conn->hot_link);
	wf_base_list_add_head(&dev->hots, &conn->hot_link);
}

void wf_tcp_hot_add(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	if (wf_likely(conn->hot)) {
		if (wf_unlikely(!conn->apart))
			set_apart(dev, conn);
		return;
	}
	conn->hot = true;
	conn->warms = 0;
	dev->hot_count++;
	wf_base_list_add_tail(&dev->hots, &conn->hot_link);
}

int wf_tcp_hot_attach(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	int err;

	if (!conn->apart)
		return 0;
	/* epoll also reports bytes that are in the socket already. */
	err = wf_tcp_sock_watch(dev, conn->fd, conn, conn->watches);
	if (err)
		return err;
	conn->apart = false;
	conn->warms = 0;
	dev->apart_count--;
	return 0;
}

int wf_tcp_hot_attach_all(struct wf_tcp_dev *dev)
{
	uint32_t left = dev->apart_count;
	struct wf_list *pos;
	int err = 0;

	for (pos = dev->hots.next; pos != &dev->hots && left; pos = pos->next) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, hot_link);
		int ret;

		if (!conn->apart)
			continue;
		left--;
		ret = wf_tcp_hot_attach(dev, conn);
		err = ret ? ret : err;
	}
	return err;
}

void wf_tcp_hot_cool(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	/* If it cannot be watched, it is read as before. */
	if (!conn->hot || wf_tcp_hot_attach(dev, conn))
		return;
	conn->hot = false;
	dev->hot_count--;
	wf_base_list_del(&conn->hot_link);
}
