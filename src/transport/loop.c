/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors of an endpoint.
 */
#include "transport/loop.h"

#include "os/file.h"

/* Sources called back in one look; the rest is ready in the next. */
#define EVENTS 32

int wf_transport_loop_open(struct wf_loop *loop)
{
	*loop = (struct wf_loop){
		.epoll_fd = wf_os_epoll_create(),
		.timer = { .fd = -1 },
	};
	return loop->epoll_fd < 0 ? loop->epoll_fd : 0;
}

void wf_transport_loop_close(struct wf_loop *loop)
{
	if (loop->timer.fd >= 0)
		wf_os_close(loop->timer.fd);
	if (loop->epoll_fd >= 0)
		wf_os_close(loop->epoll_fd);
	loop->timer.fd = -1;
	loop->epoll_fd = -1;
}

int wf_transport_loop_add(struct wf_loop *loop, struct wf_source *source)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLRDHUP,
		.data.ptr = source,
	};

	return wf_os_epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd,
			       &event);
}

void wf_transport_loop_remove(struct wf_loop *loop, struct wf_source *source)
{
	wf_os_epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

void wf_transport_loop_drop(struct wf_loop *loop, struct wf_source *source)
{
	if (source->fd < 0)
		return;
	wf_transport_loop_remove(loop, source);
	wf_os_close(source->fd);
	source->fd = -1;
}

void wf_transport_loop_move(struct wf_loop *loop, struct wf_source *from,
			    struct wf_source *to)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLRDHUP,
		.data.ptr = to,
	};

	to->fd = from->fd;
	from->fd = -1;
	wf_os_epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, to->fd, &event);
}

void wf_transport_loop_run(struct wf_loop *loop, uint64_t now)
{
	struct epoll_event events[EVENTS];
	int count = wf_os_epoll_wait(loop->epoll_fd, events, EVENTS, 0);

	for (int i = 0; i < count; i++) {
		struct wf_source *source = events[i].data.ptr;

		if (source->ready)
			source->ready(source, events[i].events, now);
	}
}

/* The timer is created before the first sleep, even if that has no deadline: a
 * call that wakes a sleeper needs it, and might find no descriptor left. */
static bool make_timer(struct wf_loop *loop)
{
	int fd;

	if (loop->timer.fd >= 0)
		return true;
	fd = wf_os_timerfd_create();
	if (fd < 0)
		return false;
	loop->timer.fd = fd;
	if (!wf_transport_loop_add(loop, &loop->timer))
		return true;
	wf_transport_loop_drop(loop, &loop->timer);
	return false;
}

bool wf_transport_loop_set(struct wf_loop *loop, uint64_t ns)
{
	return make_timer(loop) && !wf_os_timerfd_set(loop->timer.fd, ns);
}
