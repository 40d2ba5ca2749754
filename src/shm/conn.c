/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting two endpoints of a node.
 */
#include "shm/conn.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "shm/conn_defs.h"
#include "shm/ep.h"

#define BACKLOG 4096
#define EVENTS 32

/* Someone who connects and says nothing is shown out after this time, or when
 * too many do: they hold descriptors of ours. */
#define GUESTS_MAX 64
#define GUEST_PATIENCE (2 * WF_NS_PER_S)

/* Between two tries to connect where nobody listens yet. */
#define RETRY_EVERY WF_NS_PER_MS

struct guest {
	struct wf_shm_sock sock;
	struct wf_list link;
	uint64_t deadline;
};

/* -- names ----------------------------------------------------------------- */

/* The name of an address, or of every address of this node with that port. */
static socklen_t socket_name(struct sockaddr_un *un, const struct wf_addr *addr,
			     bool any)
{
	char text[WF_ADDR_STR_LEN];
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (any)
		snprintf(text, sizeof(text), "*%d:%u",
			 addr->sa.sa_family == AF_INET ? 4 : 6,
			 wf_base_addr_port(addr));
	else
		wf_base_addr_str(addr, text, sizeof(text));
	/* sun_path[0] stays 0: an abstract name. */
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/%s",
		       text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)len);
}

static int watch(struct wf_shm_ep *ep, struct wf_shm_sock *sock)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLRDHUP,
		.data.ptr = sock,
	};

	return epoll_ctl(ep->epoll_fd, EPOLL_CTL_ADD, sock->fd, &event) ?
		       -errno :
		       0;
}

int wf_shm_conn_listen(struct wf_shm_ep *ep)
{
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, &ep->attr.addr, ep->attr.any_addr);
	int err;

	ep->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ep->epoll_fd < 0)
		return -errno;
	ep->listener.fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ep->listener.fd < 0)
		goto err_errno;
	if (bind(ep->listener.fd, (struct sockaddr *)&un, len) ||
	    listen(ep->listener.fd, BACKLOG))
		goto err_errno;
	err = watch(ep, &ep->listener);
	if (!err)
		return 0;
	wf_shm_conn_unlisten(ep);
	return err;

err_errno:
	err = -errno;
	wf_shm_conn_unlisten(ep);
	return err;
}

static void guest_leave(struct guest *guest)
{
	wf_base_list_del(&guest->link);
	if (guest->sock.fd >= 0)
		close(guest->sock.fd);
	free(guest);
}

void wf_shm_conn_unlisten(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->guests)
		guest_leave(wf_container_of(pos, struct guest, link));
	if (ep->listener.fd >= 0)
		close(ep->listener.fd);
	if (ep->epoll_fd >= 0)
		close(ep->epoll_fd);
	ep->listener.fd = -1;
	ep->epoll_fd = -1;
}

void wf_shm_conn_forked(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->guests) {
		struct guest *guest = wf_container_of(pos, struct guest, link);

		close(guest->sock.fd);
		guest->sock.fd = -1;
	}
	close(ep->listener.fd);
	close(ep->epoll_fd);
	ep->listener.fd = -1;
	ep->epoll_fd = -1;
}

/* -- who may --------------------------------------------------------------- */

static bool uid_listed(const char *list, uid_t uid)
{
	while (*list) {
		char *end;
		unsigned long id = strtoul(list, &end, 10);

		if (end == list)
			return false;
		if (id == uid)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* Who is at the other end, and whether we deal with them. */
static int check_peer(const struct wf_shm_ep *ep, int fd, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);
	const char *allow = ep->attr.allow_uid;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len))
		return -errno;
	if (cred->uid == geteuid() || (allow && !strcmp(allow, "any")) ||
	    (allow && uid_listed(allow, cred->uid)))
		return 0;
	wf_warn("user %u (process %d) is not allowed here, see "
		"FI_WEFT_ALLOW_UID",
		(unsigned int)cred->uid, (int)cred->pid);
	return -EACCES;
}

/* -- connecting ------------------------------------------------------------ */

