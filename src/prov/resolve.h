/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From names to addresses, and from a destination to the source address that
 * the system would use. Both make system calls; resolving a name may use the
 * network.
 */
#ifndef WF_PROV_RESOLVE_H
#define WF_PROV_RESOLVE_H

#include <stdbool.h>

#include "base/addr.h"

struct wf_prov_resolve {
	const char *node;    /* NULL: this node */
	const char *service; /* NULL: port 0 */
	int family;	     /* AF_UNSPEC: IPv4 where there is one */
	bool numeric;	     /* @node is no name: do not ask the network */
	bool passive;	     /* without @node: any address, not loopback */
};

/* 0, -FI_ENODATA when there is no such node or service, -FI_ENOMEM. */
int wf_prov_resolve_name(const struct wf_prov_resolve *query,
			 struct wf_addr *addr);

/* The source address, with port 0, that the kernel would choose towards @dest.
 * 0, or the system's -FI_E* (-FI_ENETUNREACH ...). */
int wf_prov_resolve_source(const struct wf_addr *dest, struct wf_addr *src);

#endif
