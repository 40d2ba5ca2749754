/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions about a kernel, as plain calls of the C library.
 */
#include "fidelity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define IS(what)                                                               \
	do {                                                                   \
		if (!(what))                                                   \
			fidelity_differs(#what, __LINE__);                     \
	} while (0)
#define FAILS(call, error) IS((call) < 0 && errno == (error))

static struct sockaddr_un name_of(const char *text, socklen_t *len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(un.sun_path + 1, text);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(text));
	return un;
}

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	IS(fd >= 0);
	return fd;
}

static uint32_t events_of(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	int set = epoll_create1(0), count;

	IS(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	event.events = 0;
	count = epoll_wait(set, &event, 1, 0);
	IS(count >= 0);
	close(set);
	return count ? event.events : 0;
}

static void connect_pair(int *listener, int *client)
{
	socklen_t len;
	struct sockaddr_un un = name_of("weft-sim/fidelity", &len);

	*listener = unix_socket();
	*client = unix_socket();
	FAILS(connect(*client, (void *)&un, len), ECONNREFUSED);
	IS(!bind(*listener, (void *)&un, len));
	FAILS(connect(*client, (void *)&un, len), ECONNREFUSED);
	IS(!listen(*listener, 8));
	IS(events_of(*listener) == 0);
	IS(!connect(*client, (void *)&un, len));
	IS(events_of(*listener) == EPOLLIN);
}

static void names(void)
{
	socklen_t len;
	struct sockaddr_un un = name_of("weft-sim/name", &len);
	int a = unix_socket(), b = unix_socket();

	IS(!bind(a, (void *)&un, len));
	FAILS(bind(b, (void *)&un, len), EADDRINUSE);
	close(a);
	IS(!bind(b, (void *)&un, len));
	close(b);
}

static void messages(void)
{
	int listener, client, server;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	char buf[8];

	connect_pair(&listener, &client);
	IS(send(client, "one", 3, 0) == 3);
	IS(send(client, "seventeen", 9, 0) == 9);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	IS(server >= 0);
	FAILS(accept4(listener, NULL, NULL, SOCK_NONBLOCK), EAGAIN);
	IS(!getsockopt(server, SOL_SOCKET, SO_PEERCRED, &cred, &len));
	IS(cred.pid == getpid() && cred.uid == geteuid());
	IS(!getsockopt(client, SOL_SOCKET, SO_PEERCRED, &cred, &len));
	IS(cred.pid == getpid());
	IS(recv(server, buf, sizeof(buf), 0) == 3 && !memcmp(buf, "one", 3));
	/* The rest of a message that is too long is lost. */
	IS(recv(server, buf, 4, 0) == 4 && !memcmp(buf, "seve", 4));
	FAILS(recv(server, buf, sizeof(buf), 0), EAGAIN);
	IS(events_of(server) == 0);
	close(client);
	IS(events_of(server) == (EPOLLIN | EPOLLRDHUP | EPOLLHUP));
	IS(recv(server, buf, sizeof(buf), 0) == 0);
	FAILS(send(server, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(server);
	close(listener);
}

/* Of a connection that is not accepted yet, and of one that is. */
static void shutdowns(void)
{
	int listener, client, server;
	char buf[8];

	connect_pair(&listener, &client);
	IS(send(client, "one", 3, 0) == 3);
	IS(!shutdown(client, SHUT_RDWR));
	IS(recv(client, buf, sizeof(buf), 0) == 0);
	FAILS(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	IS(server >= 0);
	IS(events_of(server) == (EPOLLIN | EPOLLRDHUP | EPOLLHUP));
	IS(recv(server, buf, sizeof(buf), 0) == 3);
	IS(recv(server, buf, sizeof(buf), 0) == 0);
	FAILS(send(server, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(client);
	close(server);
	close(listener);
	connect_pair(&listener, &client);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	IS(send(server, "one", 3, 0) == 3);
	IS(!shutdown(client, SHUT_RDWR));
	/* Bytes that were there before can be read. */
	IS(recv(client, buf, sizeof(buf), 0) == 3);
	IS(recv(client, buf, sizeof(buf), 0) == 0);
	close(client);
	close(server);
	close(listener);
}

static void resets(void)
{
	int listener, client, server;
	char buf[8];

	/* Closed with unread data. */
	connect_pair(&listener, &client);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	IS(send(client, "x", 1, 0) == 1);
	close(server);
	FAILS(recv(client, buf, sizeof(buf), 0), ECONNRESET);
	IS(recv(client, buf, sizeof(buf), 0) == 0);
	close(client);
	close(listener);
	/* Never accepted. */
	connect_pair(&listener, &client);
	close(listener);
	IS(events_of(client) & EPOLLHUP);
	FAILS(recv(client, buf, sizeof(buf), 0), ECONNRESET);
	close(client);
}

static void pass(int sock, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t) "m", 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	IS(sendmsg(sock, &msg, 0) == 1);
}

static int take(int sock)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	int fd;

	IS(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1);
	IS(CMSG_FIRSTHDR(&msg) && !(msg.msg_flags & MSG_CTRUNC));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void memory(void)
{
	int listener, client, server, fd, other;
	struct stat st;
	char *a, *b;

	connect_pair(&listener, &client);
	server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	fd = memfd_create("fidelity", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	IS(fd >= 0 && !ftruncate(fd, 8192));
	IS(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	IS(fcntl(fd, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW));
	IS(!fstat(fd, &st) && st.st_size == 8192);
	pass(client, fd);
	a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	IS(a != MAP_FAILED);
	close(fd);
	strcpy(a, "shared");
	other = take(server);
	b = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	IS(b != MAP_FAILED && !strcmp(b, "shared"));
	munmap(a, 8192);
	IS(!strcmp(b, "shared"));
	munmap(b, 8192);
	FAILS(fcntl(server, F_GET_SEALS), EINVAL);
	close(other);
	close(server);
	close(client);
	close(listener);
}

static void events(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	const struct itimerspec soon = { .it_value.tv_nsec = 2000000 };
	const struct itimerspec never = { .it_value.tv_nsec = 0 };
	int set = epoll_create1(0), outer = epoll_create1(0);
	int fd = eventfd(0, EFD_NONBLOCK);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	uint64_t value = 3;

	IS(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), EEXIST);
	FAILS(epoll_ctl(set, EPOLL_CTL_DEL, timer, NULL), ENOENT);
	IS(!epoll_ctl(outer, EPOLL_CTL_ADD, set, &event));
	FAILS(read(fd, &value, sizeof(value)), EAGAIN);
	IS(epoll_wait(outer, &event, 1, 0) == 0);
	IS(write(fd, &value, sizeof(value)) == 8 &&
	   write(fd, &value, sizeof(value)) == 8);
	IS(epoll_wait(outer, &event, 1, 0) == 1);
	/* Reported once, until it is armed again; also inside another set. */
	event.events = EPOLLIN | EPOLLONESHOT;
	IS(!epoll_ctl(outer, EPOLL_CTL_MOD, set, &event));
	IS(epoll_wait(outer, &event, 1, 0) == 1);
	IS(epoll_wait(outer, &event, 1, 0) == 0);
	event.events = EPOLLIN | EPOLLONESHOT;
	IS(!epoll_ctl(outer, EPOLL_CTL_MOD, set, &event));
	IS(epoll_wait(outer, &event, 1, 0) == 1);
	event.events = EPOLLIN;
	IS(!epoll_ctl(outer, EPOLL_CTL_MOD, set, &event));
	IS(read(fd, &value, sizeof(value)) == 8 && value == 6);
	IS(epoll_wait(outer, &event, 1, 0) == 0);
	event.events = EPOLLIN;
	IS(!epoll_ctl(set, EPOLL_CTL_ADD, timer, &event));
	IS(!timerfd_settime(timer, 0, &soon, NULL));
	IS(epoll_wait(outer, &event, 1, -1) == 1);
	/* Readable until it is read or set again. */
	IS(epoll_wait(outer, &event, 1, 0) == 1);
	IS(!timerfd_settime(timer, 0, &never, NULL));
	IS(epoll_wait(outer, &event, 1, 1) == 0);
	IS(write(fd, &value, sizeof(value)) == 8);
	/* Reported once, until it is set again. */
	event.events = EPOLLIN | EPOLLONESHOT;
	IS(!epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
	IS(epoll_wait(set, &event, 1, 0) == 1);
	IS(epoll_wait(set, &event, 1, 0) == 0);
	event.events = EPOLLIN;
	IS(!epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
	IS(epoll_wait(set, &event, 1, 0) == 1);
	/* A closed descriptor is no longer watched. */
	close(fd);
	IS(epoll_wait(outer, &event, 1, 0) == 0);
	close(timer);
	close(set);
	close(outer);
}

static int udp_socket(const char *addr, struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	const int on = 1;
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, addr, &name->sin_addr);
	IS(!setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)));
	IS(!bind(fd, (void *)name, sizeof(*name)));
	IS(!getsockname(fd, (void *)name, &len) && name->sin_port);
	return fd;
}

static ssize_t receive(int fd, struct sockaddr_in *from, int flags)
{
	char buf[64], control[256];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_name = from,
			      .msg_namelen = sizeof(*from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(fd, &msg, flags);
	struct sock_extended_err err;

	if (len < 0 || !(flags & MSG_ERRQUEUE))
		return len;
	IS(CMSG_FIRSTHDR(&msg) &&
	   CMSG_FIRSTHDR(&msg)->cmsg_level == IPPROTO_IP);
	memcpy(&err, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(err));
	IS(err.ee_errno == ECONNREFUSED);
	return len;
}

static void wait_for(int fd, uint32_t events)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);

	IS(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	IS(epoll_wait(set, &event, 1, 1000) == 1);
	IS(event.events & events);
	close(set);
}

static ssize_t send_to(int fd, const struct sockaddr_in *to, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	const struct msghdr msg = { .msg_name = (void *)(uintptr_t)to,
				    .msg_namelen = sizeof(*to),
				    .msg_iov = &iov,
				    .msg_iovlen = 1 };

	return sendmsg(fd, &msg, MSG_DONTWAIT);
}

static void packets(const char *addr)
{
	struct sockaddr_in a, b, from;
	int fd_a = udp_socket(addr, &a), fd_b = udp_socket(addr, &b), third;

	FAILS(receive(fd_b, &from, 0), EAGAIN);
	IS(send_to(fd_a, &b, "packet") == 6);
	wait_for(fd_b, EPOLLIN);
	IS(receive(fd_b, &from, 0) == 6 && from.sin_port == a.sin_port &&
	   from.sin_addr.s_addr == a.sin_addr.s_addr);
	third = socket(AF_INET, SOCK_DGRAM, 0);
	FAILS(bind(third, (void *)&b, sizeof(b)), EADDRINUSE);
	close(third);
	/* Nobody owns the port any more: the sender gets an error. */
	close(fd_b);
	IS(send_to(fd_a, &b, "lost") == 4);
	wait_for(fd_a, EPOLLERR);
	FAILS(receive(fd_a, &from, 0), ECONNREFUSED);
	IS(receive(fd_a, &from, MSG_ERRQUEUE) == 4 &&
	   from.sin_port == b.sin_port);
	FAILS(receive(fd_a, &from, MSG_ERRQUEUE), EAGAIN);
	close(fd_a);
}

/* -- TCP -------------------------------------------------------------------- */

static int tcp_socket(const char *addr, uint16_t port, bool listens)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = port };
	const int on = 1;

	inet_pton(AF_INET, addr, &name.sin_addr);
	IS(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	IS(!bind(fd, (void *)&name, sizeof(name)));
	IS(!listens || !listen(fd, 8));
	return fd;
}

static int result_of(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	IS(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	return err;
}

/* Returns the events once any of @events is among them. */
static uint32_t await(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };
	int set = epoll_create1(0);

	IS(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	IS(epoll_wait(set, &event, 1, 1000) == 1);
	close(set);
	return event.events;
}

static int tcp_connect(const char *addr, const struct sockaddr_in *to)
{
	int fd = tcp_socket(addr, 0, false);

	IS(!connect(fd, (const void *)to, sizeof(*to)) || errno == EINPROGRESS);
	await(fd, EPOLLOUT);
	IS(!result_of(fd));
	return fd;
}

static void tcp_pair(const char *addr, int listener, int *client, int *server)
{
	struct sockaddr_in to, name;
	socklen_t len = sizeof(to);

	IS(!getsockname(listener, (void *)&to, &len) && to.sin_port);
	*client = tcp_connect(addr, &to);
	await(listener, EPOLLIN);
	*server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	IS(*server >= 0);
	len = sizeof(name);
	IS(!getpeername(*client, (void *)&name, &len) &&
	   name.sin_port == to.sin_port);
	IS(!getsockname(*client, (void *)&to, &len));
	IS(!getpeername(*server, (void *)&name, &len) &&
	   name.sin_port == to.sin_port);
}

static void read_all(int fd, size_t len)
{
	char buf[4096];

	while (len) {
		ssize_t got;

		await(fd, EPOLLIN);
		got = recv(fd, buf, sizeof(buf) < len ? sizeof(buf) : len, 0);
		IS(got > 0);
		len -= (size_t)got;
	}
}

static void stream_bytes(const char *addr, int listener)
{
	int client, server;
	size_t sent = 0;
	ssize_t n;
	char buf[4096] = { 0 };

	tcp_pair(addr, listener, &client, &server);
	FAILS(accept4(listener, NULL, NULL, SOCK_NONBLOCK), EAGAIN);
	FAILS(recv(server, buf, sizeof(buf), 0), EAGAIN);
	IS(events_of(server) == 0);
	/* No boundaries between messages. */
	IS(send(client, "one", 3, 0) == 3 && send(client, "two", 3, 0) == 3);
	read_all(server, 6);
	/* Until there is no room. */
	while ((n = send(client, buf, sizeof(buf), MSG_NOSIGNAL)) > 0)
		sent += (size_t)n;
	IS(n < 0 && errno == EAGAIN);
	read_all(server, sent);
	IS(await(client, EPOLLOUT) == EPOLLOUT);
	/* The end of the stream comes after the bytes. */
	IS(send(client, "last", 4, 0) == 4);
	IS(!shutdown(client, SHUT_WR));
	FAILS(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);
	IS(await(server, EPOLLRDHUP) & EPOLLRDHUP);
	read_all(server, 4);
	IS(recv(server, buf, sizeof(buf), 0) == 0);
	/* The other direction is still open. */
	IS(send(server, "back", 4, 0) == 4);
	read_all(client, 4);
	close(server);
	IS(await(client, EPOLLRDHUP) & EPOLLHUP);
	close(client);
}

static void stream_resets(const char *addr, int listener)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);
	int client, server;
	char buf[16];

	/* Closed with unread data. */
	tcp_pair(addr, listener, &client, &server);
	IS(send(client, "x", 1, 0) == 1);
	await(server, EPOLLIN);
	close(server);
	IS(await(client, EPOLLERR) & EPOLLHUP);
	FAILS(recv(client, buf, sizeof(buf), 0), ECONNRESET);
	IS(recv(client, buf, sizeof(buf), 0) == 0);
	FAILS(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(client);
	/* Bytes sent to a closed socket. */
	tcp_pair(addr, listener, &client, &server);
	close(server);
	IS(await(client, EPOLLRDHUP) & EPOLLRDHUP);
	IS(send(client, "x", 1, 0) == 1);
	await(client, EPOLLERR);
	IS(result_of(client) == EPIPE);
	close(client);
	/* A port that is bound, but not listened on. */
	IS(!getsockname(listener, (void *)&to, &len));
	close(listener);
	listener = tcp_socket(addr, to.sin_port, false);
	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (!connect(client, (void *)&to, sizeof(to)))
		IS(false);
	if (errno == EINPROGRESS) {
		await(client, EPOLLOUT);
		errno = result_of(client);
	}
	IS(errno == ECONNREFUSED);
	close(client);
	close(listener);
}

static void streams(const char *addr)
{
	int listener = tcp_socket(addr, 0, true), other;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	const int on = 1;

	IS(!getsockname(listener, (void *)&name, &len));
	other = socket(AF_INET, SOCK_STREAM, 0);
	IS(!setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	FAILS(bind(other, (void *)&name, sizeof(name)), EADDRINUSE);
	close(other);
	stream_bytes(addr, listener);
	stream_resets(addr, listener);
}

static void copies(void)
{
	char here[16], *there = calloc(1, 16);
	const struct iovec local = { here, sizeof(here) };
	struct iovec remote[2] = { { there, 16 }, { (void *)16, 8 } };

	strcpy(there, "of a process");
	IS(process_vm_readv(getpid(), &local, 1, remote, 1, 0) == 16);
	IS(!strcmp(here, there));
	remote[0].iov_len = 8;
	/* Up to the end of the memory. */
	IS(process_vm_readv(getpid(), &local, 1, remote, 2, 0) == 8);
	FAILS(process_vm_readv(getpid(), &local, 1, remote + 1, 1, 0), EFAULT);
	FAILS(process_vm_readv(1 << 21, &local, 1, remote, 1, 0), ESRCH);
	free(there);
}

static void memory_files(void)
{
	char path[32], here[16], *there = calloc(1, 16);
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getpid());
	fd = open(path, O_RDWR | O_CLOEXEC);
	IS(fd >= 0);
	strcpy(there, "of a process");
	IS(pread(fd, here, sizeof(here), (off_t)(uintptr_t)there) == 16);
	IS(!strcmp(here, there));
	IS(pwrite(fd, "as", 2, (off_t)(uintptr_t)there) == 2);
	IS(!strcmp(there, "as a process"));
	FAILS(pread(fd, here, sizeof(here), 16), EIO);
	FAILS(pwrite(fd, here, sizeof(here), 16), EIO);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d/mem", 1 << 21);
	FAILS(open(path, O_RDWR | O_CLOEXEC), ENOENT);
	free(there);
}

void fidelity_run(const char *addr)
{
	names();
	messages();
	shutdowns();
	resets();
	memory();
	events();
	packets(addr);
	streams(addr);
	copies();
	memory_files();
}