static int connect_to(const struct wf_addr *addr, bool any)
{
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, addr, any);
	int fd, err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&un, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* An endpoint listens under its own address, or under any address of the node.
 */
static int connect_node(const struct wf_addr *addr)
{
	int fd = connect_to(addr, false);

	if (fd != -ECONNREFUSED)
		return fd;
	if (!wf_base_addr_is_local(addr))
		return -EHOSTUNREACH;
	return connect_to(addr, true);
}

static int send_with_fd(int sock, const void *buf, size_t len, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -errno;
}

static int say_hello(struct wf_shm_out *out, int memfd)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	struct wf_shm_hello hello = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(hello),
			.features = WF_SHM_FEATURES,
		},
		.process = wf_shm_mover_process(),
		.slots_log2 = attr->slots_log2,
		.lines_log2 = attr->lines_log2,
	};

	static_assert(sizeof(struct sockaddr_in6) <= sizeof(hello.addr),
		      "both families fit");
	wf_shm_mover_own_probe(&hello.probe_addr, &hello.probe_value);
	memcpy(hello.addr, &attr->addr, wf_base_addr_len(&attr->addr));
	return send_with_fd(out->sock.fd, &hello, sizeof(hello), memfd);
}

/* Makes the ring and passes it on. */
static int greet(struct wf_shm_out *out)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	struct ucred cred;
	int memfd, err;

	err = check_peer(out->ep, out->sock.fd, &cred);
	if (err)
		return err;
	err = wf_shm_region_create(&out->region, attr->slots_log2,
				   attr->lines_log2, &memfd);
	if (err)
		return err;
	err = say_hello(out, memfd);
	close(memfd);
	if (!err)
		err = watch(out->ep, &out->sock);
	if (err)
		wf_shm_region_unmap(&out->region);
	return err;
}

static void hang_up(struct wf_shm_out *out)
{
	close(out->sock.fd);
	out->sock.fd = -1;
}

static void give_up(struct wf_shm_out *out, int err)
{
	char text[WF_ADDR_STR_LEN];

	wf_warn("no way to %s: %s",
		wf_base_addr_str(&out->addr, text, sizeof(text)),
		strerror(err));
	wf_shm_out_doom(out, err, true);
}

static bool passes(int err)
{
	switch (err) {
	case ECONNREFUSED: /* not there yet */
	case EAGAIN:	   /* its backlog is full */
	case ENOMEM:
	case ENOSPC:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ETOOMANYREFS:
		return true;
	default:
		return false;
	}
}

void wf_shm_conn_try(struct wf_shm_out *out)
{
	uint64_t now;
	int err;

	err = connect_node(&out->addr);
	if (err >= 0) {
		out->sock.fd = err;
		err = greet(out);
		if (!err) {
			out->state = WF_SHM_OUT_GREETED;
			return;
		}
		hang_up(out);
	}
	now = wf_base_clock_ns();
	out->retry_at = now + RETRY_EVERY;
	if (!passes(-err))
		give_up(out, -err);
	else if (now >= out->deadline)
		give_up(out, err == -ECONNREFUSED ? EHOSTUNREACH : -err);
}

/* It went away before it answered, or has no room for us now. */
static void start_over(struct wf_shm_out *out, int err)
{
	uint64_t now = wf_base_clock_ns();

	wf_shm_out_release(out);
	out->state = WF_SHM_OUT_CONNECTING;
	out->retry_at = now + RETRY_EVERY;
	if (now >= out->deadline)
		give_up(out, err);
}

