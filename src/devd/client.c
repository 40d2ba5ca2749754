/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients: which may connect, their requests and replies, and how they end, by
 * goodbye or by death.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/users.h"
#include "devd/errand.h"
#include "devd/kept.h"
#include "devd/server.h"

/* Linux has it since 6.5; Debian 12's headers are older. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Refused connections that an errand closes at a time. */
#define REFUSING_MAX 64

/* -- replies --------------------------------------------------------------- */

/* A client that does not read is dropped: nobody waits for it. */
static int send_reply(struct wf_devd_client *client,
		      const struct wf_broker_reply *reply, const int *fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WF_BROKER_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)reply, sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	size_t n = 0;

	while (fds && n < WF_BROKER_FDS_MAX && fds[n] >= 0)
		n++;
	if (n && !reply->status) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	}
	return sendmsg(client->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       (ssize_t)sizeof(*reply) ?
		       0 :
		       -EPIPE;
}

/* -- coming and going ------------------------------------------------------ */

/* Anybody can cause this line: at most one a second. */
static bool may_say(uint64_t *said_at)
{
	uint64_t now = wf_base_clock_ns();

	if (*said_at && now - *said_at < WF_NS_PER_S)
		return false;
	*said_at = now;
	return true;
}

static bool is_allowed(const struct wf_devd *devd, uid_t uid)
{
	return wf_devd_user_is_own(uid) ||
	       wf_base_users_have(devd->config.allow_uid, uid);
}

static int peer_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	if (pid <= 0)
		return -1;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len))
		return pidfd;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int watch(struct wf_devd_client *client, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP,
				     .data.ptr = client };

	if (fd < 0)
		return 0;
	return epoll_ctl(client->devd->epoll_fd, EPOLL_CTL_ADD, fd, &event) ?
		       -errno :
		       0;
}

static void refuse(struct wf_devd *devd, int fd, int status)
{
	struct wf_devd_errand errand = {
		.kind = WF_DEVD_ERRAND_CLOSE,
		.fd = fd,
		.gift = WF_DEVD_NO_GIFT,
	};
	struct wf_devd_errand *sent;
	struct wf_devd_client nobody = { .fd = fd };
	struct wf_broker_reply reply = {
		.magic = WF_BROKER_MAGIC,
		.version = WF_BROKER_VERSION,
		.op = WF_BROKER_HELLO,
		.status = status,
	};

	send_reply(&nobody, &reply, NULL);
	if (!wf_devd_errand_needed(fd) ||
	    wf_devd_errand_send(devd->errands, &errand, &sent)) {
		close(fd);
		return;
	}
	/* Each refused client can occupy a thread. */
	if (++devd->refusing < REFUSING_MAX)
		return;
	if (may_say(&devd->deaf_at))
		wf_warn("%u refused connections hold descriptors that take "
			"long to close: new clients wait until one is closed",
			devd->refusing);
	devd->deaf = true;
	epoll_ctl(devd->epoll_fd, EPOLL_CTL_DEL, devd->listen_fd, NULL);
}

/* A refused connection is closed. */
static void listen_again(struct wf_devd *devd)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.ptr = &devd->listener_source };

	devd->refusing--;
	if (devd->deaf &&
	    !epoll_ctl(devd->epoll_fd, EPOLL_CTL_ADD, devd->listen_fd, &event))
		devd->deaf = false;
}

static int admit(struct wf_devd *devd, int fd, const struct ucred *cred)
{
	struct wf_devd_client *client = calloc(1, sizeof(*client));
	struct wf_devd_user *user;
	int err;

	if (!client)
		return -ENOMEM;
	err = wf_devd_user_get(devd, cred->uid, &user);
	if (err) {
		free(client);
		return err;
	}
	*client = (struct wf_devd_client){
		.source = WF_DEVD_CLIENT,
		.devd = devd,
		.fd = fd,
		.pid = cred->pid,
		.uid = cred->uid,
		.user = user,
		.next_iova = WF_DEVD_IOVA_BASE,
	};
	wf_base_list_init(&client->chans);
	client->pidfd = peer_pidfd(fd, cred->pid);
	err = watch(client, fd);
	/* Its end may be hidden by a child that has the socket too. */
	if (!err)
		err = watch(client, client->pidfd);
	if (err) {
		if (client->pidfd >= 0)
			close(client->pidfd);
		wf_devd_user_put(devd, user);
		free(client);
		return err;
	}
	wf_base_list_add_tail(&devd->clients, &client->link);
	devd->n_clients++;
	devd->clients_seen++;
	return 0;
}

