/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of this node's network interfaces, best first.
 */
#ifndef WF_PROV_IFACE_H
#define WF_PROV_IFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "os/net.h"

/* One address of an interface; an interface with two addresses is in the list
 * twice. */
struct wf_prov_iface {
	char name[IF_NAMESIZE];
	struct wf_addr addr; /* port 0 */
	bool loopback;
	bool running;
};

/* Lists what is up: interfaces with a carrier first, loopback last, IPv4
 * before IPv6; link-local IPv6 is left out. The caller frees @list. 0,
 * -FI_ENOMEM, or another -FI_E* from the system. */
int wf_prov_iface_list(struct wf_prov_iface **list, size_t *count);

/* The first entry that has this name (NULL = any) and family (AF_UNSPEC =
 * any), or NULL. */
const struct wf_prov_iface *wf_prov_iface_find(const struct wf_prov_iface *list,
					       size_t count, const char *name,
					       int family);

/* The first address of @first's family of each interface in @names, which are
 * separated by commas, but not of the one that owns @first; up to the first that
 * has none, because peers count them. Returns how many were written. */
unsigned int wf_prov_iface_more(const char *names, const struct wf_addr *first,
				struct wf_addr *more, unsigned int most);

/* The entry that owns @addr, whatever its port; for an address of 127.0.0.0/8
 * that is not listed, loopback. NULL if none does. */
const struct wf_prov_iface *
wf_prov_iface_owner(const struct wf_prov_iface *list, size_t count,
		    const struct wf_addr *addr);

#endif
