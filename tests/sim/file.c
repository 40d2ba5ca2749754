/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of simulated processes, and the files that are neither sockets
 * nor memory: epoll sets, eventfds, timers. As in the kernel, a new descriptor
 * has the lowest free number.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "kernel.h"
#include "real.h"
#include "wrap.h"

#define FIRST_FD 3

/* -- descriptors ------------------------------------------------------------ */

struct sim_file *sim_file_get(int fd)
{
	struct sim_proc *proc = sim_proc_current();

	return fd >= 0 && fd < SIM_FDS ? proc->fds[fd] : NULL;
}

void sim_file_put(struct sim_file *file)
{
	if (--file->refs)
		return;
	sim_epoll_forget(file);
	file->ops->release(file);
}

int sim_file_room(void)
{
	const struct sim_proc *proc = sim_proc_current();
	unsigned int most = sim.s.fds_max;

	if (sim_fault(SIM_FAULT_DESCRIPTORS))
		return -EMFILE;
	for (int fd = FIRST_FD; fd < SIM_FDS; fd++) {
		if (proc->fds[fd])
			continue;
		if (most && (unsigned int)fd >= most && !proc->calm &&
		    !sim.healed)
			break;
		return fd;
	}
	return -EMFILE;
}

void sim_file_use(int fd, struct sim_file *file)
{
	struct sim_proc *proc = sim_proc_current();

	proc->fds[fd] = file;
	proc->fd_count++;
	sim_note("opens descriptor %d: %s", fd, file->ops->name);
}

int sim_file_install(struct sim_file *file)
{
	int fd = sim_file_room();

	if (fd < 0)
		sim_file_put(file);
	else
		sim_file_use(fd, file);
	return fd;
}

static int close_fd(struct sim_proc *proc, int fd)
{
	struct sim_file *file;

	if (fd < 0 || fd >= SIM_FDS || !proc->fds[fd])
		return -EBADF;
	file = proc->fds[fd];
	sim_note("closes descriptor %d: %s", fd, file->ops->name);
	proc->fds[fd] = NULL;
	proc->fd_count--;
	sim_file_put(file);
	sim_changed();
	return 0;
}

void sim_file_close_all(struct sim_proc *proc)
{
	for (int fd = 0; fd < SIM_FDS; fd++) {
		if (proc->fds[fd])
			close_fd(proc, fd);
	}
}

int __wrap_close(int fd)
{
	int err;

	sim_enter("close");
	err = close_fd(sim_proc_current(), fd);
	if (err == -EBADF)
		sim_fail("close() of descriptor %d, which is not open", fd);
	return SIM_RET(err);
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	struct sim_file *file;

	sim_enter("read");
	file = sim_file_get(fd);
	if (!file || !file->ops->read)
		return SIM_RET((ssize_t)-EBADF);
	return SIM_RET(file->ops->read(file, buf, len));
}

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	struct sim_file *file;

	sim_enter("write");
	file = sim_file_get(fd);
	if (!file || !file->ops->write)
		return SIM_RET((ssize_t)-EBADF);
	return SIM_RET(file->ops->write(file, buf, len));
}

/* -- eventfd ---------------------------------------------------------------- */

struct event_file {
	struct sim_file file;
	uint64_t count;
};

static uint32_t event_events(struct sim_file *file)
{
	return EPOLLOUT | (((struct event_file *)file)->count ? EPOLLIN : 0);
}

static void plain_release(struct sim_file *file)
{
	real_free(file);
}

static ssize_t event_read(struct sim_file *file, void *buf, size_t len)
{
	struct event_file *event = (struct event_file *)file;

	if (len < sizeof(event->count))
		return -EINVAL;
	if (!event->count)
		return -EAGAIN;
	memcpy(buf, &event->count, sizeof(event->count));
	event->count = 0;
	return sizeof(event->count);
}

static ssize_t event_write(struct sim_file *file, const void *buf, size_t len)
{
	struct event_file *event = (struct event_file *)file;
	uint64_t more;

	if (len < sizeof(more))
		return -EINVAL;
	memcpy(&more, buf, sizeof(more));
	event->count += more;
	sim_changed();
	return sizeof(more);
}

static const struct sim_file_ops event_ops = {
	.name = "eventfd",
	.events = event_events,
	.release = plain_release,
	.read = event_read,
	.write = event_write,
};