int wf_devd_client_accept(struct wf_devd *devd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd, err;

	fd = accept4(devd->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		close(fd);
		return 0;
	}
	if (!is_allowed(devd, cred.uid)) {
		if (may_say(&devd->said_at))
			wf_warn("user %u (process %d) is not allowed here, see "
				"--allow-uid",
				(unsigned int)cred.uid, (int)cred.pid);
		refuse(devd, fd, -EACCES);
		return 0;
	}
	err = devd->n_clients < devd->config.clients ? admit(devd, fd, &cred) :
						       -EBUSY;
	if (err) {
		if (may_say(&devd->said_at))
			wf_warn("process %d of user %u is turned away: %s",
				(int)cred.pid, (unsigned int)cred.uid,
				strerror(-err));
		refuse(devd, fd, err);
	}
	return 0;
}

/* Decreases the count last: a thread that reads 0 finds nothing of a client. */
static void free_client(struct wf_devd_client *client)
{
	struct wf_devd *devd = client->devd;

	wf_base_list_del(&client->link);
	if (client->pidfd >= 0)
		close(client->pidfd);
	if (client->n_kept)
		wf_devd_kept_leave(client);
	wf_devd_user_put(devd, client->user);
	free(client);
	devd->n_clients--;
}

static int send_errand(struct wf_devd_client *client,
		       enum wf_devd_errand_kind kind)
{
	struct wf_devd_errand errand = {
		.kind = kind,
		.client = client,
		.fd = client->fd,
		.pid = client->pid,
		.limit = client->devd->config.client_memory,
		.gift = WF_DEVD_NO_GIFT,
	};

	return wf_devd_errand_send(client->devd->errands, &errand,
				   &client->errand);
}

static void free_if_done(struct wf_devd_client *client)
{
	if (!client->gone || client->n_chans || client->pins || client->errand)
		return;
	if (client->fd >= 0 && wf_devd_errand_needed(client->fd) &&
	    !send_errand(client, WF_DEVD_ERRAND_CLOSE))
		return; /* until it is back */
	if (client->fd >= 0)
		close(client->fd);
	free_client(client);
}

void wf_devd_client_forget_all(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->clients)
		free_client(wf_container_of(pos, struct wf_devd_client, link));
}

void wf_devd_client_drop(struct wf_devd_client *client)
{
	struct wf_list *pos, *tmp;

	if (client->gone)
		return;
	/* The descriptors stay: workers ask them whether the client lives. */
	client->gone = true;
	epoll_ctl(client->devd->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
	if (client->pidfd >= 0)
		epoll_ctl(client->devd->epoll_fd, EPOLL_CTL_DEL, client->pidfd,
			  NULL);
	/* It sees the end when the connection is closed: no worker uses its
	 * memory then. */
	shutdown(client->fd, SHUT_RD);
	client->pins++; /* reaping the last channel must not free it here */
	wf_list_for_each (pos, tmp, &client->chans)
		wf_devd_request_close(
			wf_container_of(pos, struct wf_devd_chan, in_client));
	client->pins--;
	free_if_done(client);
}

void wf_devd_client_reap(struct wf_devd_chan *chan)
{
	struct wf_devd_client *client = chan->client;
	struct wf_broker_reply reply = {
		.magic = WF_BROKER_MAGIC,
		.version = WF_BROKER_VERSION,
		.op = WF_BROKER_CLOSE,
		.chan = chan->id,
	};
	bool answer = chan->answer && !client->gone;

	wf_devd_chan_free(chan);
	if (answer && send_reply(client, &reply, NULL))
		wf_devd_client_drop(client);
	else
		free_if_done(client);
}

static void put_out(struct wf_devd_client *client)
{
	wf_warn("process %d of user %u blocked a worker by its interrupt: the user is "
		"no longer served",
		(int)client->pid, (unsigned int)client->uid);
	client->user->barred = true;
	wf_devd_client_drop(client);
}

/* False: it does not read. */
static bool tell_waiting(struct wf_devd_client *client)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &client->chans) {
		struct wf_devd_chan *chan =
			wf_container_of(pos, struct wf_devd_chan, in_client);
		struct wf_broker_reply reply = {
			.magic = WF_BROKER_MAGIC,
			.version = WF_BROKER_VERSION,
			.op = WF_BROKER_CLOSE,
			.chan = chan->id,
			.status = -EINPROGRESS,
		};

		if (chan->answer && send_reply(client, &reply, NULL))
			return false;
	}
	return true;
}

