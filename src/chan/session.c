/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to software devices, one per process and socket.
 */
#include "chan/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/log.h"

/* A device that answers nothing for so long is as good as gone. Closing waits
 * for the job that runs. */
#define REPLY_MS 5000
#define CLOSE_MS 60000
#define LOOK_EVERY WF_NS_PER_MS

struct wf_chan_session {
	struct wf_list link; /* under table_lock, as refs */
	unsigned int refs;
	struct wf_fork_watch watch;
	pthread_mutex_t lock; /* one request at a time */
	int fd;
	atomic_bool dead;
	_Atomic uint64_t looked_at;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list table = { &table, &table };
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* The device reads this through CMA to learn whether it may. */
static _Atomic uint64_t probe;

static uint64_t choose_probe(void)
{
	uint64_t value, none = 0;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value))
		value = wf_base_clock_ns();
	value |= 1;
	atomic_compare_exchange_strong(&probe, &none, value);
	return atomic_load(&probe);
}

/* Another thread may have held any of our locks when the process forked: in
 * the child nobody does. The table starts empty; whoever has a session in it
 * keeps that, dead, until its channels are released. */
static void table_in_child(void)
{
	pthread_mutex_init(&table_lock, NULL);
	wf_base_list_init(&table);
}

static void watch_table(void)
{
	pthread_atfork(NULL, NULL, table_in_child);
}

static void in_child(struct wf_fork_watch *watch)
{
	struct wf_chan_session *session =
		wf_container_of(watch, struct wf_chan_session, watch);

	close(session->fd);
	session->fd = -1;
	atomic_store(&session->dead, true);
	pthread_mutex_init(&session->lock, NULL);
	wf_base_list_init(&session->link);
}

static int check_server(int fd, bool trusted, const char *socket)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	if (trusted || !cred.uid || cred.uid == geteuid())
		return 0;
	wf_warn("%s belongs to user %u, not to root or us; name it in " //
		WF_DEV_SOCKETS_ENV " if you trust it",
		socket, (unsigned int)cred.uid);
	return -EACCES;
}

/* Many may be waiting to be let in. */
static int connect_soon(int fd, const struct sockaddr_un *un, size_t len)
{
	uint64_t end = wf_base_clock_ns() + REPLY_MS * WF_NS_PER_MS;

	while (connect(fd, (const struct sockaddr *)un, (socklen_t)len)) {
		if (errno == EACCES || errno == ENOMEM)
			return -errno;
		if ((errno != EAGAIN && errno != EINTR) ||
		    wf_base_clock_ns() > end)
			return -ENODEV;
		usleep(1000);
	}
	return 0;
}

static int connect_to(const char *name, bool trusted)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd, err;

	if (len < 2 || len >= sizeof(un.sun_path))
		return -ENODEV;
	memcpy(un.sun_path, name, len);
	if (name[0] == '@')
		un.sun_path[0] = '\0';
	else
		len++;
	/* Never blocks: a device that is stopped must not stop us too. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect_soon(fd, &un,
			   offsetof(struct sockaddr_un, sun_path) + len);
	if (!err)
		err = check_server(fd, trusted, name);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* -- is it there ----------------------------------------------------------- */

int wf_chan_session_fd(const struct wf_chan_session *session)
{
	return session->fd;
}

void wf_chan_session_end(struct wf_chan_session *session)
{
	atomic_store(&session->dead, true);
}

static bool look(struct wf_chan_session *session)
{
	struct pollfd poll_fd = { .fd = session->fd, .events = POLLRDHUP };

	if (poll(&poll_fd, 1, 0) > 0)
		wf_chan_session_end(session);
	return !atomic_load_explicit(&session->dead, memory_order_relaxed);
}

bool wf_chan_session_alive(struct wf_chan_session *session)
{
	uint64_t now;

	if (atomic_load_explicit(&session->dead, memory_order_relaxed))
		return false;
	now = wf_base_clock_ns();
	if (now - atomic_load_explicit(&session->looked_at,
				       memory_order_relaxed) <
	    LOOK_EVERY)
		return true;
	atomic_store_explicit(&session->looked_at, now, memory_order_relaxed);
	return look(session);
}

/* -- requests -------------------------------------------------------------- */

static int send_request(int sock, const struct wf_dev_request *request, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)request, sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	do {
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)sizeof(*request) ? 0 : -EPIPE;
}

static void keep_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *cmsg;
	size_t n, i;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int),
			       sizeof(int));
			if (fds && i < WF_DEV_FDS_MAX)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

static int wait_readable(int sock, int timeout_ms)
{
	uint64_t end = wf_base_clock_ns() + (uint64_t)timeout_ms * WF_NS_PER_MS;
	struct pollfd poll_fd = { .fd = sock, .events = POLLIN };
	uint64_t now;
	int n;

	for (;;) {
		n = poll(&poll_fd, 1, timeout_ms);
		if (n > 0)
			return 0;
		now = wf_base_clock_ns();
		if ((n < 0 && errno != EINTR) || now >= end)
			return -ETIMEDOUT;
		timeout_ms = (int)((end - now) / WF_NS_PER_MS) + 1;
	}
}

