/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses as identities. This file does not depend on who uses them.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/place.h"
#include "os/file.h"
#include "os/socket.h"

int wf_base_addr_set(struct wf_addr *addr, const void *sa, size_t len)
{
	sa_family_t family; /* first in every Linux sockaddr */
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memset(addr, 0, sizeof(*addr));
	if (!sa || len < sizeof(family))
		return -EINVAL;
	/* @sa may come from a message and need not be aligned. */
	memcpy(&family, sa, sizeof(family));
	if (family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, sa, sizeof(in));
		addr->in.sin_family = AF_INET;
		addr->in.sin_addr = in.sin_addr;
		addr->in.sin_port = in.sin_port;
		wf_base_place_put(addr, wf_base_place_in(&in));
		return 0;
	}
	if (family == WF_ADDR_EFA && len >= sizeof(addr->efa)) {
		memcpy(&addr->efa, sa, sizeof(addr->efa));
		return 0;
	}
	if (family != AF_INET6 || len < sizeof(in6))
		return -EINVAL;
	memcpy(&in6, sa, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
		addr->in.sin_family = AF_INET;
		memcpy(&addr->in.sin_addr, &in6.sin6_addr.s6_addr[12], 4);
		addr->in.sin_port = in6.sin6_port;
		wf_base_place_put(addr, wf_base_place_in6(&in6));
		return 0;
	}
	addr->in6.sin6_family = AF_INET6;
	addr->in6.sin6_addr = in6.sin6_addr;
	addr->in6.sin6_port = in6.sin6_port;
	/* Only a link-local address needs its interface to be unique. */
	if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
		addr->in6.sin6_scope_id = in6.sin6_scope_id;
	else
		wf_base_place_put(addr, wf_base_place_in6(&in6));
	return 0;
}

/* The unused bytes must be 0: others compare all of them. */
#define RAW_QPN 16
#define RAW_QKEY 20

int wf_base_addr_set_raw(struct wf_addr *addr, const void *raw, size_t len)
{
	static const uint8_t none[sizeof(addr->efa.gid)];
	const uint8_t *bytes = raw;

	memset(addr, 0, sizeof(*addr));
	if (!raw || len < WF_ADDR_EFA_RAW || !memcmp(raw, none, sizeof(none)))
		return -EINVAL;
	addr->efa.family = WF_ADDR_EFA;
	memcpy(addr->efa.gid, bytes, sizeof(addr->efa.gid));
	memcpy(&addr->efa.qpn, bytes + RAW_QPN, sizeof(addr->efa.qpn));
	memcpy(&addr->efa.qkey, bytes + RAW_QKEY, sizeof(addr->efa.qkey));
	return 0;
}

void wf_base_addr_get_raw(const struct wf_addr *addr,
			  uint8_t raw[WF_ADDR_EFA_RAW])
{
	memset(raw, 0, WF_ADDR_EFA_RAW);
	memcpy(raw, addr->efa.gid, sizeof(addr->efa.gid));
	memcpy(raw + RAW_QPN, &addr->efa.qpn, sizeof(addr->efa.qpn));
	memcpy(raw + RAW_QKEY, &addr->efa.qkey, sizeof(addr->efa.qkey));
}

socklen_t wf_base_addr_len(const struct wf_addr *addr)
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		return sizeof(addr->in);
	case WF_ADDR_EFA:
		return sizeof(addr->efa);
	default:
		return sizeof(addr->in6);
	}
}

/* The interface that a link-local address needs; else 0. */
static uint32_t scope_of(const struct wf_addr *addr)
{
	return IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr) ?
		       addr->in6.sin6_scope_id :
		       0;
}

bool wf_base_addr_equal(const struct wf_addr *a, const struct wf_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_port == b->in.sin_port &&
		       a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	if (wf_base_addr_is_efa(a))
		return !memcmp(&a->efa, &b->efa, sizeof(a->efa));
	return a->in6.sin6_port == b->in6.sin6_port &&
	       scope_of(a) == scope_of(b) &&
	       !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		       sizeof(a->in6.sin6_addr));
}

uint64_t wf_base_addr_hash(const struct wf_addr *addr)
{
	struct wf_addr plain = *addr;

	/* Addresses made by wf_base_addr_set() are zero where unused. */
	wf_base_place_put(&plain, 0);
	return wf_base_hash(&plain, wf_base_addr_len(addr));
}

uint16_t wf_base_addr_port(const struct wf_addr *addr)
{
	if (wf_base_addr_is_efa(addr))
		return addr->efa.qpn;
	return ntohs(addr->sa.sa_family == AF_INET ? addr->in.sin_port :
						     addr->in6.sin6_port);
}

void wf_base_addr_set_port(struct wf_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else if (wf_base_addr_is_efa(addr))
		addr->efa.qpn = port;
	else
		addr->in6.sin6_port = htons(port);
}

bool wf_base_addr_is_any(const struct wf_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
	if (wf_base_addr_is_efa(addr))
		return false;
	return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

bool wf_base_addr_is_dual(const struct wf_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && wf_base_addr_is_any(addr);
}

bool wf_base_addr_is_whole(const struct wf_addr *addr)
{
	/* A queue pair may have the number 0. */
	if (wf_base_addr_is_efa(addr))
		return true;
	return !wf_base_addr_is_any(addr) && wf_base_addr_port(addr);
}

static bool is_loopback(const struct wf_addr *addr)
{
	return addr->sa.sa_family == AF_INET &&
	       ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* If the kernel would send to @addr from that same address, the address is
 * ours. Without a route it is not. */
static bool is_own_source(int fd, const struct wf_addr *addr)
{
	struct wf_addr to = *addr, from = { 0 };
	socklen_t len = sizeof(from);

	wf_base_addr_set_port(&to,
			      9); /* connect() of a UDP socket sends nothing */
	if (wf_os_connect(fd, &to.sa, wf_base_addr_len(&to)) ||
	    wf_os_getsockname(fd, &from.sa, &len))
		return false;
	wf_base_addr_set_port(&from, 9);
	return wf_base_addr_equal(&from, &to);
}

int wf_base_addr_find_local(const struct wf_addr *addr)
{
	bool local;
	int fd;

	if (wf_base_addr_is_efa(addr))
		return 0;
	if (wf_base_addr_is_any(addr) || is_loopback(addr))
		return 1;
	/* bind() cannot answer this: if net.ipv4.ip_nonlocal_bind is set, it
	 * accepts any address. */
	fd = wf_os_socket(addr->sa.sa_family, SOCK_DGRAM, 0);
	if (fd == -EAFNOSUPPORT)
		return 0;
	if (fd < 0)
		return fd;
	local = is_own_source(fd, addr);
	wf_os_close(fd);
	return local;
}

bool wf_base_addr_is_local(const struct wf_addr *addr)
{
	return wf_base_addr_find_local(addr) > 0;
}

const char *wf_base_addr_str(const struct wf_addr *addr, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	uint16_t port = wf_base_addr_port(addr);

	if (addr->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, port);
		return buf;
	}
	if (wf_base_addr_is_efa(addr)) {
		inet_ntop(AF_INET6, addr->efa.gid, ip, sizeof(ip));
		snprintf(buf, len, "efa-%s-%u-%08x", ip, addr->efa.qpn,
			 addr->efa.qkey);
		return buf;
	}
	inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
	if (scope_of(addr))
		snprintf(buf, len, "[%s%%%u]:%u", ip, scope_of(addr), port);
	else
		snprintf(buf, len, "[%s]:%u", ip, port);
	return buf;
}