/* The answer to our hello. */
static void on_out(struct wf_shm_out *out, uint32_t events)
{
	struct wf_shm_welcome welcome = { 0 };
	struct ucred cred = { 0 };
	socklen_t cred_len = sizeof(cred);
	ssize_t got;
	int status;

	if (out->state != WF_SHM_OUT_GREETED) {
		if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) &&
		    wf_shm_out_settle(out))
			wf_shm_out_doom(out, ECONNRESET, false);
		return;
	}
	got = recv(out->sock.fd, &welcome, sizeof(welcome), 0);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		start_over(out, ECONNRESET);
		return;
	}
	status = welcome.greeting.status;
	if (got < (ssize_t)sizeof(welcome.greeting) || status < 0 ||
	    welcome.greeting.magic != WF_SHM_MAGIC)
		status = EPROTO;
	else if (!status && (welcome.greeting.layout != WF_SHM_LAYOUT ||
			     got < (ssize_t)sizeof(welcome)))
		status = EPROTO;
	if (passes(status)) {
		start_over(out, status);
		return;
	}
	if (status) {
		if (status == EPROTO)
			wf_warn("peer speaks another layout (%u, ours is %u)",
				welcome.greeting.layout, WF_SHM_LAYOUT);
		give_up(out, status);
		return;
	}
	getsockopt(out->sock.fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len);
	wf_shm_mover_open(&out->mover, cred.pid, welcome.process,
			  welcome.probe_addr, welcome.probe_value,
			  out->ep->attr.cma);
	out->features = welcome.greeting.features & WF_SHM_FEATURES;
	wf_shm_out_opened(out);
}

/* -- being connected to ---------------------------------------------------- */

static ssize_t recv_with_fd(int sock, void *buf, size_t len, int *fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg;

	*fd = -1;
	if (got < 0)
		return -errno;
	if (msg.msg_flags & MSG_CTRUNC)
		*fd = -EMFILE; /* unless one of several got through */
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		size_t count;

		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int passed;

			memcpy(&passed, CMSG_DATA(cmsg) + i * sizeof(int),
			       sizeof(int));
			if (*fd < 0)
				*fd = passed;
			else
				close(passed); /* we asked for one */
		}
	}
	return got;
}

static void answer(int fd, int status)
{
	struct wf_shm_welcome welcome = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(welcome),
			.features = WF_SHM_FEATURES,
			.status = status,
		},
		.process = wf_shm_mover_process(),
	};

	wf_shm_mover_own_probe(&welcome.probe_addr, &welcome.probe_value);
	/* A peer that is gone again is seen as such by epoll. */
	(void)!send(fd, &welcome, sizeof(welcome), MSG_NOSIGNAL);
}

/* Makes a channel out of a hello. 0, or the positive errno to answer. */
static int admit(struct wf_shm_ep *ep, struct guest *guest,
		 const struct wf_shm_hello *hello, int memfd,
		 const struct ucred *cred)
{
	struct wf_shm_region region = { 0 };
	struct wf_shm_in *in;
	struct wf_addr addr;
	uint64_t src;
	int err;

	if (wf_base_addr_set(&addr, hello->addr, sizeof(hello->addr)))
		return EPROTO;
	err = wf_shm_region_map(&region, memfd, hello->slots_log2,
				hello->lines_log2);
	if (err)
		return -err;
	src = ep->attr.names.find(ep->attr.names.arg, &addr);
	in = wf_shm_in_open(ep, &region, guest->sock.fd, &addr, src);
	if (!in)
		goto err_unmap;
	in->features = hello->greeting.features & WF_SHM_FEATURES;
	wf_shm_mover_open(&in->mover, cred->pid, hello->process,
			  hello->probe_addr, hello->probe_value, ep->attr.cma);
	err = wf_shm_ep_add_in(ep, in);
	if (err)
		goto err_free;
	epoll_ctl(ep->epoll_fd, EPOLL_CTL_DEL, guest->sock.fd, NULL);
	err = watch(ep, &in->sock);
	if (err) {
		ep->in_count--;
		goto err_free;
	}
	guest->sock.fd = -1; /* the channel's now */
	answer(in->sock.fd, 0);
	return 0;

err_free:
	free(in);
err_unmap:
	wf_shm_region_unmap(&region);
	return ENOMEM;
}

