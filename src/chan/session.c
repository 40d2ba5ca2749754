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
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/list.h"
#include "base/log.h"
#include "base/users.h"

/* A device that does not answer for this long counts as gone. While a CLOSE
 * waits for the running job, the device reports that it is alive. */
int wf_chan_session_reply_ms = 5000;
/* A device that was silent before has only this long to answer: it may be
 * stopped (SIGSTOP), and would cost every request the time above. */
#define SHORT_MS 500
#define LOOK_EVERY WF_NS_PER_MS
/* After this much silence we ask whether it is alive. */
#define QUIET (1 * WF_NS_PER_S)
#define SILENT_MAX 4

struct wf_chan_session {
	struct wf_list link; /* under table_lock, as refs */
	unsigned int refs;
	struct wf_fork_watch watch;
	pthread_mutex_t lock; /* one request at a time */
	int fd;
	int patience;	    /* ms for a reply */
	uint64_t pinged_at; /* under lock: 0, or since when a reply is due that
			     * nobody waits for */
	atomic_bool dead;
	_Atomic uint64_t looked_at, heard_at;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list table = { &table, &table };
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* Sockets whose device did not answer the last time. The lock also serializes
 * log lines about sockets. */
static pthread_mutex_t silent_lock = PTHREAD_MUTEX_INITIALIZER;
static char silent[SILENT_MAX][sizeof(((struct sockaddr_un *)0)->sun_path)];
static unsigned int next_silent;

/* Another thread may have held any of our locks when the process forked; in the
 * child nobody does. The table starts empty; a user of a session of the parent
 * keeps it, dead, until its channels are released. */
static void table_in_child(void)
{
	pthread_mutex_init(&table_lock, NULL);
	pthread_mutex_init(&silent_lock, NULL);
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

/* -- those that did not answer --------------------------------------------- */

static int patience_with(const char *socket)
{
	int ms = wf_chan_session_reply_ms;

	pthread_mutex_lock(&silent_lock);
	for (int i = 0; i < SILENT_MAX; i++) {
		if (!strcmp(silent[i], socket))
			ms = SHORT_MS;
	}
	pthread_mutex_unlock(&silent_lock);
	return ms;
}

static void note_silence(const char *socket, bool is_silent)
{
	bool known = false;

	pthread_mutex_lock(&silent_lock);
	for (int i = 0; i < SILENT_MAX; i++) {
		if (strcmp(silent[i], socket))
			continue;
		known = true;
		if (!is_silent)
			silent[i][0] = '\0';
	}
	/* connect_to() knows the length. */
	if (is_silent && !known)
		strcpy(silent[next_silent++ % SILENT_MAX], socket);
	pthread_mutex_unlock(&silent_lock);
}

/* -- connecting ------------------------------------------------------------ */

/* One log line per foreign listener, not one for every look. */
static void report_stranger(const char *socket, uid_t uid)
{
	static char reported[sizeof(((struct sockaddr_un *)0)->sun_path)];
	bool again;

	pthread_mutex_lock(&silent_lock);
	again = !strcmp(reported, socket);
	strcpy(reported, socket); /* connect_to() knows the length */
	pthread_mutex_unlock(&silent_lock);
	if (again)
		return;
	if (wf_base_users_is_known(uid))
		wf_warn("%s: the process that listens there belongs to user "
			"%u, not to root or user %u: not used",
			socket, (unsigned int)uid, (unsigned int)geteuid());
	else
		wf_warn("%s: the process that listens there belongs to a user "
			"who has no number in the user namespace of this "
			"process: not used. `weft devd` must run as root or "
			"user %u of this namespace (/proc/self/uid_map), or "
			"this process in the user namespace of `weft devd`",
			socket, (unsigned int)geteuid());
}

/* The kernel says which user's process called listen(). */
static int check_server(int fd, const char *socket)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	/* All users without a number here are shown as one, which may be ours,
	 * too. */
	if (!cred.uid ||
	    (cred.uid == geteuid() && wf_base_users_is_known(cred.uid)))
		return 0;
	report_stranger(socket, cred.uid);
	return -EACCES;
}

static int connect_error(int error)
{
	switch (error) {
	case EACCES:
	case ENOMEM:
		return -error;
	case EAGAIN: /* the queue of the listening socket is full */
		return -EBUSY;
	default:
		return -ENODEV;
	}
}

/* Never blocks: a device that is stopped or overloaded must not stop us. */
static int connect_to(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd, err = 0;

	if (path[0] != '/' || len >= sizeof(un.sun_path))
		return -ENODEV;
	memcpy(un.sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)))
		err = connect_error(errno);
	if (!err)
		err = check_server(fd, path);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* -- messages -------------------------------------------------------------- */

