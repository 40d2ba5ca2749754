/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's address. The UDP port and the name in shared memory are taken
 * when the endpoint is opened, so that its address is known, unique on the
 * node, and fit for any launcher.
 */
#include "prov/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "os/file.h"
#include "os/socket.h"
#include "prov/ep.h"
#include "prov/iface.h"
#include "prov/nosys.h"
#include "prov/param.h"
#include "prov/provider.h"
#include "shm/name.h"

/* Ports that are tried where any will do: the kernel gives one whose UDP side is
 * free, but anybody may hold the name in shared memory that goes with it. */
#define PORT_TRIES 64

/* The address that stands for "any" in our own name. */
static int default_addr(struct wf_addr *addr, int family)
{
	const struct wf_prov_iface *iface;
	struct wf_prov_iface *list;
	size_t count;
	int err;

	err = wf_prov_iface_list(&list, &count);
	if (err)
		return err;
	iface = wf_prov_iface_find(list, count, wf_prov_param.iface, family);
	if (iface)
		*addr = iface->addr;
	free(list);
	return iface ? 0 : -FI_EADDRNOTAVAIL;
}

static int choose(struct wf_addr *addr, const void *sa, size_t len,
		  uint32_t addr_format)
{
	if (!sa)
		return default_addr(addr, addr_format == FI_SOCKADDR_IN6 ?
						  AF_INET6 :
						  AF_INET);
	return wf_base_addr_set(addr, sa, len) ? -FI_EINVAL : 0;
}

static int bind_socket(const struct wf_addr *addr, uint16_t *port)
{
	const int on = 1;
	struct wf_addr bound;
	socklen_t len = sizeof(bound);
	int fd, err;

	fd = wf_os_socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (addr->sa.sa_family == AF_INET6)
		wf_os_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
				 sizeof(on));
	err = wf_os_bind(fd, &addr->sa, wf_base_addr_len(addr));
	if (!err)
		err = wf_os_getsockname(fd, &bound.sa, &len);
	if (err) {
		wf_os_close(fd);
		return err;
	}
	*port = wf_base_addr_port(&bound);
	return fd;
}

/* The UDP socket and the name in shared memory of @addr, whose port is filled
 * in. 0 or -FI_E*. */
static int bind_both(struct wf_addr *addr, bool any, int *udp_fd, int *name_fd)
{
	struct wf_addr known = *addr;
	uint16_t port = 0;
	int err;

	*udp_fd = bind_socket(addr, &port);
	if (*udp_fd < 0)
		return *udp_fd;
	if (any) {
		err = default_addr(&known, addr->sa.sa_family);
		if (err)
			goto err_close;
	}
	wf_base_addr_set_port(&known, port);
	*name_fd = wf_shm_name_bind(&known, any);
	err = *name_fd;
	if (err < 0)
		goto err_close;
	*addr = known;
	return 0;

err_close:
	wf_os_close(*udp_fd);
	return err;
}

int wf_prov_name_bind(struct wf_prov_ep *ep, const void *sa, size_t len,
		      uint32_t addr_format)
{
	int udp_fd, name_fd, err, tries = PORT_TRIES;
	char text[WF_ADDR_STR_LEN];
	struct wf_addr addr;
	bool any;

	err = choose(&addr, sa, len, addr_format);
	if (err)
		return err;
	any = wf_base_addr_is_any(&addr);
	do {
		err = bind_both(&addr, any, &udp_fd, &name_fd);
	} while (err == -FI_EADDRINUSE && !wf_base_addr_port(&addr) && --tries);
	if (err) {
		WF_FI_WARN(FI_LOG_EP_CTRL, "cannot use address %s: %s\n",
			   wf_base_addr_str(&addr, text, sizeof(text)),
			   fi_strerror(-err));
		return err;
	}
	wf_prov_name_unbind(ep);
	ep->udp_fd = udp_fd;
	ep->name_fd = name_fd;
	ep->any_addr = any;
	ep->addr = addr;
	return 0;
}

void wf_prov_name_unbind(struct wf_prov_ep *ep)
{
	if (ep->udp_fd >= 0)
		wf_os_close(ep->udp_fd);
	if (ep->name_fd >= 0)
		wf_os_close(ep->name_fd);
	ep->udp_fd = -1;
	ep->name_fd = -1;
}

static int name_set(fid_t fid, void *addr, size_t addrlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_ep, fid.fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	return wf_prov_name_bind(ep, addr, addrlen, FI_FORMAT_UNSPEC);
}

static int name_get(fid_t fid, void *addr, size_t *addrlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_ep, fid.fid);
	size_t len = wf_base_addr_len(&ep->addr);
	size_t room = *addrlen;

	*addrlen = len;
	if (addr)
		memcpy(addr, &ep->addr, room < len ? room : len);
	return room < len ? -FI_ETOOSMALL : 0;
}

struct fi_ops_cm wf_prov_name_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = name_set,
	.getname = name_get,
	.getpeer = wf_prov_nosys_getpeer,
	.connect = wf_prov_nosys_connect,
	.listen = wf_prov_nosys_listen,
	.accept = wf_prov_nosys_accept,
	.reject = wf_prov_nosys_reject,
	.shutdown = wf_prov_nosys_shutdown,
	.join = wf_prov_nosys_join,
};
