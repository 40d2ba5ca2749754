/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects, exchanges hellos and frames. Data from the other host are checked
 * here: lengths, channels, versions. This file does not know what the processes
 * send.
 */
#include "tools/bench/host.h"

#include "base/clock.h"
#include "tools/bench/process.h"
#include "tools/bench/test.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	CONNECT_S = 5,
	HELLO_S = 5,
	/* A host that disappears is noticed after this time: idle time, then
	 * probes. */
	IDLE_S = 10,
	PROBE_S = 3,
	PROBES = 3,
};

/* -- sockets --------------------------------------------------------------- */

static void set_timeout(int fd, int option, unsigned seconds)
{
	const struct timeval tv = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv));
}

static void set_option(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

static void prepare(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
	set_timeout(fd, SO_RCVTIMEO, HELLO_S);
	set_timeout(fd, SO_SNDTIMEO, HELLO_S);
}

static int write_all(int fd, const void *data, size_t len)
{
	const char *from = data;
	ssize_t sent;

	while (len) {
		sent = send(fd, from, len, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return sent ? -errno : -EPIPE;
		from += sent;
		len -= (size_t)sent;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t len)
{
	char *to = data;
	ssize_t got;

	while (len) {
		got = recv(fd, to, len, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got && errno != ECONNRESET ? -errno : -ENODATA;
		to += got;
		len -= (size_t)got;
	}
	return 0;
}

/* -- frames ---------------------------------------------------------------- */

int wf_tools_host_send(int fd, enum wf_tools_host_channel channel,
		       const void *data, size_t len)
{
	struct wf_tools_host_frame frame = {
		.channel = htobe32(channel),
		.len = htobe32((uint32_t)len),
	};
	char whole[sizeof(frame) + WF_TOOLS_HOST_MOST];

	if (len > WF_TOOLS_HOST_MOST)
		return -EMSGSIZE;
	memcpy(whole, &frame, sizeof(frame));
	memcpy(whole + sizeof(frame), data, len);
	return write_all(fd, whole, sizeof(frame) + len);
}

int wf_tools_host_receive(int fd, enum wf_tools_host_channel *channel,
			  void *data, size_t *len)
{
	struct wf_tools_host_frame frame;
	int ret = read_all(fd, &frame, sizeof(frame));

	if (ret)
		return ret;
	if (be32toh(frame.channel) >= WF_TOOLS_HOST_CHANNELS ||
	    be32toh(frame.len) > *len)
		return -EPROTO;
	*channel = (enum wf_tools_host_channel)be32toh(frame.channel);
	*len = be32toh(frame.len);
	return read_all(fd, data, *len);
}

/* -- hellos ---------------------------------------------------------------- */

static void fill_hello(struct wf_tools_host_hello *hello, uint64_t session)
{
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->magic, WF_TOOLS_HOST_MAGIC, sizeof(hello->magic));
	hello->version = htobe32(WF_TOOLS_HOST_VERSION);
	hello->order = WF_TOOLS_HOST_ORDER;
	hello->session = htobe64(session);
	snprintf(hello->weft, sizeof(hello->weft), "%s", WEFT_VERSION);
}

static bool is_alike(const struct wf_tools_host_hello *hello)
{
	return be32toh(hello->version) == WF_TOOLS_HOST_VERSION &&
	       hello->order == WF_TOOLS_HOST_ORDER &&
	       !strncmp(hello->weft, WEFT_VERSION, sizeof(hello->weft));
}

static int greet(int fd, const struct wf_tools_host *host, char *error)
{
	struct wf_tools_host_hello hello;
	int ret;

	fill_hello(&hello, host->session);
	ret = write_all(fd, &hello, sizeof(hello));
	if (!ret)
		ret = read_all(fd, &hello, sizeof(hello));
	if (ret ||
	    memcmp(hello.magic, WF_TOOLS_HOST_MAGIC, sizeof(hello.magic))) {
		snprintf(error, WF_TOOLS_HOST_ERROR,
			 "what listens on %s, port %u, is not `weft bench "
			 "--server`",
			 host->name, host->port);
		return ret ? ret : -EPROTO;
	}
	hello.weft[sizeof(hello.weft) - 1] = '\0';
	if (is_alike(&hello))
		return 0;
	snprintf(error, WF_TOOLS_HOST_ERROR,
		 "%s has weft %s (protocol %u), this is weft " WEFT_VERSION
		 " (protocol %u): both hosts need the same version",
		 host->name, hello.weft, be32toh(hello.version),
		 WF_TOOLS_HOST_VERSION);
	return -EPROTONOSUPPORT;
}

int wf_tools_host_welcome(int fd, uint64_t *session)
{
	struct wf_tools_host_hello hello, own;
	int ret;

	prepare(fd);
	ret = read_all(fd, &hello, sizeof(hello));
	if (ret)
		return ret;
	if (memcmp(hello.magic, WF_TOOLS_HOST_MAGIC, sizeof(hello.magic)))
		return -EPROTO;
	fill_hello(&own, 0);
	ret = write_all(fd, &own, sizeof(own));
	if (ret)
		return ret;
	*session = be64toh(hello.session);
	return is_alike(&hello) ? 0 : -EPROTONOSUPPORT;
}

/* -- connecting ------------------------------------------------------------ */

static int explain(const struct wf_tools_host *host, int err, char *error)
{
	switch (err) {
	case -ECONNREFUSED:
		snprintf(error, WF_TOOLS_HOST_ERROR,
			 "nobody listens on %s, port %u: start `weft bench "
			 "--server` there",
			 host->name, host->port);
		break;
	case -ETIMEDOUT:
		snprintf(error, WF_TOOLS_HOST_ERROR,
			 "no answer from %s, port %u, within %d s: is the host "
			 "up, and does a firewall drop TCP to this port? "
			 "--port chooses another on both sides",
			 host->name, host->port, CONNECT_S);
		break;
	default:
		snprintf(error, WF_TOOLS_HOST_ERROR,
			 "cannot reach %s, port %u: %s", host->name, host->port,
			 strerror(-err));
	}
	return err;
}

static int connect_within(int fd, const struct addrinfo *to)
{
	/* connect() uses the time-out for sending. */
	set_timeout(fd, SO_SNDTIMEO, CONNECT_S);
	if (!connect(fd, to->ai_addr, to->ai_addrlen))
		return 0;
	return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
}

/* The first address that answers; @found gets it as a number. */
static int connect_any(const struct wf_tools_host *host, const char *name,
		       char *found, char *error)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *one;
	char port[16];
	int fd, ret;

	snprintf(port, sizeof(port), "%u", host->port);
	ret = getaddrinfo(name, port, &hints, &list);
	if (ret) {
		snprintf(error, WF_TOOLS_HOST_ERROR,
			 "'%s' is no test, and no host either: %s%s", name,
			 gai_strerror(ret), wf_tools_test_meant(name));
		return -EHOSTUNREACH;
	}
	ret = -EHOSTUNREACH;
	for (one = list; one; one = one->ai_next) {
		fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		ret = connect_within(fd, one);
		if (!ret) {
			getnameinfo(one->ai_addr, one->ai_addrlen, found,
				    WF_TOOLS_HOST_ADDRESS, NULL, 0,
				    NI_NUMERICHOST);
			ret = fd;
			break;
		}
		close(fd);
	}
	freeaddrinfo(list);
	return ret < 0 ? explain(host, ret, error) : ret;
}

static int connect_and_greet(const struct wf_tools_host *host, const char *name,
			     char *found, char *error)
{
	int fd, ret;

	fd = connect_any(host, name, found, error);
	if (fd < 0)
		return fd;
	prepare(fd);
	ret = greet(fd, host, error);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int wf_tools_host_find(struct wf_tools_host *host, char *error)
{
	return connect_and_greet(host, host->name, host->address, error);
}

int wf_tools_host_connect(const struct wf_tools_host *host, char *error)
{
	char found[WF_TOOLS_HOST_ADDRESS];

	return connect_and_greet(host, host->address, found, error);
}

int wf_tools_host_start(int fd, char *const *words, unsigned n, char *answer)
{
	enum wf_tools_host_channel channel;
	char text[WF_TOOLS_HOST_MOST];
	size_t len = 0, room = WF_TOOLS_HOST_ERROR - 1;
	unsigned i;
	int ret;

	for (i = 0; i < n; i++) {
		if (len + strlen(words[i]) + 1 > sizeof(text))
			return -EMSGSIZE;
		memcpy(text + len, words[i], strlen(words[i]) + 1);
		len += strlen(words[i]) + 1;
	}
	snprintf(answer, WF_TOOLS_HOST_ERROR, "the server ended");
	ret = wf_tools_host_send(fd, WF_TOOLS_HOST_START, text, len);
	if (!ret)
		ret = wf_tools_host_receive(fd, &channel, text, &room);
	if (ret)
		return ret;
	memcpy(answer, text, room);
	answer[room] = '\0';
	return channel == WF_TOOLS_HOST_STARTED ? 0 : -EREMOTEIO;
}

/* -- relay ----------------------------------------------------------------- */

/* 0, or -ENODATA when the local socket has ended. */
static int take_local(int fd, int local, enum wf_tools_host_channel channel)
{
	char data[WF_TOOLS_HOST_MOST];
	ssize_t got = recv(local, data, sizeof(data), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return -ENODATA;
	return wf_tools_host_send(fd, channel, data, (size_t)got);
}

/* Passes one frame from the other host to its socket. */
static int take_frame(int fd, int control, int side, char *text)
{
	enum wf_tools_host_channel channel;
	char data[WF_TOOLS_HOST_MOST];
	size_t len = sizeof(data);
	ssize_t written;
	int ret, to;

	ret = wf_tools_host_receive(fd, &channel, data, &len);
	if (ret)
		return -ENODATA;
	if (channel == WF_TOOLS_HOST_ENDED) {
		snprintf(text, WF_TOOLS_HOST_ERROR, "%.*s",
			 (int)(len < 200 ? len : 200), data);
		return -ECHILD;
	}
	to = channel == WF_TOOLS_HOST_CONTROL ? control :
	     channel == WF_TOOLS_HOST_SIDE    ? side :
						-1;
	if (to < 0)
		return -ENODATA;
	/* The receiver has ended; its last message comes next. */
	written = write(to, data, len);
	(void)written;
	return 0;
}

int wf_tools_host_relay(int fd, int control, int side, char *text)
{
	struct pollfd fds[3] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = side, .events = POLLIN },
		{ .fd = control, .events = POLLIN },
	};
	int ret;

	for (;;) {
		ret = wf_tools_process_poll(fds, 3, UINT64_MAX / 2);
		if (ret < 0)
			return ret;
		if (fds[0].revents) {
			ret = take_frame(fd, control, side, text);
			if (ret)
				return ret;
		}
		/* The control channel reports the end of this one, with the
		 * last message. */
		if (fds[1].revents && take_local(fd, side, WF_TOOLS_HOST_SIDE))
			fds[1].fd = -1;
		if (fds[2].revents &&
		    take_local(fd, control, WF_TOOLS_HOST_CONTROL))
			return 0;
	}
}

/* -- addresses ------------------------------------------------------------- */

/* The bytes of an address; an IPv4-mapped address is its IPv4 address. */
static const void *bytes_of(const struct sockaddr *addr, size_t *len)
{
	const struct sockaddr_in6 *six = (const void *)addr;

	*len = 4;
	if (addr->sa_family == AF_INET)
		return &((const struct sockaddr_in *)addr)->sin_addr;
	if (addr->sa_family != AF_INET6)
		return NULL;
	if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return six->sin6_addr.s6_addr + 12;
	*len = 16;
	return &six->sin6_addr;
}

void wf_tools_host_interface(int fd, char *name, size_t len)
{
	struct sockaddr_storage own;
	socklen_t own_len = sizeof(own);
	struct ifaddrs *list, *one;
	size_t want_len, has_len;
	const void *want, *has;

	name[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&own, &own_len) ||
	    getifaddrs(&list))
		return;
	want = bytes_of((struct sockaddr *)&own, &want_len);
	for (one = list; one && want && !name[0]; one = one->ifa_next) {
		has = one->ifa_addr ? bytes_of(one->ifa_addr, &has_len) : NULL;
		if (has && has_len == want_len && !memcmp(has, want, has_len))
			snprintf(name, len, "%s", one->ifa_name);
	}
	freeifaddrs(list);
}

void wf_tools_host_peer(int fd, char *address, size_t len)
{
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer);
	size_t size;
	const void *bytes;

	snprintf(address, len, "?");
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_len))
		return;
	bytes = bytes_of((struct sockaddr *)&peer, &size);
	if (bytes)
		inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, address,
			  (socklen_t)len);
}
