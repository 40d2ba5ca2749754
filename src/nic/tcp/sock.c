/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of nic/tcp: how they are made and which options they get.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/process.h"
#include "os/socket.h"

#define BACKLOG 4096

/* The administrator's congestion control may be one that paces, which is right
 * between sites, and makes 1 MiB take 1.8 times as long within a host or a rack
 * (measured: bbr beside cubic). A socket that has paced once paces for ever,
 * whatever is chosen later: so connections begin with ours, and those whose path
 * turns out to be long or to lose segments get the administrator's: conn.c. */
static const char *const near_controls[] = {
	"cubic",
	"reno", /* everybody may use it; cubic may be the administrator's only */
};

/* In headers since Linux 6.15. */
#define RTO_MAX_MS 44
#define RTO_MAX 2000 /* a link that comes back is noticed so soon */

static void set(int fd, int level, int name, int value)
{
	/* An option that this kernel does not know is left out. */
	(void)!wf_os_setsockopt(fd, level, name, &value, sizeof(value));
}

static int clamp_ms(uint64_t ns)
{
	uint64_t ms = ns / WF_NS_PER_MS;

	return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* A host that vanished is given up when the dead time-out has passed: while
 * bytes are not acknowledged by TCP_USER_TIMEOUT, else by keep-alive. */
static void set_options(const struct wf_tcp_dev *dev, int fd)
{
	int dead_ms = clamp_ms(dev->dead_ns), every = dead_ms / 4000;

	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, dead_ms);
	set(fd, IPPROTO_TCP, RTO_MAX_MS, RTO_MAX);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	every = every < 1 ? 1 : every > 60 ? 60 : every;
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, every);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, every);
}

void wf_tcp_sock_limit(int fd, uint64_t ns)
{
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, clamp_ms(ns));
}

static void set_near(int fd)
{
	unsigned int i = 0;

	while (i < 2 && wf_os_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION,
					 near_controls[i],
					 (socklen_t)strlen(near_controls[i])))
		i++;
}

void wf_tcp_sock_begin(struct wf_tcp_dev *dev, int listen_fd)
{
	socklen_t len = sizeof(dev->control) - 1;

	if (wf_os_getsockopt(listen_fd, IPPROTO_TCP, TCP_CONGESTION,
			     dev->control, &len))
		dev->control[0] = '\0';
	/* Connections that are accepted inherit it. */
	set_near(listen_fd);
}

int wf_tcp_sock_look(int fd, struct wf_tcp_path *path)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int err;

	/* Older kernels know fewer of the fields. */
	memset(&info, 0, sizeof(info));
	err = wf_os_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	if (err)
		return err;
	path->rtt_us = info.tcpi_rtt;
	path->min_rtt_us = info.tcpi_min_rtt;
	path->delivered = info.tcpi_delivered;
	path->segments = info.tcpi_data_segs_out;
	/* Segments that the other side got twice were not lost. */
	path->lost = info.tcpi_total_retrans - info.tcpi_dsack_dups;
	path->unsent = info.tcpi_notsent_bytes;
	return 0;
}

void wf_tcp_sock_set_far(const struct wf_tcp_dev *dev, int fd)
{
	if (dev->control[0])
		(void)!wf_os_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION,
					dev->control, strlen(dev->control));
}

int wf_tcp_sock_listen(struct wf_addr *addr)
{
	struct wf_addr bound;
	socklen_t len = sizeof(bound);
	int fd, err;

	fd = wf_os_socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (addr->sa.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !wf_base_addr_is_any(addr));
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	err = wf_os_bind(fd, &addr->sa, wf_base_addr_len(addr));
	if (!err)
		err = wf_os_listen(fd, BACKLOG);
	if (!err)
		err = wf_os_getsockname(fd, &bound.sa, &len);
	if (err) {
		wf_os_close(fd);
		return err;
	}
	wf_base_addr_set_port(addr, wf_base_addr_port(&bound));
	return fd;
}

int wf_tcp_sock_connect(const struct wf_tcp_dev *dev,
			const struct wf_addr *from, const struct wf_addr *to,
			bool *done)
{
	struct wf_addr source = *from;
	int fd, err = 0;

	fd = wf_os_socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	set_options(dev, fd);
	set_near(fd);
	/* The kernel may give this connection the port of a process that is not
	 * there now: it must be able to listen when it comes again. */
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* The peer knows us by the address that the connection comes from. The
	 * port is found when the destination is known: one of ours may serve
	 * many connections. */
	if (source.sa.sa_family) {
		wf_base_addr_set_port(&source, 0);
		set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		err = wf_os_bind(fd, &source.sa, wf_base_addr_len(&source));
	}
	if (!err)
		err = wf_os_connect(fd, &to->sa, wf_base_addr_len(to));
	*done = !err;
	if (err && err != -EINPROGRESS) {
		wf_os_close(fd);
		return err;
	}
	return fd;
}

int wf_tcp_sock_result(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);
	int ret = wf_os_getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);

	return ret ? ret : -err;
}

int wf_tcp_sock_accept(const struct wf_tcp_dev *dev, int listen_fd)
{
	int fd = wf_os_accept(listen_fd, NULL, NULL);

	if (fd >= 0)
		set_options(dev, fd);
	return fd;
}

int wf_tcp_sock_names(int fd, struct wf_addr *from, struct wf_addr *to)
{
	union {
		struct sockaddr sa;
		struct sockaddr_storage room;
	} name;
	socklen_t len = sizeof(name);
	int err = wf_os_getpeername(fd, &name.sa, &len);

	if (!err)
		err = wf_base_addr_set(from, &name, len);
	len = sizeof(name);
	if (!err)
		err = wf_os_getsockname(fd, &name.sa, &len);
	if (!err)
		err = wf_base_addr_set(to, &name, len);
	return err;
}

static int control(struct wf_tcp_dev *dev, int how, int fd, void *tag,
		   uint32_t what, bool room)
{
	struct epoll_event event = {
		.events = room ? what | EPOLLOUT : what,
		.data.ptr = tag,
	};

	return wf_os_epoll_ctl(dev->poll_fd, how, fd, &event);
}

int wf_tcp_sock_watch(struct wf_tcp_dev *dev, int fd, void *tag, bool room)
{
	return control(dev, EPOLL_CTL_ADD, fd, tag, EPOLLIN, room);
}

int wf_tcp_sock_rewatch(struct wf_tcp_dev *dev, int fd, void *tag, bool room)
{
	return control(dev, EPOLL_CTL_MOD, fd, tag, EPOLLIN, room);
}

int wf_tcp_sock_watch_end(struct wf_tcp_dev *dev, int fd, void *tag, bool room)
{
	return control(dev, EPOLL_CTL_MOD, fd, tag, EPOLLRDHUP, room);
}

int wf_tcp_sock_unwatch(struct wf_tcp_dev *dev, int fd)
{
	return wf_os_epoll_ctl(dev->poll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void wf_tcp_sock_raise_limit(void)
{
	struct wf_os_fd_limit limit;

	if (wf_os_fd_limit(&limit) || limit.now >= limit.most)
		return;
	wf_info("descriptors: the limit of %llu is raised to %llu, as each "
		"peer elsewhere takes two",
		(unsigned long long)limit.now, (unsigned long long)limit.most);
	/* A failure shows when descriptors run out. */
	(void)!wf_os_fd_limit_set(limit.most);
}