static int send_request(int sock, const struct wf_broker_request *request,
			int fd)
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
			if (fds && i < WF_BROKER_FDS_MAX)
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

static int take_reply(int sock, int timeout_ms, struct wf_broker_reply *reply,
		      int *fds)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WF_BROKER_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	bool reset = false;
	ssize_t got;
	int err;

	err = wait_readable(sock, timeout_ms);
	if (err)
		return err;
	do {
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
		/* A last message may come after the end of the connection is
		 * reported. */
		if (got < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			errno = EINTR;
		}
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		keep_fds(&msg, fds);
	if (got != (ssize_t)sizeof(*reply) || reply->magic != WF_BROKER_MAGIC ||
	    reply->status > 0)
		return -EPIPE;
	/* Descriptors were lost: our table is full. */
	if (msg.msg_flags & MSG_CTRUNC && !reply->status)
		reply->status = -EMFILE;
	return 0;
}

/* -- is it there ----------------------------------------------------------- */

int wf_chan_session_fd(const struct wf_chan_session *session)
{
	return session->fd;
}

void wf_chan_session_end(struct wf_chan_session *session)
{
	if (atomic_exchange(&session->dead, true))
		return;
	/* The device may only have been stopped. When it continues it must find
	 * us gone, because we report to our user that the jobs have ended. We
	 * still read from it: when it closes the connection, it is done. */
	shutdown(session->fd, SHUT_WR);
}

bool wf_chan_session_has_ended(struct wf_chan_session *session)
{
	struct pollfd poll_fd = { .fd = session->fd };

	/* A forked child has closed its copy. */
	return session->fd < 0 || (poll(&poll_fd, 1, 0) > 0 &&
				   poll_fd.revents & (POLLHUP | POLLERR));
}

static bool look(struct wf_chan_session *session)
{
	struct pollfd poll_fd = { .fd = session->fd, .events = POLLRDHUP };

	if (poll(&poll_fd, 1, 0) > 0)
		wf_chan_session_end(session);
	return !atomic_load_explicit(&session->dead, memory_order_relaxed);
}

/* Gives up a device process that has been silent for too long. */
static void give_up(struct wf_chan_session *session)
{
	wf_warn("device process at %s does not answer, given up",
		session->socket);
	note_silence(session->socket, true);
	wf_chan_session_end(session);
}

/* A stopped device keeps its connection: asks it now and then, without waiting
 * for the answer. */
static void ping(struct wf_chan_session *session, uint64_t now)
{
	struct wf_broker_request request = {
		.magic = WF_BROKER_MAGIC,
		.version = WF_BROKER_VERSION,
		.op = WF_BROKER_DEVICE,
		.index = UINT32_MAX,
	};
	struct wf_broker_reply reply;
	int err;

	/* The holder of the lock waits for a reply, and measures the time. */
	if (pthread_mutex_trylock(&session->lock))
		return;
	if (session->pinged_at) {
		err = take_reply(session->fd, 0, &reply, NULL);
		if (!err) {
			session->pinged_at = 0;
			atomic_store(&session->heard_at, now);
		} else if (err != -ETIMEDOUT) {
			wf_chan_session_end(session);
		} else if (now > session->pinged_at &&
			   now - session->pinged_at >
				   (uint64_t)wf_chan_session_reply_ms *
					   WF_NS_PER_MS) {
			give_up(session);
		}
	} else if (now > atomic_load(&session->heard_at) + QUIET) {
		if (send_request(session->fd, &request, -1))
			wf_chan_session_end(session);
		else
			session->pinged_at = now;
	}
	pthread_mutex_unlock(&session->lock);
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
	if (!look(session))
		return false;
	ping(session, now);
	return !atomic_load_explicit(&session->dead, memory_order_relaxed);
}

/* -- one request ----------------------------------------------------------- */

