/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over one plain TCP connection, without libfabric: what the kernel's
 * sockets give a program that polls. It must stay that simple: a send() for
 * each message, no batches, no headers.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/test.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACK = 8, CONNECT_S = 5 };

struct plain {
	struct wf_tools_engine_config config;
	int fd;
	uint8_t *memory;
	char error[256];
};

static int fail(struct plain *p, const char *what, int err)
{
	snprintf(p->error, sizeof(p->error), "%s: %s", what, strerror(-err));
	return err;
}

static void rest(const struct plain *p)
{
	if (p->config.yield)
		sched_yield();
}

static int send_all(struct plain *p, size_t len)
{
	size_t at = 0;
	ssize_t sent;

	while (at < len) {
		sent = send(p->fd, p->memory + at, len - at,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent > 0)
			at += (size_t)sent;
		else if (errno == EAGAIN)
			rest(p);
		else if (errno != EINTR)
			return fail(p, "send", -errno);
	}
	return 0;
}

static int receive_all(struct plain *p, size_t len)
{
	uint8_t *to = p->memory + p->config.bytes;
	size_t at = 0;
	ssize_t got;

	while (at < len) {
		got = recv(p->fd, to + at, len - at, MSG_DONTWAIT);
		if (got > 0)
			at += (size_t)got;
		else if (!got)
			return fail(p, "recv", -ECONNRESET);
		else if (errno == EAGAIN)
			rest(p);
		else if (errno != EINTR)
			return fail(p, "recv", -errno);
	}
	return 0;
}

/* -- connecting ------------------------------------------------------------ */

static int connect_to(struct plain *p, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICHOST };
	const struct timeval tv = { .tv_sec = CONNECT_S };
	const char *peer = getenv("WEFT_BENCH_PEER");
	struct addrinfo *to;
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%u", port);
	if (!peer || getaddrinfo(peer, text, &hints, &to))
		return fail(p, "address", -EINVAL);
	p->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd >= 0)
		setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	ret = p->fd < 0 || connect(p->fd, to->ai_addr, to->ai_addrlen) ?
		      -errno :
		      0;
	freeaddrinfo(to);
	if (ret == -EINPROGRESS || ret == -ETIMEDOUT) {
		snprintf(p->error, sizeof(p->error),
			 "no answer from %s, port %u: does a firewall drop it?",
			 peer, port);
		return -ETIMEDOUT;
	}
	return ret ? fail(p, "connect", ret) : 0;
}

static int open_listener(struct plain *p, uint16_t *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr *addr = (struct sockaddr *)&six;
	socklen_t len = sizeof(six);
	const int off = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (fd < 0 || bind(fd, addr, len)) {
		if (fd >= 0)
			close(fd);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		addr = (struct sockaddr *)&four;
		len = sizeof(four);
		if (fd < 0 || bind(fd, addr, len))
			return fail(p, "bind", -errno);
	}
	if (listen(fd, 1) || getsockname(fd, addr, &len)) {
		close(fd);
		return fail(p, "listen", -errno);
	}
	/* At the same place in both. */
	*port = ntohs(four.sin_port ? four.sin_port : six.sin6_port);
	return fd;
}

/* The parent's time-out notices a peer that never connects. */
static int accept_from(struct plain *p)
{
	uint16_t port;
	int listener = open_listener(p, &port);

	if (listener < 0)
		return listener;
	if (send(WF_TOOLS_FD_SIDE, &port, sizeof(port), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(port)) {
		close(listener);
		fail(p, "the other side is gone", -EPIPE);
		return -EOWNERDEAD;
	}
	p->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return p->fd < 0 ? fail(p, "accept", -errno) : 0;
}

static int meet(struct plain *p)
{
	const int on = 1;
	uint16_t port;
	int ret;

	if (!p->config.initiator) {
		ret = accept_from(p);
	} else if (recv(WF_TOOLS_FD_SIDE, &port, sizeof(port), 0) !=
		   (ssize_t)sizeof(port)) {
		fail(p, "the other side is gone", -EPIPE);
		return -EOWNERDEAD;
	} else {
		ret = connect_to(p, port);
	}
	if (!ret)
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return ret;
}

/* -- the engine ------------------------------------------------------------ */

static void socket_close(void *engine)
{
	struct plain *p = engine;

	if (p->fd >= 0)
		close(p->fd);
	free(p->memory);
	free(p);
}

static int socket_open(const struct wf_tools_engine_config *config,
		       void **engine, char *error, size_t error_len)
{
	struct plain *p = calloc(1, sizeof(*p));
	int ret;

	if (!p) {
		snprintf(error, error_len, "no memory");
		return -ENOMEM;
	}
	p->config = *config;
	p->fd = -1;
	if (posix_memalign((void **)&p->memory, 4096, 2 * config->bytes))
		ret = fail(p, "memory", -ENOMEM);
	else
		ret = meet(p);
	if (ret) {
		snprintf(error, error_len, "%s", p->error);
		socket_close(p);
		return ret;
	}
	memset(p->memory, 0xa5, 2 * config->bytes);
	*engine = p;
	return 0;
}

static int socket_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct plain *p = engine;

	if (phase->size > p->config.bytes)
		return fail(p, "size", -EMSGSIZE);
	return 0;
}

static int play_latency(struct plain *p, size_t size, uint64_t n)
{
	uint64_t i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		ret = p->config.initiator ? send_all(p, size) :
					    receive_all(p, size);
		if (!ret)
			ret = p->config.initiator ? receive_all(p, size) :
						    send_all(p, size);
	}
	return ret;
}

static int play_stream(struct plain *p, const struct wf_tools_phase *phase,
		       uint64_t n)
{
	uint64_t i;
	int ret = 0;

	for (i = 1; i <= n && !ret; i++) {
		ret = p->config.initiator ? send_all(p, phase->size) :
					    receive_all(p, phase->size);
		if (!ret && i % phase->window == 0)
			ret = p->config.initiator ? receive_all(p, ACK) :
						    send_all(p, ACK);
	}
	return ret;
}

static int play_part(struct plain *p, const struct wf_tools_phase *phase,
		     uint64_t n)
{
	if (phase->test == WF_TOOLS_LATENCY)
		return play_latency(p, phase->size, n);
	return play_stream(p, phase, n);
}

static int socket_play(void *engine, const struct wf_tools_phase *phase,
		       struct wf_tools_timing *timing)
{
	uint64_t start;
	int ret;

	ret = play_part(engine, phase, phase->warm);
	start = wf_base_clock_ns();
	if (!ret)
		ret = play_part(engine, phase, phase->count);
	timing->ns = wf_base_clock_ns() - start;
	return ret;
}

static int socket_progress(void *engine)
{
	rest(engine);
	return 0;
}

static const char *socket_error(void *engine)
{
	return ((struct plain *)engine)->error;
}

static const char *socket_describe(void *engine)
{
	(void)engine;
	return "plain TCP, one connection, no libfabric";
}

const struct wf_tools_engine_ops wf_tools_engine_socket = {
	.open = socket_open,
	.prepare = socket_prepare,
	.play = socket_play,
	.progress = socket_progress,
	.error = socket_error,
	.describe = socket_describe,
	.close = socket_close,
};
