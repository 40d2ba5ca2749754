/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of nic/udp: opening it and what the kernel knows of links. Batches
 * are in sock_io.c.
 */
#include "nic/udp/sock.h"

#include <errno.h>
#include <linux/udp.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "os/file.h"
#include "os/net.h"

#define BUFFER (4 << 20)
#define LOOPBACK_MTU 65536u
#define DEFAULT_MTU 1500u
#define PATH_LEAST 1228 /* 1200 bytes and the headers of IPv4 and UDP */

static uint32_t interface_mtu(const char *name)
{
	int mtu = wf_os_iface_mtu(name);

	return mtu > 0 ? (uint32_t)mtu : DEFAULT_MTU;
}

/* Of the interface that has @addr; bound to any address, the least of those
 * that lead anywhere. */
static uint32_t link_mtu(const struct wf_addr *addr)
{
	uint32_t least = LOOPBACK_MTU;
	struct wf_os_iface *all;
	int count = wf_os_ifaces(&all);

	if (count < 0)
		return DEFAULT_MTU;
	for (int i = 0; i < count; i++) {
		struct wf_addr have;
		uint32_t mtu;

		if ((all[i].addr.sa.sa_family != addr->sa.sa_family &&
		     !wf_base_addr_is_dual(addr)) ||
		    !(all[i].flags & IFF_UP) ||
		    wf_base_addr_set(&have, &all[i].addr, sizeof(have)))
			continue;
		wf_base_addr_set_port(&have, wf_base_addr_port(addr));
		if (!wf_base_addr_is_any(addr) &&
		    !wf_base_addr_equal(&have, addr))
			continue;
		mtu = interface_mtu(all[i].name);
		least = mtu < least ? mtu : least;
	}
	free(all);
	return least;
}

uint32_t wf_udp_sock_path(const struct wf_udp_sock *sock,
			  const struct wf_addr *to)
{
	int fd = wf_os_socket(to->sa.sa_family, SOCK_DGRAM, 0);
	int mtu = (int)sock->link_mtu, found;
	/* The kernel's value from ICMP may be forged: values below what every
	 * network carries are not used (RFC 8899, section 5.1.2). */
	int least = mtu && mtu < PATH_LEAST ? mtu : PATH_LEAST;
	socklen_t len = sizeof(found);

	if (fd >= 0 && !wf_os_connect(fd, &to->sa, wf_base_addr_len(to)) &&
	    !wf_os_getsockopt(
		    fd, to->sa.sa_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
		    to->sa.sa_family == AF_INET ? IP_MTU : IPV6_MTU, &found,
		    &len) &&
	    found > 0)
		mtu = found < least ? least : found;
	if (fd >= 0)
		wf_os_close(fd);
	if (sock->mtu_most && mtu > (int)sock->mtu_most)
		mtu = (int)sock->mtu_most;
	return wf_udp_path_payload(to->sa.sa_family, (uint32_t)mtu);
}

static bool set(int fd, int level, int name, int value)
{
	return !wf_os_setsockopt(fd, level, name, &value, sizeof(value));
}

static void set_options(struct wf_udp_sock *sock, int family, bool no_offload)
{
	socklen_t len = sizeof(int);
	int value = 0;

	set(sock->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	/* As root beyond the limit that the administrator set for users. */
	if (!set(sock->fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER))
		set(sock->fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
	if (!set(sock->fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER))
		set(sock->fd, SOL_SOCKET, SO_SNDBUF, BUFFER);
	if (!wf_os_getsockopt(sock->fd, SOL_SOCKET, SO_RCVBUF, &value, &len))
		sock->rcvbuf = (uint32_t)value;
	/* Nothing is cut up on its way: a packet is lost with any of its
	 * fragments, and many networks drop fragments. path.c finds out what
	 * fits. */
	if (family == AF_INET || sock->dual) {
		set(sock->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		set(sock->fd, IPPROTO_IP, IP_RECVERR, 1);
	}
	if (family == AF_INET6) {
		set(sock->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
		    IPV6_PMTUDISC_PROBE);
		set(sock->fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	}
	if (sock->any && family == AF_INET)
		set(sock->fd, IPPROTO_IP, IP_PKTINFO, 1);
	else if (sock->any)
		set(sock->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (no_offload)
		return;
	/* Asked for at run time: a kernel without them says so. */
	len = sizeof(value);
	sock->gso = !wf_os_getsockopt(sock->fd, IPPROTO_UDP, UDP_SEGMENT,
				      &value, &len);
	sock->gro = set(sock->fd, IPPROTO_UDP, UDP_GRO, 1);
}

static int open_fd(const struct wf_nic_attr *attr)
{
	int family = attr->addr.sa.sa_family, fd, ret;

	if (family != AF_INET && family != AF_INET6)
		return -EINVAL;
	fd = wf_os_socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY,
		    !wf_base_addr_is_any(&attr->addr));
	ret = wf_os_bind(fd, &attr->addr.sa, wf_base_addr_len(&attr->addr));
	if (ret) {
		wf_warn("cannot bind a UDP socket: %s", strerror(-ret));
		wf_os_close(fd);
		return ret;
	}
	return fd;
}

static void rx_init(struct wf_udp_rx *rx)
{
	for (unsigned i = 0; i < WF_UDP_RX_MSGS; i++) {
		rx->iov[i].iov_base = rx->buffers + (size_t)i * WF_UDP_RX_BYTES;
		rx->iov[i].iov_len = WF_UDP_RX_BYTES;
		rx->heads[i].msg_hdr = (struct msghdr){
			.msg_name = &rx->from[i],
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i],
		};
	}
	rx->want = 1;
}

int wf_udp_sock_open(struct wf_udp_sock *sock, const struct wf_nic_attr *attr,
		     struct wf_addr *addr, struct wf_nic_counters *counters)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	sock->counters = counters;
	sock->own_fd = attr->fd < 0;
	sock->fd = sock->own_fd ? open_fd(attr) : attr->fd;
	if (sock->fd < 0)
		return sock->fd;
	ret = -EINVAL;
	if (wf_os_getsockname(sock->fd, (struct sockaddr *)&name, &len) ||
	    wf_base_addr_set(addr, &name, len))
		goto err;
	sock->any = wf_base_addr_is_any(addr);
	sock->dual = wf_base_addr_is_dual(addr);
	if (sock->any && !sock->own_fd &&
	    attr->addr.sa.sa_family == addr->sa.sa_family &&
	    !wf_base_addr_is_any(&attr->addr)) {
		sock->name = attr->addr;
		wf_base_addr_set_port(&sock->name, 0);
	}
	set_options(sock, addr->sa.sa_family, attr->no_offload);
	sock->mtu_most = attr->mtu;
	sock->link_mtu = attr->mtu ? attr->mtu : link_mtu(addr);
	ret = -ENOMEM;
	sock->rx.buffers = malloc((size_t)WF_UDP_RX_MSGS * WF_UDP_RX_BYTES);
	if (!sock->rx.buffers)
		goto err;
	rx_init(&sock->rx);
	if (attr->fault) {
		sock->fault =
			wf_udp_fault_create(attr->fault, sock->fd, counters);
		if (!sock->fault)
			goto err;
	}
	return 0;

err:
	wf_udp_sock_close(sock);
	return ret;
}

void wf_udp_sock_close(struct wf_udp_sock *sock)
{
	wf_udp_fault_destroy(sock->fault);
	free(sock->rx.buffers);
	if (sock->own_fd && sock->fd >= 0)
		wf_os_close(sock->fd);
	sock->fault = NULL;
	sock->rx.buffers = NULL;
	sock->fd = -1;
}
