/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists network interfaces. Keeps nothing between calls: interfaces come and
 * go.
 */
#include "prov/iface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool usable(const struct ifaddrs *ifa, struct wf_addr *addr)
{
	size_t len;

	if (!ifa->ifa_addr || !(ifa->ifa_flags & IFF_UP))
		return false;
	len = ifa->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						    sizeof(struct sockaddr_in6);
	if (wf_base_addr_set(addr, ifa->ifa_addr, len))
		return false;
	/* Peers would need to know our name for the link. */
	return addr->sa.sa_family != AF_INET6 ||
	       !IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr);
}

static int rank(const struct wf_prov_iface *iface)
{
	return iface->loopback * 4 + !iface->running * 2 +
	       (iface->addr.sa.sa_family == AF_INET6);
}

/* Keeps the kernel's order among equals, which qsort() would not. */
static void sort(struct wf_prov_iface *list, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct wf_prov_iface item = list[i];
		size_t at = i;

		while (at && rank(&list[at - 1]) > rank(&item)) {
			list[at] = list[at - 1];
			at--;
		}
		list[at] = item;
	}
}

int wf_prov_iface_list(struct wf_prov_iface **list, size_t *count)
{
	struct wf_prov_iface *found = NULL;
	struct ifaddrs *all, *ifa;
	struct wf_addr addr;
	size_t n = 0;

	if (getifaddrs(&all))
		return -errno;
	for (ifa = all; ifa; ifa = ifa->ifa_next)
		n += usable(ifa, &addr);
	found = calloc(n ? n : 1, sizeof(*found));
	if (!found) {
		freeifaddrs(all);
		return -ENOMEM;
	}
	n = 0;
	for (ifa = all; ifa; ifa = ifa->ifa_next) {
		if (!usable(ifa, &addr))
			continue;
		snprintf(found[n].name, sizeof(found[n].name), "%s",
			 ifa->ifa_name);
		found[n].addr = addr;
		found[n].loopback = ifa->ifa_flags & IFF_LOOPBACK;
		found[n].running = ifa->ifa_flags & IFF_RUNNING;
		n++;
	}
	freeifaddrs(all);
	sort(found, n);
	*list = found;
	*count = n;
	return 0;
}

const struct wf_prov_iface *wf_prov_iface_find(const struct wf_prov_iface *list,
					       size_t count, const char *name,
					       int family)
{
	for (size_t i = 0; i < count; i++) {
		if (name && strcmp(list[i].name, name))
			continue;
		if (family != AF_UNSPEC && list[i].addr.sa.sa_family != family)
			continue;
		return &list[i];
	}
	return NULL;
}

const struct wf_prov_iface *
wf_prov_iface_owner(const struct wf_prov_iface *list, size_t count,
		    const struct wf_addr *addr)
{
	struct wf_addr plain = *addr;

	wf_base_addr_set_port(&plain, 0);
	for (size_t i = 0; i < count; i++) {
		if (wf_base_addr_equal(&list[i].addr, &plain))
			return &list[i];
	}
	if (addr->sa.sa_family != AF_INET ||
	    ntohl(addr->in.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (list[i].loopback)
			return &list[i];
	}
	return NULL;
}