int __wrap_eventfd(unsigned int count, int flags)
{
	struct event_file *event = real_calloc(1, sizeof(*event));

	sim_enter("eventfd");
	event->file.ops = &event_ops;
	event->file.refs = 1;
	event->file.nonblocking = flags & EFD_NONBLOCK;
	event->count = count;
	return SIM_RET(sim_file_install(&event->file));
}

int __wrap_eventfd_read(int fd, eventfd_t *value)
{
	return __wrap_read(fd, value, sizeof(*value)) < 0 ? -1 : 0;
}

int __wrap_eventfd_write(int fd, eventfd_t value)
{
	return __wrap_write(fd, &value, sizeof(value)) < 0 ? -1 : 0;
}

/* -- timers ----------------------------------------------------------------- */

struct timer_file {
	struct sim_file file;
	uint64_t at; /* 0: not set */
};

static uint32_t timer_events(struct sim_file *file)
{
	const struct timer_file *timer = (struct timer_file *)file;

	return timer->at && timer->at <= sim.now ? EPOLLIN : 0;
}

static ssize_t timer_read(struct sim_file *file, void *buf, size_t len)
{
	struct timer_file *timer = (struct timer_file *)file;
	const uint64_t once = 1;

	(void)len;
	if (!timer_events(file))
		return -EAGAIN;
	timer->at = 0;
	memcpy(buf, &once, sizeof(once));
	return sizeof(once);
}

static const struct sim_file_ops timer_ops = {
	.name = "timerfd",
	.events = timer_events,
	.release = plain_release,
	.read = timer_read,
};

int __wrap_timerfd_create(int clock, int flags)
{
	struct timer_file *timer = real_calloc(1, sizeof(*timer));

	(void)clock;
	(void)flags;
	sim_enter("timerfd_create");
	timer->file.ops = &timer_ops;
	timer->file.refs = 1;
	return SIM_RET(sim_file_install(&timer->file));
}

static void timer_fires(void *arg)
{
	(void)arg;
	sim_changed();
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	struct timer_file *timer;
	uint64_t ns = (uint64_t)when->it_value.tv_sec * SIM_S +
		      (uint64_t)when->it_value.tv_nsec;

	(void)old;
	sim_enter("timerfd_settime");
	timer = (struct timer_file *)sim_file_get(fd);
	if (!timer || timer->file.ops != &timer_ops)
		return SIM_RET(-EBADF);
	timer->at = ns ? ns + (flags & TFD_TIMER_ABSTIME ? 0 : sim.now) : 0;
	if (timer->at)
		sim_event_at(timer->at, timer_fires, NULL);
	return 0;
}

/* -- epoll ------------------------------------------------------------------ */

struct sim_watch {
	struct sim_watch *next;	 /* of the same set */
	struct sim_watch *other; /* of the same file */
	struct epoll_file *set;
	struct sim_file *file;
	int fd;
	struct epoll_event event;
};

struct epoll_file {
	struct sim_file file;
	struct sim_watch *watches;
	unsigned int turn; /* the kernel's list rotates, too */
};

static uint32_t events_of(struct sim_file *file)
{
	return file->ops->events ? file->ops->events(file) : 0;
}

static uint32_t watch_events(const struct sim_watch *watch)
{
	return events_of(watch->file) &
	       (watch->event.events ?
			watch->event.events | EPOLLERR | EPOLLHUP :
			0);
}

static uint32_t epoll_events(struct sim_file *file)
{
	const struct epoll_file *set = (struct epoll_file *)file;

	for (const struct sim_watch *w = set->watches; w; w = w->next) {
		if (watch_events(w))
			return EPOLLIN;
	}
	return 0;
}

static void unwatch(struct sim_watch *watch)
{
	struct sim_watch **at;

	for (at = &watch->set->watches; *at != watch; at = &(*at)->next)
		;
	*at = watch->next;
	for (at = &watch->file->watchers; *at != watch; at = &(*at)->other)
		;
	*at = watch->other;
	real_free(watch);
}

void sim_epoll_forget(struct sim_file *file)
{
	while (file->watchers)
		unwatch(file->watchers);
}

