/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These calls ask the system for its networks: interfaces and names. The rules
 * of os/file.h hold.
 */
#ifndef WF_OS_NET_H
#define WF_OS_NET_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* An address of an interface. One with several addresses appears for each. */
struct wf_os_iface {
	char name[IF_NAMESIZE];
	unsigned int flags; /* IFF_UP and so on */
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;
};

/* Lists the IPv4 and IPv6 addresses of all interfaces in the kernel's order.
 * The number, or -errno. The caller frees *@list with free(), also where the
 * number is 0. */
int wf_os_ifaces(struct wf_os_iface **list);

/* The largest packet of the interface. -ENODEV: there is none. */
int wf_os_iface_mtu(const char *name);
/* Whether there is an interface of that name. */
bool wf_os_iface_exists(const char *name);

/* A number of the network namespace of the calling thread that no other one of
 * this machine has at the same time. */
int wf_os_netns(uint64_t *number);

/* An address that a name stands for. */
struct wf_os_name {
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;
};

struct wf_os_query {
	const char *node;    /* NULL: this host */
	const char *service; /* a port as text, or a name */
	int family;	     /* AF_INET, AF_INET6 or AF_UNSPEC for both */
	bool numeric;	     /* @node must be a number, nobody is asked */
	bool passive;	     /* to be bound: no @node is any address */
};

/* Asks the resolver for addresses of UDP. May block for seconds. The number,
 * which is 1 at least, -ENOENT when the name stands for none, or -ENOMEM. The
 * caller frees *@list with free() unless it failed. */
int wf_os_resolve(const struct wf_os_query *query, struct wf_os_name **list);

#endif
