/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unix sockets of the type SOCK_SEQPACKET with abstract names, which carry
 * descriptors and report the peer's user and process. Names belong to a node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "kernel.h"
#include "real.h"
#include "wrap.h"

#define FDS_MOST 4
#define QUEUE_MOST 256 /* messages, about what the kernel's buffer holds */
#define SIM_UID 1000

struct packet {
	struct packet *next;
	size_t len;
	unsigned int count;
	struct sim_file *files[FDS_MOST];
	char data[];
};

struct unix_file {
	struct sim_file file;
	struct sim_node *node;
	struct sockaddr_un name;
	socklen_t name_len; /* 0: none */
	struct unix_file *next_named;
	bool listening;
	int backlog;
	struct unix_file *waiting; /* to be accepted, oldest first */
	struct unix_file *next_waiting;
	unsigned int waiting_count;
	struct unix_file *peer;
	struct ucred cred; /* the peer's */
	bool connected;
	bool reset;
	struct packet *first, **last;
	unsigned int queued;
};

static struct unix_file *names;
static const struct sim_file_ops unix_ops;

static struct unix_file *make(bool nonblocking)
{
	struct unix_file *sock = real_calloc(1, sizeof(*sock));

	sock->file.ops = &unix_ops;
	sock->file.refs = 1;
	sock->file.nonblocking = nonblocking;
	sock->node = sim_proc_current()->node;
	sock->last = &sock->first;
	return sock;
}

struct sim_file *sim_unix_socket(bool nonblocking)
{
	return &make(nonblocking)->file;
}

static struct unix_file *find_name(const struct sim_node *node,
				   const struct sockaddr *sa, socklen_t len)
{
	for (struct unix_file *s = names; s; s = s->next_named) {
		if (s->node == node && s->name_len == len &&
		    !memcmp(&s->name, sa, len))
			return s;
	}
	return NULL;
}

static int unix_bind(struct sim_file *file, const struct sockaddr *sa,
		     socklen_t len)
{
	struct unix_file *sock = (struct unix_file *)file;

	if (find_name(sock->node, sa, len))
		return -EADDRINUSE;
	memcpy(&sock->name, sa, len);
	sock->name_len = len;
	sock->next_named = names;
	names = sock;
	return 0;
}

static struct ucred own_cred(void)
{
	return (struct ucred){ .pid = sim_proc_current()->pid,
			       .uid = SIM_UID,
			       .gid = SIM_UID };
}

static int unix_listen(struct sim_file *file, int backlog)
{
	struct unix_file *sock = (struct unix_file *)file;

	sock->listening = true;
	sock->backlog = backlog;
	sock->cred = own_cred(); /* what connecting processes see */
	return 0;
}

static int unix_connect(struct sim_file *file, const struct sockaddr *sa,
			socklen_t len)
{
	struct unix_file *sock = (struct unix_file *)file;
	struct unix_file *to = find_name(sock->node, sa, len), *other, **at;

	if (!to || !to->listening)
		return -ECONNREFUSED;
	if (to->waiting_count > (unsigned int)to->backlog ||
	    sim_fault(SIM_FAULT_BUSY))
		return -EAGAIN;
	other = make(true);
	other->peer = sock;
	other->connected = true;
	other->cred = own_cred();
	sock->peer = other;
	sock->connected = true;
	sock->cred = to->cred;
	for (at = &to->waiting; *at; at = &(*at)->next_waiting)
		;
	*at = other;
	to->waiting_count++;
	sim_changed();
	return 0;
}

static struct sim_file *unix_accept(struct sim_file *file, int *err)
{
	struct unix_file *sock = (struct unix_file *)file;
	struct unix_file *first = sock->waiting;

	if (!first) {
		*err = -EAGAIN;
		return NULL;
	}
	sock->waiting = first->next_waiting;
	sock->waiting_count--;
	return &first->file;
}

static uint32_t unix_events(struct sim_file *file)
{
	const struct unix_file *sock = (struct unix_file *)file;
	uint32_t events = 0;

	if (sock->listening)
		return sock->waiting ? EPOLLIN : 0;
	if (sock->first)
		events |= EPOLLIN;
	if (sock->connected && !sock->peer)
		events |= EPOLLIN | EPOLLRDHUP | EPOLLHUP |
			  (sock->reset ? EPOLLERR : 0);
	if (sock->peer && sock->peer->queued < QUEUE_MOST)
		events |= EPOLLOUT;
	return events;
}

static void drop_packets(struct unix_file *sock)
{
	struct packet *packet;

	while ((packet = sock->first)) {
		sock->first = packet->next;
		for (unsigned int i = 0; i < packet->count; i++)
			sim_file_put(packet->files[i]);
		real_free(packet);
	}
}

static void unix_release(struct sim_file *file)
{
	struct unix_file *sock = (struct unix_file *)file, *waiting, **at;

	if (sock->name_len) {
		for (at = &names; *at != sock; at = &(*at)->next_named)
			;
		*at = sock->next_named;
	}
	while ((waiting = sock->waiting)) {
		sock->waiting = waiting->next_waiting;
		if (waiting->peer)
			waiting->peer->reset = true;
		sim_file_put(&waiting->file);
	}
	if (sock->peer) {
		sock->peer->reset |= sock->first != NULL;
		sock->peer->peer = NULL;
	}
	drop_packets(sock);
	sim_changed();
	real_free(sock);
}