static void epoll_release(struct sim_file *file)
{
	struct epoll_file *set = (struct epoll_file *)file;

	while (set->watches)
		unwatch(set->watches);
	real_free(set);
}

static const struct sim_file_ops epoll_ops = {
	.name = "epoll",
	.events = epoll_events,
	.release = epoll_release,
};

int __wrap_epoll_create1(int flags)
{
	struct epoll_file *set = real_calloc(1, sizeof(*set));

	(void)flags;
	sim_enter("epoll_create1");
	set->file.ops = &epoll_ops;
	set->file.refs = 1;
	return SIM_RET(sim_file_install(&set->file));
}

static int epoll_change(int epfd, int op, int fd, struct epoll_event *event)
{
	struct epoll_file *set = (struct epoll_file *)sim_file_get(epfd);
	struct sim_file *file = sim_file_get(fd);
	struct sim_watch *w;

	if (!set || !file || set->file.ops != &epoll_ops)
		return -EBADF;
	for (w = set->watches; w; w = w->next) {
		if (w->file == file && w->fd == fd)
			break;
	}
	if (op == EPOLL_CTL_ADD) {
		if (w)
			return -EEXIST;
		if (sim_fault(SIM_FAULT_MEMORY))
			return -ENOMEM;
		w = real_calloc(1, sizeof(*w));
		*w = (struct sim_watch){ set->watches, file->watchers,
					 set,	       file,
					 fd,	       *event };
		set->watches = w;
		file->watchers = w;
		sim_changed();
		return 0;
	}
	if (!w)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL)
		unwatch(w);
	else
		w->event = *event;
	sim_changed();
	return 0;
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	sim_enter("epoll_ctl");
	return SIM_RET(epoll_change(epfd, op, fd, event));
}

static int collect(struct epoll_file *set, struct epoll_event *events, int max)
{
	unsigned int number = 0;
	int count = 0;

	/* Two rounds over the list, so that later entries sometimes come
	 * first. */
	for (int round = 0; round < 2; round++) {
		number = 0;
		for (struct sim_watch *w = set->watches; w && count < max;
		     w = w->next, number++) {
			uint32_t seen = watch_events(w);

			if (!seen || (number >= set->turn) == (round == 1))
				continue;
			events[count].events = seen;
			events[count++].data = w->event.data;
			/* Not reported again until it is armed again. */
			if (w->event.events & EPOLLONESHOT)
				w->event.events = 0;
		}
	}
	set->turn = number ? (set->turn + 1) % (number + 1) : 0;
	return count;
}

static uint64_t deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? SIM_NEVER :
				sim.now + (uint64_t)timeout_ms * SIM_MS;
}

int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max,
		      int timeout)
{
	uint64_t deadline = deadline_of(timeout);

	sim_enter("epoll_wait");
	for (;;) {
		struct epoll_file *set =
			(struct epoll_file *)sim_file_get(epfd);
		int count;

		if (!set || set->file.ops != &epoll_ops)
			return SIM_RET(-EBADF);
		count = collect(set, events, max);
		if (count || sim.now >= deadline)
			return count;
		sim_sleep_until(deadline, "epoll_wait");
	}
}

/* -- poll ------------------------------------------------------------------- */

static int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline)
{
	for (;;) {
		int ready = 0;

		for (nfds_t i = 0; i < count; i++) {
			struct sim_file *file = sim_file_get(fds[i].fd);
			uint32_t seen = file ? events_of(file) : POLLNVAL;

			fds[i].revents =
				fds[i].fd < 0 ?
					0 :
					(short)(seen &
						((uint32_t)(unsigned short)
							 fds[i]
								 .events |
						 EPOLLERR | EPOLLHUP |
						 POLLNVAL));
			ready += fds[i].revents != 0;
		}
		if (ready || sim.now >= deadline)
			return ready;
		sim_sleep_until(deadline, "poll");
	}
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	sim_enter("poll");
	return poll_until(fds, count, deadline_of(timeout));
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count,
		 const struct timespec *timeout, const sigset_t *mask)
{
	(void)mask;
	sim_enter("ppoll");
	return poll_until(fds, count,
			  timeout ?
				  sim.now + (uint64_t)timeout->tv_sec * SIM_S +
					  (uint64_t)timeout->tv_nsec :
				  SIM_NEVER);
}
