/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists network interfaces. Keeps nothing between calls: interfaces come and
 * go.
 */
#include "prov/iface.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool usable(const struct wf_os_iface *iface, struct wf_addr *addr)
{
	if (!(iface->flags & IFF_UP) ||
	    wf_base_addr_set(addr, &iface->addr, sizeof(iface->addr)))
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
	struct wf_os_iface *all;
	struct wf_addr addr;
	int all_count;
	size_t n = 0;

	all_count = wf_os_ifaces(&all);
	if (all_count < 0)
		return all_count;
	found = calloc(all_count ? (size_t)all_count : 1, sizeof(*found));
	if (!found) {
		free(all);
		return -ENOMEM;
	}
	for (int i = 0; i < all_count; i++) {
		if (!usable(&all[i], &addr))
			continue;
		snprintf(found[n].name, sizeof(found[n].name), "%s",
			 all[i].name);
		found[n].addr = addr;
		found[n].loopback = all[i].flags & IFF_LOOPBACK;
		found[n].running = all[i].flags & IFF_RUNNING;
		n++;
	}
	free(all);
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

unsigned int wf_prov_iface_more(const char *names, const struct wf_addr *first,
				struct wf_addr *more, unsigned int most)
{
	const struct wf_prov_iface *owner, *found;
	struct wf_prov_iface *list;
	unsigned int written = 0;
	size_t count;

	if (!strchr(names, ',') || wf_prov_iface_list(&list, &count))
		return 0;
	owner = wf_prov_iface_owner(list, count, first);
	while (*names && written < most) {
		size_t len = strcspn(names, ",");
		char name[IF_NAMESIZE];

		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		names += len + (names[len] == ',');
		found = wf_prov_iface_find(list, count, name,
					   first->sa.sa_family);
		if (!found)
			break;
		if (!owner || strcmp(owner->name, name))
			more[written++] = found->addr;
	}
	free(list);
	return written;
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
