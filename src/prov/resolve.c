/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the system's resolver and its routing table. Logs nothing: the caller
 * knows what the name was for.
 */
#include "prov/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "os/file.h"
#include "os/net.h"
#include "os/socket.h"

/* "localhost" is often ::1 first; a server without a node listens on 0.0.0.0,
 * so IPv4 must be what both sides mean where there is a choice. */
static const struct wf_os_name *choose(const struct wf_os_name *list, int count)
{
	for (int i = 0; i < count; i++) {
		if (list[i].addr.sa.sa_family == AF_INET)
			return &list[i];
	}
	return list; /* all others are of IPv6 */
}

int wf_prov_resolve_name(const struct wf_prov_resolve *query,
			 struct wf_addr *addr)
{
	const struct wf_os_query ask = {
		.node = query->node,
		.service = query->service ? query->service : "0",
		.family = query->family,
		.numeric = query->numeric,
		.passive = query->passive,
	};
	const struct wf_os_name *name;
	struct wf_os_name *list;
	int ret;

	ret = wf_os_resolve(&ask, &list);
	if (ret < 0)
		return ret == -ENOMEM ? -FI_ENOMEM : -FI_ENODATA;
	name = choose(list, ret);
	ret = wf_base_addr_set(addr, &name->addr, name->len);
	free(list);
	return ret;
}

int wf_prov_resolve_source(const struct wf_addr *dest, struct wf_addr *src)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct wf_addr to = *dest;
	int fd, ret;

	fd = wf_os_socket(dest->sa.sa_family, SOCK_DGRAM, 0);
	if (fd < 0)
		return fd;
	/* Connecting a datagram socket sends nothing; some port must be
	 * named. */
	if (!wf_base_addr_port(&to))
		wf_base_addr_set_port(&to, 9);
	ret = wf_os_connect(fd, &to.sa, wf_base_addr_len(&to));
	if (!ret)
		ret = wf_os_getsockname(fd, (struct sockaddr *)&name, &len);
	if (!ret)
		ret = wf_base_addr_set(src, &name, len);
	if (!ret)
		wf_base_addr_set_port(src, 0);
	wf_os_close(fd);
	return ret;
}
