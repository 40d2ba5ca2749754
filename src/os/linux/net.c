/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces and names of Linux, by the C library.
 */
#include "os/net.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of an address that we list, 0: not listed. */
static size_t listed(const struct sockaddr *addr)
{
	if (addr && addr->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (addr && addr->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

int wf_os_ifaces(struct wf_os_iface **list)
{
	struct ifaddrs *all, *at;
	int count = 0;

	if (getifaddrs(&all))
		return -errno;
	for (at = all; at; at = at->ifa_next)
		count += listed(at->ifa_addr) != 0;
	*list = calloc(count ? (size_t)count : 1, sizeof(**list));
	if (!*list) {
		freeifaddrs(all);
		return -ENOMEM;
	}
	count = 0;
	for (at = all; at; at = at->ifa_next) {
		size_t len = listed(at->ifa_addr);
		struct wf_os_iface *iface = *list + count;

		if (!len)
			continue;
		snprintf(iface->name, sizeof(iface->name), "%s", at->ifa_name);
		iface->flags = at->ifa_flags;
		memcpy(&iface->addr, at->ifa_addr, len);
		count++;
	}
	freeifaddrs(all);
	return count;
}

int wf_os_iface_mtu(const char *name)
{
	struct ifreq req = { .ifr_mtu = 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu;

	if (fd < 0)
		return -errno;
	strncpy(req.ifr_name, name, sizeof(req.ifr_name) - 1);
	mtu = ioctl(fd, SIOCGIFMTU, &req) ? -errno : req.ifr_mtu;
	close(fd);
	return mtu;
}

bool wf_os_iface_exists(const char *name)
{
	return if_nametoindex(name);
}

int wf_os_resolve(const struct wf_os_query *query, struct wf_os_name **list)
{
	const struct addrinfo hints = {
		.ai_family = query->family,
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = (query->numeric ? AI_NUMERICHOST : 0) |
			    (query->passive ? AI_PASSIVE : 0),
	};
	struct addrinfo *all, *at;
	int err, count = 0;

	err = getaddrinfo(query->node, query->service, &hints, &all);
	if (err)
		return err == EAI_MEMORY ? -ENOMEM : -ENOENT;
	for (at = all; at; at = at->ai_next)
		count += listed(at->ai_addr) != 0;
	*list = count ? calloc((size_t)count, sizeof(**list)) : NULL;
	if (!*list) {
		freeaddrinfo(all);
		return count ? -ENOMEM : -ENOENT;
	}
	count = 0;
	for (at = all; at; at = at->ai_next) {
		size_t len = listed(at->ai_addr);

		if (!len)
			continue;
		(*list)[count].len = (socklen_t)len;
		memcpy(&(*list)[count].addr, at->ai_addr, len);
		count++;
	}
	freeaddrinfo(all);
	return count;
}

/* Of Linux 5.14; the C library may be older. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

int wf_os_netns(uint64_t *number)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	socklen_t len = sizeof(*number);
	struct stat st;

	if (fd < 0)
		return -errno;
	err = getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, number, &len);
	close(fd);
	if (!err)
		return 0;
	if (fstatat(AT_FDCWD, "/proc/thread-self/ns/net", &st, 0))
		return -errno;
	*number = st.st_ino;
	return 0;
}