static int check_hello(const struct wf_shm_hello *hello, ssize_t got, int memfd)
{
	if (got < (ssize_t)sizeof(hello->greeting) ||
	    hello->greeting.magic != WF_SHM_MAGIC)
		return EPROTO;
	if (hello->greeting.layout != WF_SHM_LAYOUT) {
		wf_warn("refused a peer with layout %u, ours is %u",
			hello->greeting.layout, WF_SHM_LAYOUT);
		return EPROTO;
	}
	if (got < (ssize_t)sizeof(*hello))
		return EPROTO;
	if (memfd < 0)
		return memfd == -EMFILE ? EMFILE : EPROTO;
	return 0;
}

static void on_guest(struct wf_shm_ep *ep, struct guest *guest)
{
	struct wf_shm_hello hello = { 0 };
	struct ucred cred;
	int memfd, status;
	ssize_t got;

	got = recv_with_fd(guest->sock.fd, &hello, sizeof(hello), &memfd);
	if (got == -EAGAIN)
		return;
	if (got <= 0) {
		if (memfd >= 0)
			close(memfd); /* came with an empty message */
		guest_leave(guest);
		return;
	}
	status = -check_peer(ep, guest->sock.fd, &cred);
	if (!status)
		status = check_hello(&hello, got, memfd);
	if (!status)
		status = admit(ep, guest, &hello, memfd, &cred);
	if (status)
		answer(guest->sock.fd, status);
	if (memfd >= 0)
		close(memfd);
	guest_leave(guest);
}

static void on_listener(struct wf_shm_ep *ep, uint64_t now)
{
	for (int i = 0; i < GUESTS_MAX; i++) {
		struct guest *guest;
		int fd = accept4(ep->listener.fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return; /* none, or none that we can take now */
		guest = malloc(sizeof(*guest));
		if (!guest) {
			close(fd);
			return;
		}
		*guest = (struct guest){
			.sock = { .fd = fd, .kind = WF_SHM_SOCK_GUEST },
			.deadline = now + GUEST_PATIENCE,
		};
		wf_base_list_add_tail(&ep->guests, &guest->link);
		if (watch(ep, &guest->sock))
			guest_leave(guest);
		else
			on_guest(ep, guest);
	}
}

/* -- looking at all of them ------------------------------------------------ */

static void on_event(struct wf_shm_ep *ep, struct wf_shm_sock *sock,
		     uint32_t events, uint64_t now)
{
	struct wf_shm_in *in;

	switch (sock->kind) {
	case WF_SHM_SOCK_LISTENER:
		on_listener(ep, now);
		break;
	case WF_SHM_SOCK_GUEST:
		on_guest(ep, wf_container_of(sock, struct guest, sock));
		break;
	case WF_SHM_SOCK_IN:
		in = wf_container_of(sock, struct wf_shm_in, sock);
		/* Level-triggered: take it out, or it fires until reaped. */
		epoll_ctl(ep->epoll_fd, EPOLL_CTL_DEL, sock->fd, NULL);
		in->ended = true;
		ep->reap = true;
		wf_shm_ep_busy(ep);
		break;
	case WF_SHM_SOCK_OUT:
		on_out(wf_container_of(sock, struct wf_shm_out, sock), events);
		break;
	}
}

/* Only here, where no event refers to them: the oldest stand first. */
static void show_out_guests(struct wf_shm_ep *ep, uint64_t now)
{
	struct wf_list *pos, *tmp;
	int count = 0;

	wf_list_for_each (pos, tmp, &ep->guests)
		count++;
	wf_list_for_each (pos, tmp, &ep->guests) {
		struct guest *guest = wf_container_of(pos, struct guest, link);

		if (count-- > GUESTS_MAX || now >= guest->deadline)
			guest_leave(guest);
	}
}

void wf_shm_conn_poll(struct wf_shm_ep *ep, uint64_t now)
{
	struct epoll_event events[EVENTS];
	struct wf_list *pos, *tmp;
	int count;

	count = epoll_wait(ep->epoll_fd, events, EVENTS, 0);
	for (int i = 0; i < count; i++)
		on_event(ep, events[i].data.ptr, events[i].events, now);
	show_out_guests(ep, now);
	if (!ep->connecting)
		return;
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->state == WF_SHM_OUT_CONNECTING && now >= out->retry_at)
			wf_shm_conn_try(out);
	}
}
