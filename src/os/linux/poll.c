/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for descriptors of Linux.
 */
#include "os/poll.h"

#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

static struct timespec span(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

int wf_os_poll(struct pollfd *fds, unsigned int count, uint64_t ns)
{
	struct timespec ts = span(ns);
	int ready = ppoll(fds, count, ns == WF_OS_FOREVER ? NULL : &ts, NULL);

	return ready < 0 ? -errno : ready;
}

int wf_os_epoll_create(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int wf_os_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	return epoll_ctl(epoll_fd, op, fd, event) ? -errno : 0;
}

int wf_os_epoll_wait(int epoll_fd, struct epoll_event *events, int count,
		     int ms)
{
	int ready = epoll_wait(epoll_fd, events, count, ms);

	return ready < 0 ? -errno : ready;
}

int wf_os_eventfd(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int wf_os_eventfd_read(int fd, uint64_t *count)
{
	return read(fd, count, sizeof(*count)) < 0 ? -errno : 0;
}

int wf_os_eventfd_write(int fd, uint64_t count)
{
	return write(fd, &count, sizeof(count)) < 0 ? -errno : 0;
}

int wf_os_timerfd_create(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int wf_os_timerfd_set(int fd, uint64_t ns)
{
	const struct itimerspec when = { .it_value = span(ns) };

	return timerfd_settime(fd, 0, &when, NULL) ? -errno : 0;
}
