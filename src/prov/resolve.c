/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the system's resolver and its routing table. Logs nothing: the caller
 * knows what the name was for.
 */
#include "prov/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

/* "localhost" is often ::1 first; a server without a node listens on 0.0.0.0,
 * so IPv4 must be what both sides mean where there is a choice. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family == AF_INET)
			return ai;
	}
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (ai->ai_family == AF_INET6)
			return ai;
	}
	return NULL;
}

int wf_prov_resolve_name(const struct wf_prov_resolve *query,
			 struct wf_addr *addr)
{
	struct addrinfo hints = {
		.ai_family = query->family,
		.ai_socktype = SOCK_DGRAM,
	};
	const struct addrinfo *ai;
	struct addrinfo *list;
	int ret;

	if (query->numeric)
		hints.ai_flags |= AI_NUMERICHOST;
	if (query->passive)
		hints.ai_flags |= AI_PASSIVE;
	ret = getaddrinfo(query->node, query->service ? query->service : "0",
			  &hints, &list);
	if (ret)
		return ret == EAI_MEMORY ? -FI_ENOMEM : -FI_ENODATA;
	ai = choose(list);
	ret = ai ? wf_base_addr_set(addr, ai->ai_addr, ai->ai_addrlen) :
		   -FI_ENODATA;
	freeaddrinfo(list);
	return ret;
}

int wf_prov_resolve_source(const struct wf_addr *dest, struct wf_addr *src)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct wf_addr to = *dest;
	int fd, ret;

	fd = socket(dest->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Connecting a datagram socket sends nothing; some port must be
	 * named. */
	if (!wf_base_addr_port(&to))
		wf_base_addr_set_port(&to, 9);
	if (connect(fd, &to.sa, wf_base_addr_len(&to)) ||
	    getsockname(fd, (struct sockaddr *)&name, &len)) {
		ret = -errno;
		goto out;
	}
	ret = wf_base_addr_set(src, &name, len);
	if (!ret)
		wf_base_addr_set_port(src, 0);
out:
	close(fd);
	return ret;
}