static void close_fds(int *fds)
{
	for (int i = 0; fds && i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* The answer to @request; the answer to a ping comes before it. */
static int await_reply(struct wf_chan_session *session,
		       const struct wf_broker_request *request,
		       struct wf_broker_reply *reply, int *fds)
{
	int err = 0;

	if (session->pinged_at)
		err = take_reply(session->fd, session->patience, reply, NULL);
	session->pinged_at = 0;
	do {
		if (!err)
			err = take_reply(session->fd, session->patience, reply,
					 fds);
		if (!err && reply->op != request->op)
			err = -EPROTO;
		/* A job still runs: the device is alive, and we wait. */
	} while (!err && request->op == WF_BROKER_CLOSE &&
		 reply->status == -EINPROGRESS);
	return err;
}

static int call_locked(struct wf_chan_session *session,
		       struct wf_broker_request *request, int send_fd,
		       struct wf_broker_reply *reply, int *fds)
{
	int err;

	if (atomic_load(&session->dead))
		return -ENODEV;
	request->magic = WF_BROKER_MAGIC;
	request->version = WF_BROKER_VERSION;
	/* If we were refused, the reason can still be read. */
	(void)send_request(session->fd, request, send_fd);
	err = await_reply(session, request, reply, fds);
	if (!err) {
		atomic_store(&session->heard_at, wf_base_clock_ns());
		return reply->status;
	}
	if (err == -ETIMEDOUT)
		give_up(session);
	else
		wf_chan_session_end(session);
	return -ENODEV;
}

int wf_chan_session_call(struct wf_chan_session *session,
			 struct wf_broker_request *request, int send_fd,
			 struct wf_broker_reply *reply, int *fds)
{
	int ret;

	for (int i = 0; fds && i < WF_BROKER_FDS_MAX; i++)
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
	struct wf_broker_request request = { .op = WF_BROKER_HELLO };
	struct wf_broker_reply reply;

	return wf_chan_session_call(session, &request, -1, &reply, NULL);
}

static void free_session(struct wf_chan_session *session)
{
	wf_base_fork_unwatch(&session->watch);
	if (session->fd >= 0)
		close(session->fd);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

static int open_session(const char *socket, struct wf_chan_session **opened)
{
	struct wf_chan_session *session = calloc(1, sizeof(*session));
	int err;

	if (!session)
		return -ENOMEM;
	wf_base_list_init(&session->link);
	session->patience = patience_with(socket);
	session->fd = connect_to(socket);
	if (session->fd < 0) {
		err = session->fd;
		free(session);
		return err;
	}
	strcpy(session->socket, socket); /* connect_to() knows the length */
	pthread_mutex_init(&session->lock, NULL);
	session->refs = 1;
	/* Before it is used: a fork meanwhile must not keep it open. */
	session->watch.in_child = in_child;
	wf_base_fork_watch(&session->watch);
	err = say_hello(session);
	if (err) {
		free_session(session);
		return err;
	}
	note_silence(socket, false);
	session->patience = wf_chan_session_reply_ms;
	*opened = session;
	return 0;
}

static struct wf_chan_session *find_locked(const char *socket)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &table) {
		struct wf_chan_session *session =
			wf_container_of(pos, struct wf_chan_session, link);

		if (!strcmp(session->socket, socket)) {
			/* A dead session stays only with its channels. */
			if (look(session))
				return session;
			wf_base_list_del(pos);
		}
	}
	return NULL;
}

static bool find(const char *socket, struct wf_chan_session **session)
{
	pthread_mutex_lock(&table_lock);
	*session = find_locked(socket);
	if (*session)
		(*session)->refs++;
	pthread_mutex_unlock(&table_lock);
	return *session;
}

/* The lock is not held while we wait for the device: other sessions have their
 * own. */
int wf_chan_session_get(const char *socket, struct wf_chan_session **session)
{
	struct wf_chan_session *opened;
	int err;

	pthread_once(&table_once, watch_table);
	if (find(socket, session))
		return 0;
	err = open_session(socket, &opened);
	if (err)
		return err;
	pthread_mutex_lock(&table_lock);
	*session = find_locked(socket);
	if (*session) {
		(*session)->refs++;
	} else {
		*session = opened;
		wf_base_list_add_tail(&table, &opened->link);
	}
	pthread_mutex_unlock(&table_lock);
	if (*session != opened)
		free_session(opened); /* another thread was faster */
	return 0;
}

void wf_chan_session_hold(struct wf_chan_session *session)
{
	pthread_mutex_lock(&table_lock);
	session->refs++;
	pthread_mutex_unlock(&table_lock);
}

void wf_chan_session_put(struct wf_chan_session *session)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = !--session->refs;
	if (last)
		wf_base_list_del(&session->link);
	pthread_mutex_unlock(&table_lock);
	if (last)
		free_session(session);
}
