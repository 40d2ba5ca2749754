/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's address. The port, of UDP and of TCP, and the name in shared
 * memory are reserved when the endpoint is opened, so that its address is
 * known, unique on the node, and usable with any launcher and any device. On an
 * EFA device it is the queue pair that is reserved.
 */
#include "prov/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/place.h"
#include "nic/open.h"
#include "os/file.h"
#include "os/socket.h"
#include "prov/ep.h"
#include "prov/format.h"
#include "prov/iface.h"
#include "prov/nosys.h"
#include "prov/param.h"
#include "prov/provider.h"
#include "shm/name.h"

/* Ports to try if any will do: the kernel chooses one that is free for one
 * protocol, but another process may hold it for the other protocol, or the name
 * in shared memory that belongs to it. */
#define PORT_TRIES 64
/* Connections that wait until the device is open; the kernel has a limit of its
 * own (net.core.somaxconn). */
#define BACKLOG 4096

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
	return wf_prov_format_get(addr_format, sa, len, addr) ? -FI_EINVAL : 0;
}

/* If the device's socket is a stream, it listens at once: peers may connect
 * before the device is open. A socket that only reserves the port does not
 * listen, so that connections to it are refused. */
static int bind_socket(const struct wf_addr *addr, int type, bool held,
		       uint16_t *port)
{
	bool listens = type == SOCK_STREAM && !held;
	/* At all addresses: those of IPv4 as well, whatever the system's default
	 * is, so that no IPv4 endpoint of another process has the port. */
	const int on = 1, v6_only = !wf_base_addr_is_any(addr);
	struct wf_addr bound;
	socklen_t len = sizeof(bound);
	int fd, err;

	fd = wf_os_socket(addr->sa.sa_family, type | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (addr->sa.sa_family == AF_INET6)
		wf_os_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only,
				 sizeof(v6_only));
	/* Connections that ended just now do not keep the port. A socket that
	 * listens there still does. */
	if (listens)
		wf_os_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	err = wf_os_bind(fd, &addr->sa, wf_base_addr_len(addr));
	if (!err && listens)
		err = wf_os_listen(fd, BACKLOG);
	if (!err)
		err = wf_os_getsockname(fd, &bound.sa, &len);
	if (err) {
		wf_os_close(fd);
		return err;
	}
	*port = wf_base_addr_port(&bound);
	return fd;
}

/* An address is made of these. */
struct sockets {
	int nic_fd;  /* of the device */
	int held_fd; /* the same port of the other protocol, unused: nobody else
			gets the name that is ours */
	int name_fd; /* in shared memory */
};

/* The sockets of @addr, whose port is filled in. The datagram socket is first: a
 * free port for it is drawn at random, so that another one is tried the next
 * time. For a stream the kernel may name the same one again and again. 0 or
 * -FI_E*. */
static int bind_all(struct wf_addr *addr, bool any, struct sockets *out)
{
	bool streams = wf_nic_device_socket(wf_prov_param.nic) == SOCK_STREAM;
	struct wf_addr known = *addr, same = *addr;
	uint16_t port = 0;
	int datagram, stream, err;

	datagram = bind_socket(addr, SOCK_DGRAM, streams, &port);
	if (datagram < 0)
		return datagram;
	wf_base_addr_set_port(&same, port);
	err = stream = bind_socket(&same, SOCK_STREAM, !streams, &port);
	if (stream < 0)
		goto err_datagram;
	if (any) {
		err = default_addr(&known, addr->sa.sa_family);
		if (err)
			goto err_stream;
	}
	wf_base_addr_set_port(&known, port);
	err = out->name_fd = wf_shm_name_bind(&known, any);
	if (out->name_fd < 0)
		goto err_stream;
	out->nic_fd = streams ? stream : datagram;
	out->held_fd = streams ? datagram : stream;
	*addr = known;
	return 0;

err_stream:
	wf_os_close(stream);
err_datagram:
	wf_os_close(datagram);
	return err;
}

/* The name then tells processes of other network namespaces which endpoint it
 * means. */