/* Of both directions. Bytes that were sent before can be read. */
static int unix_shutdown(struct sim_file *file, int how)
{
	struct unix_file *sock = (struct unix_file *)file;

	if (how != SHUT_RDWR)
		sim_fail("only a shutdown of both directions is simulated");
	if (!sock->connected)
		return -ENOTCONN;
	if (sock->peer)
		sock->peer->peer = NULL;
	sock->peer = NULL;
	sim_changed();
	return 0;
}

/* Takes references to the passed descriptors. */
static int take_files(const struct msghdr *msg, struct packet *packet)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		size_t count;
		int fds[FDS_MOST];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), count * sizeof(int));
		for (size_t i = 0; i < count; i++) {
			struct sim_file *file = sim_file_get(fds[i]);

			if (!file)
				return -EBADF;
			file->refs++;
			packet->files[packet->count++] = file;
		}
	}
	return 0;
}

static ssize_t unix_sendmsg(struct sim_file *file, const struct msghdr *msg,
			    int flags)
{
	struct unix_file *sock = (struct unix_file *)file;
	struct packet *packet;
	size_t len = 0;
	int err;

	(void)flags;
	if (!sock->connected)
		return -ENOTCONN;
	if (sock->reset) {
		sock->reset = false;
		return -ECONNRESET;
	}
	if (!sock->peer)
		return -EPIPE;
	if (sock->peer->queued >= QUEUE_MOST)
		return -EAGAIN;
	if (msg->msg_controllen && sim_fault(SIM_FAULT_REFS))
		return -ETOOMANYREFS;
	if (sim_fault(SIM_FAULT_BUSY))
		return -EAGAIN;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	packet = real_calloc(1, sizeof(*packet) + len);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		memcpy(packet->data + packet->len, msg->msg_iov[i].iov_base,
		       msg->msg_iov[i].iov_len);
		packet->len += msg->msg_iov[i].iov_len;
	}
	err = take_files(msg, packet);
	if (err)
		sim_fail("a closed descriptor is passed to a peer");
	*sock->peer->last = packet;
	sock->peer->last = &packet->next;
	sock->peer->queued++;
	sim_changed();
	return (ssize_t)len;
}

static void give_files(struct packet *packet, struct msghdr *msg)
{
	size_t room = msg->msg_controllen < CMSG_LEN(0) ?
			      0 :
			      (msg->msg_controllen - CMSG_LEN(0)) / sizeof(int);
	struct cmsghdr *c = msg->msg_control;
	int fds[FDS_MOST];
	size_t got = 0;

	for (unsigned int i = 0; i < packet->count; i++) {
		int fd = -EMFILE;

		if (got < room && !(msg->msg_flags & MSG_CTRUNC))
			fd = sim_file_install(packet->files[i]);
		else
			sim_file_put(packet->files[i]);
		if (fd >= 0)
			fds[got++] = fd;
		else
			msg->msg_flags |= MSG_CTRUNC;
	}
	packet->count = 0;
	if (!got) {
		msg->msg_controllen = 0;
		return;
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(got * sizeof(int));
	memcpy(CMSG_DATA(c), fds, got * sizeof(int));
	msg->msg_controllen = CMSG_SPACE(got * sizeof(int));
}

static ssize_t unix_recvmsg(struct sim_file *file, struct msghdr *msg,
			    int flags)
{
	struct unix_file *sock = (struct unix_file *)file;
	struct packet *packet = sock->first;
	size_t done = 0;

	(void)flags;
	msg->msg_flags = 0;
	if (!packet) {
		if (sock->reset) {
			sock->reset = false;
			return -ECONNRESET;
		}
		if (!sock->connected)
			return -EINVAL;
		return sock->peer ? -EAGAIN : 0;
	}
	sock->first = packet->next;
	if (!sock->first)
		sock->last = &sock->first;
	sock->queued--;
	for (size_t i = 0; i < msg->msg_iovlen && done < packet->len; i++) {
		size_t n = packet->len - done;

		if (n > msg->msg_iov[i].iov_len)
			n = msg->msg_iov[i].iov_len;
		memcpy(msg->msg_iov[i].iov_base, packet->data + done, n);
		done += n;
	}
	if (done < packet->len)
		msg->msg_flags |= MSG_TRUNC;
	if (packet->count)
		give_files(packet, msg);
	else
		msg->msg_controllen = 0;
	real_free(packet);
	sim_changed();
	return (ssize_t)done;
}

static int unix_getopt(struct sim_file *file, int level, int name, void *value,
		       socklen_t *len)
{
	const struct unix_file *sock = (struct unix_file *)file;

	if (level != SOL_SOCKET || name != SO_PEERCRED ||
	    *len < sizeof(sock->cred))
		return -ENOPROTOOPT;
	memcpy(value, &sock->cred, sizeof(sock->cred));
	*len = sizeof(sock->cred);
	return 0;
}

static const struct sim_file_ops unix_ops = {
	.name = "unix",
	.events = unix_events,
	.release = unix_release,
	.shutdown = unix_shutdown,
	.sendmsg = unix_sendmsg,
	.recvmsg = unix_recvmsg,
	.bind = unix_bind,
	.connect = unix_connect,
	.listen = unix_listen,
	.accept = unix_accept,
	.getopt = unix_getopt,
};
