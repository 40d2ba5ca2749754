/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads for work that may block. The hub outlives the device while one of
 * them runs.
 */
#include "devd/errand.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "devd/region.h"

/* Beyond the default number of clients; more wait until one is over. */
#define OUT_MAX 512
#define STACK (256u << 10)

int wf_devd_errand_ms = 2000;

struct wf_devd_errands {
	pthread_mutex_t lock; /* for all below */
	unsigned int out;
	bool closed; /* the device is gone, and wake_fd with it */
	int wake_fd;
	struct wf_list waiting, running, over;
};

/* -- what they do ---------------------------------------------------------- */

/* Exactly one descriptor is taken; the kernel drops others here. */
static int receive(int sock, struct wf_broker_request *request, int *fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { request, sizeof(*request) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	struct cmsghdr *cmsg;
	ssize_t got;

	*fd = -1;
	got = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return -EPIPE;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET &&
	    cmsg->cmsg_type == SCM_RIGHTS &&
	    cmsg->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(cmsg), sizeof(int));
	return got == (ssize_t)sizeof(*request) &&
			       !(msg.msg_flags & MSG_TRUNC) ?
		       0 :
		       -EPIPE;
}

static void run(struct wf_devd_errand *errand)
{
	int fd;

	switch (errand->kind) {
	case WF_DEVD_ERRAND_RECEIVE:
		errand->err = receive(errand->fd, &errand->request, &fd);
		if (!errand->err)
			errand->gift =
				wf_devd_gift_take(&errand->request, fd,
						  errand->pid, errand->limit);
		else if (fd >= 0)
			close(fd);
		break;
	case WF_DEVD_ERRAND_CLOSE:
		close(errand->fd);
		errand->fd = -1;
		break;
	case WF_DEVD_ERRAND_UNMAP:
		wf_devd_region_unmap(errand->gift.region);
		errand->gift.region = NULL;
		break;
	}
}

/* There is no owner to take it. */
static void drop(struct wf_devd_errand *errand)
{
	if (errand->gift.region)
		wf_devd_region_unmap(errand->gift.region);
	if (errand->gift.memory >= 0)
		close(errand->gift.memory);
	if (errand->fd >= 0)
		close(errand->fd);
	free(errand);
}

static void free_hub(struct wf_devd_errands *hub)
{
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

static void nudge(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* it is full of nudges already */
}

static void *thread_main(void *arg)
{
	struct wf_devd_errand *errand = arg;
	struct wf_devd_errands *hub = errand->hub;
	bool closed, last;

	run(errand);
	pthread_mutex_lock(&hub->lock);
	wf_base_list_unlink(&errand->link);
	closed = hub->closed;
	if (!closed) {
		wf_base_list_add_tail(&hub->over, &errand->link);
		nudge(hub->wake_fd);
	}
	last = !--hub->out && closed;
	pthread_mutex_unlock(&hub->lock);
	if (closed)
		drop(errand);
	if (last)
		free_hub(hub);
	return NULL;
}

/* -- sending --------------------------------------------------------------- */

static bool start_locked(struct wf_devd_errands *hub,
			 struct wf_devd_errand *errand)
{
	pthread_attr_t attr;
	sigset_t all, mask;
	bool started;

	if (hub->out >= OUT_MAX)
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	/* Signals of the process are for others. */
	sigfillset(&all);
	sigdelset(&all, SIGUSR2);
	errand->sent_at = wf_base_clock_ns();
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	started = !pthread_create(&errand->thread, &attr, thread_main, errand);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_attr_destroy(&attr);
	if (!started)
		return false;
	hub->out++;
	wf_base_list_add_tail(&hub->running, &errand->link);
	return true;
}

int wf_devd_errand_send(struct wf_devd_errands *hub,
			const struct wf_devd_errand *what,
			struct wf_devd_errand **sent)
{
	struct wf_devd_errand *errand = malloc(sizeof(*errand));

	if (!errand)
		return -ENOMEM;
	*errand = *what;
	errand->hub = hub;
	*sent = errand;
	pthread_mutex_lock(&hub->lock);
	if (!start_locked(hub, errand))
		wf_base_list_add_tail(&hub->waiting, &errand->link);
	pthread_mutex_unlock(&hub->lock);
	return 0;
}

static struct wf_devd_errand *first_of(struct wf_list *list)
{
	struct wf_list *first = list->next;

	if (first == list)
		return NULL;
	wf_base_list_unlink(first);
	return wf_container_of(first, struct wf_devd_errand, link);
}

struct wf_devd_errand *wf_devd_errand_next(struct wf_devd_errands *hub)
{
	struct wf_devd_errand *errand, *waiting;

	pthread_mutex_lock(&hub->lock);
	errand = first_of(&hub->over);
	waiting = first_of(&hub->waiting);
	if (waiting && !start_locked(hub, waiting))
		wf_base_list_add_tail(&hub->waiting, &waiting->link);
	pthread_mutex_unlock(&hub->lock);
	return errand;
}

void wf_devd_errands_hurry(struct wf_devd_errands *hub, uint64_t now)
{
	uint64_t limit = (uint64_t)wf_devd_errand_ms * WF_NS_PER_MS;
	struct wf_list *pos, *tmp;

	pthread_mutex_lock(&hub->lock);
	wf_list_for_each (pos, tmp, &hub->running) {
		struct wf_devd_errand *errand =
			wf_container_of(pos, struct wf_devd_errand, link);

		/* A thread is there as long as its errand is in the list. */
		if (now > errand->sent_at && now - errand->sent_at > limit)
			pthread_kill(errand->thread, SIGUSR2);
	}
	pthread_mutex_unlock(&hub->lock);
}

bool wf_devd_errand_needed(int fd)
{
	const int on = 1;

	shutdown(fd, SHUT_RD);
	/* The sender's credentials now come with each message, even with an
	 * empty one, and are truncated, because there is no room for them: this
	 * distinguishes a message from the end. */
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return true;
	for (int i = 0; i < 4; i++) {
		struct iovec iov = { (char[1]){ 0 }, 1 };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t got = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

		/* An error that the other side left is reported first. */
		if (got >= 0)
			return msg.msg_flags & MSG_CTRUNC;
	}
	return true;
}

/* -- the hub --------------------------------------------------------------- */

int wf_devd_errands_open(struct wf_devd_errands **opened, int wake_fd)
{
	struct wf_devd_errands *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return -ENOMEM;
	pthread_mutex_init(&hub->lock, NULL);
	hub->wake_fd = wake_fd;
	wf_base_list_init(&hub->waiting);
	wf_base_list_init(&hub->running);
	wf_base_list_init(&hub->over);
	*opened = hub;
	return 0;
}

void wf_devd_errands_close(struct wf_devd_errands *hub)
{
	struct wf_devd_errand *errand;
	bool last;

	pthread_mutex_lock(&hub->lock);
	hub->closed = true;
	/* Connections that would make us wait are left to the end of the
	 * process: the kernel does not wait then. */
	while ((errand = first_of(&hub->waiting)) ||
	       (errand = first_of(&hub->over))) {
		if (errand->fd >= 0 && wf_devd_errand_needed(errand->fd))
			errand->fd = -1;
		drop(errand);
	}
	last = !hub->out;
	pthread_mutex_unlock(&hub->lock);
	if (last)
		free_hub(hub);
}