static void state_place(struct wf_prov_ep *ep)
{
	uint64_t place = wf_base_place_own();

	if (!place) {
		WF_FI_WARN(FI_LOG_EP_CTRL,
			   "%s is not used: the number of this boot or of the "
			   "network namespace cannot be read\n",
			   wf_prov_param.folder);
		return;
	}
	ep->home = (struct wf_shm_home){
		.folder = wf_prov_param.folder,
		.place = place,
	};
	wf_base_place_put(&ep->addr, place);
}

/* There is one address to be had: @sa may name its device, and nothing else. */
static int bind_port(struct wf_prov_ep *ep)
{
	struct wf_nic_port *port;
	struct wf_addr addr;
	int fd, name_fd, err;

	err = wf_nic_port_open(WF_PROV_NIC_EFA, wf_prov_param.efa_rings, &port,
			       &addr, &fd);
	if (err) {
		WF_FI_WARN(FI_LOG_EP_CTRL, "cannot use the EFA device: %s\n",
			   fi_strerror(-err));
		return err;
	}
	name_fd = wf_shm_name_bind(&addr, false);
	if (name_fd < 0) {
		wf_nic_port_close(port);
		return name_fd;
	}
	wf_prov_name_unbind(ep);
	ep->nic_port = port;
	ep->nic_fd = fd;
	ep->name_fd = name_fd;
	ep->any_addr = false;
	ep->addr = addr;
	ep->home = (struct wf_shm_home){ 0 };
	return 0;
}

int wf_prov_name_bind(struct wf_prov_ep *ep, const void *sa, size_t len,
		      uint32_t addr_format)
{
	int err, tries = PORT_TRIES;
	struct sockets sockets;
	char text[WF_ADDR_STR_LEN];
	struct wf_addr addr;
	bool any;

	if (addr_format == FI_ADDR_EFA)
		return bind_port(ep);
	err = choose(&addr, sa, len, addr_format);
	if (err)
		return err;
	wf_base_place_put(&addr, 0); /* perhaps of another endpoint's name */
	any = wf_base_addr_is_any(&addr);
	do {
		err = bind_all(&addr, any, &sockets);
	} while (err == -FI_EADDRINUSE && !wf_base_addr_port(&addr) && --tries);
	if (err) {
		WF_FI_WARN(FI_LOG_EP_CTRL, "cannot use address %s: %s\n",
			   wf_base_addr_str(&addr, text, sizeof(text)),
			   fi_strerror(-err));
		return err;
	}
	wf_prov_name_unbind(ep);
	ep->nic_fd = sockets.nic_fd;
	ep->held_fd = sockets.held_fd;
	ep->name_fd = sockets.name_fd;
	ep->any_addr = any;
	ep->addr = addr;
	ep->home = (struct wf_shm_home){ 0 };
	if (wf_prov_param.folder && wf_prov_param.shm)
		state_place(ep);
	return 0;
}

static void close_sockets(struct wf_prov_ep *ep)
{
	if (ep->nic_fd >= 0 && !ep->nic_port)
		wf_os_close(ep->nic_fd);
	if (ep->held_fd >= 0)
		wf_os_close(ep->held_fd);
	if (ep->name_fd >= 0)
		wf_os_close(ep->name_fd);
	ep->nic_fd = -1;
	ep->held_fd = -1;
	ep->name_fd = -1;
}

void wf_prov_name_unbind(struct wf_prov_ep *ep)
{
	close_sockets(ep);
	if (ep->nic_port)
		wf_nic_port_close(ep->nic_port);
	ep->nic_port = NULL;
}

void wf_prov_name_forked(struct wf_prov_ep *ep)
{
	close_sockets(ep);
	if (ep->nic_port)
		wf_nic_port_forked(ep->nic_port);
	ep->nic_port = NULL; /* the parent's; its memory stays */
}

static int name_set(fid_t fid, void *addr, size_t addrlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_ep, fid.fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (ep->nic_port)
		return -FI_ENOSYS; /* the device gives addresses */
	return wf_prov_name_bind(ep, addr, addrlen, FI_FORMAT_UNSPEC);
}

static int name_get(fid_t fid, void *addr, size_t *addrlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_ep, fid.fid);
	size_t room = *addrlen;

	*addrlen = wf_prov_format_put(&ep->addr, addr, addr ? room : 0);
	return room < *addrlen ? -FI_ETOOSMALL : 0;
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