void wf_devd_client_tick(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->clients) {
		struct wf_devd_client *client =
			wf_container_of(pos, struct wf_devd_client, link);

		if (client->gone)
			continue;
		if (atomic_load(&client->spoiler) && !client->user->own)
			put_out(client);
		else if (!tell_waiting(client))
			wf_devd_client_drop(client);
	}
}

bool wf_devd_client_here(const struct wf_devd_client *client)
{
	struct pollfd fds[] = {
		{ .fd = client->fd, .events = POLLRDHUP },
		{ .fd = client->pidfd, .events = POLLIN },
	};

	return client->pidfd >= 0 && !poll(fds, 2, 0);
}

/* -- requests -------------------------------------------------------------- */

/* One request, unless it carries descriptors: then it stays where it is, for
 * an errand. -EAGAIN: none; -EPIPE: no more of them. */
static int take_request(struct wf_devd_client *client,
			struct wf_broker_request *request, bool *carries)
{
	struct iovec iov = { request, sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	*carries = false;
	/* Descriptors that find no room are dropped here, but the message has
	 * them, too: none of them ends. */
	got = recvmsg(client->fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EPIPE;
	*carries = msg.msg_flags & MSG_CTRUNC;
	if (*carries)
		return 0;
	got = recv(client->fd, request, sizeof(*request),
		   MSG_DONTWAIT | MSG_TRUNC);
	return got == (ssize_t)sizeof(*request) ? 0 : -EPIPE;
}

static void discard(struct wf_devd *devd, struct wf_devd_gift *gift)
{
	if (gift->memory >= 0)
		close(gift->memory);
	if (gift->region)
		wf_devd_chan_put_region(devd, gift->region);
}

static int answer(struct wf_devd_client *client,
		  const struct wf_broker_request *request,
		  struct wf_devd_gift *gift)
{
	int fds[WF_BROKER_FDS_MAX] = { -1, -1, -1 };
	struct wf_broker_reply reply;
	int err = 0;

	if (wf_devd_request_handle(client, request, gift, &reply, fds))
		err = send_reply(client, &reply, fds);
	for (int i = 0; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return err;
}

static int serve_one(struct wf_devd_client *client)
{
	struct wf_devd_gift none = WF_DEVD_NO_GIFT;
	struct wf_broker_request request;
	bool carries;
	int err;

	if (client->errand)
		return -EAGAIN;
	err = take_request(client, &request, &carries);
	if (err)
		return err;
	if (!carries)
		return answer(client, &request, &none);
	epoll_ctl(client->devd->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
	return send_errand(client, WF_DEVD_ERRAND_RECEIVE);
}

void wf_devd_client_serve(struct wf_devd_client *client)
{
	struct pollfd pid = { .fd = client->pidfd, .events = POLLIN };
	int err;

	if (client->gone)
		return;
	/* A CLOSE that is done at once and cannot be answered frees it. */
	client->pins++;
	err = serve_one(client);
	if (err == -EAGAIN && client->pidfd >= 0 && poll(&pid, 1, 0) > 0)
		err = -ESRCH;
	if (err && err != -EAGAIN)
		wf_devd_client_drop(client);
	client->pins--;
	free_if_done(client);
}

/* A message was received, or the connection closed. */
static void go_on(struct wf_devd_client *client, struct wf_devd_errand *errand)
{
	int err = errand->err;

	client->errand = NULL;
	if (errand->kind == WF_DEVD_ERRAND_CLOSE)
		client->fd = -1; /* no worker looks at it any more */
	client->pins++;
	if (!client->gone) {
		if (!err)
			err = watch(client, client->fd);
		if (!err)
			err = answer(client, &errand->request, &errand->gift);
		if (err)
			wf_devd_client_drop(client);
	}
	client->pins--;
	free_if_done(client);
}

void wf_devd_client_returned(struct wf_devd *devd,
			     struct wf_devd_errand *errand)
{
	if (errand->client)
		go_on(errand->client, errand);
	else if (errand->kind == WF_DEVD_ERRAND_CLOSE)
		listen_again(devd);
	discard(devd, &errand->gift);
	free(errand);
}
