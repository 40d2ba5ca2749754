/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for descriptors, and descriptors made for being waited for. The rules
 * of os/file.h hold.
 */
#ifndef WF_OS_POLL_H
#define WF_OS_POLL_H

#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>

#define WF_OS_FOREVER UINT64_MAX

/* Waits until one of @fds is ready, a signal comes, or @ns have passed. 0: does
 * not wait. The number of those that are ready, or -errno. */
int wf_os_poll(struct pollfd *fds, unsigned int count, uint64_t ns);

/* Closed by exec. */
int wf_os_epoll_create(void);
int wf_os_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
/* @ms: as for epoll_wait(2), -1: forever. The number of events, or -errno. */
int wf_os_epoll_wait(int epoll_fd, struct epoll_event *events, int count,
		     int ms);

/* An eventfd that counts from 0, does not block and is closed by exec. Reading
 * takes the whole count, which is -EAGAIN when it is 0. */
int wf_os_eventfd(void);
int wf_os_eventfd_read(int fd, uint64_t *count);
int wf_os_eventfd_write(int fd, uint64_t count);

/* A timerfd of the monotonic clock that does not block and is closed by exec.
 * Setting it makes it readable once in @ns from now, until it is set or read
 * again. 0: never. */
int wf_os_timerfd_create(void);
int wf_os_timerfd_set(int fd, uint64_t ns);

#endif