static int take_reply(int sock, int timeout_ms, struct wf_dev_reply *reply,
		      int *fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WF_DEV_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t got;
	int err;

	err = wait_readable(sock, timeout_ms);
	if (err)
		return err;
	do {
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		keep_fds(&msg, fds);
	return got == (ssize_t)sizeof(*reply) ? 0 : -EPIPE;
}

static void close_fds(int *fds)
{
	for (int i = 0; fds && i < WF_DEV_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static int call_locked(struct wf_chan_session *session,
		       struct wf_dev_request *request, int send_fd,
		       struct wf_dev_reply *reply, int *fds)
{
	int timeout = request->op == WF_DEV_CLOSE ? CLOSE_MS : REPLY_MS;
	int err;

	if (atomic_load(&session->dead))
		return -ENODEV;
	request->magic = WF_DEV_MAGIC;
	request->version = WF_DEV_VERSION;
	err = send_request(session->fd, request, send_fd);
	if (!err)
		err = take_reply(session->fd, timeout, reply, fds);
	if (!err && (reply->magic != WF_DEV_MAGIC || reply->op != request->op ||
		     reply->status > 0))
		err = -EPROTO;
	if (!err)
		return reply->status;
	if (err == -ETIMEDOUT)
		wf_warn("device process at %s does not answer, given up",
			session->socket);
	atomic_store(&session->dead, true);
	return -ENODEV;
}

int wf_chan_session_call(struct wf_chan_session *session,
			 struct wf_dev_request *request, int send_fd,
			 struct wf_dev_reply *reply, int *fds)
{
	int ret;

	for (int i = 0; fds && i < WF_DEV_FDS_MAX; i++)
		fds[i] = -1;
	pthread_mutex_lock(&session->lock);
	ret = call_locked(session, request, send_fd, reply, fds);
	pthread_mutex_unlock(&session->lock);
	if (ret)
		close_fds(fds);
	return ret;
}

/* -- the table ------------------------------------------------------------- */

static int say_hello(struct wf_chan_session *session)
{
	struct wf_dev_request request = {
		.op = WF_DEV_HELLO,
		.probe_addr = (uint64_t)(uintptr_t)&probe,
		.probe_value = choose_probe(),
	};
	struct wf_dev_reply reply = { 0 };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int err;

	err = wf_chan_session_call(session, &request, -1, &reply, NULL);
	if (err || reply.size)
		return err;
	/* It cannot look into our memory. Where the kernel wants our leave
	 * (Yama), give it; an SVA device needs no less. */
	if (getsockopt(session->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    prctl(PR_SET_PTRACER, (unsigned long)cred.pid, 0, 0, 0))
		return 0;
	return wf_chan_session_call(session, &request, -1, &reply, NULL);
}

static int open_session(const char *socket, bool trusted,
			struct wf_chan_session **opened)
{
	struct wf_chan_session *session = calloc(1, sizeof(*session));
	int err;

	if (!session)
		return -ENOMEM;
	session->fd = connect_to(socket, trusted);
	if (session->fd < 0) {
		err = session->fd;
		goto err_free;
	}
	strcpy(session->socket, socket); /* connect_to() knows the length */
	pthread_mutex_init(&session->lock, NULL);
	session->refs = 1;
	err = say_hello(session);
	if (err)
		goto err_close;
	session->watch.in_child = in_child;
	wf_base_fork_watch(&session->watch);
	*opened = session;
	return 0;

err_close:
	close(session->fd);
	pthread_mutex_destroy(&session->lock);
err_free:
	free(session);
	return err;
}

static struct wf_chan_session *find_locked(const char *socket)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &table) {
		struct wf_chan_session *session =
			wf_container_of(pos, struct wf_chan_session, link);

		if (!strcmp(session->socket, socket)) {
			/* A dead one stays with its channels only. */
			if (look(session))
				return session;
			wf_base_list_del(pos);
		}
	}
	return NULL;
}

int wf_chan_session_get(const char *socket, bool trusted,
			struct wf_chan_session **session)
{
	int err = 0;

	pthread_once(&table_once, watch_table);
	pthread_mutex_lock(&table_lock);
	*session = find_locked(socket);
	if (*session) {
		(*session)->refs++;
	} else {
		err = open_session(socket, trusted, session);
		if (!err)
			wf_base_list_add_tail(&table, &(*session)->link);
	}
	pthread_mutex_unlock(&table_lock);
	return err;
}

void wf_chan_session_put(struct wf_chan_session *session)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = !--session->refs;
	if (last)
		wf_base_list_del(&session->link);
	pthread_mutex_unlock(&table_lock);
	if (!last)
		return;
	wf_base_fork_unwatch(&session->watch);
	if (session->fd >= 0)
		close(session->fd);
	pthread_mutex_destroy(&session->lock);
	free(session);
}
