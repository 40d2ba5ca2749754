/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out at the first operation which transport reaches an address, and
 * keeps the answer with the address's name in the AV. If that name changes, it
 * asks again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/place.h"
#include "core/core.h"
#include "os/shared.h"

#define ROUTES_FIRST 64
#define ROUTES_MAX ((uint64_t)1 << 31)

static int make_room_for(struct wf_core *core, uint64_t dst)
{
	uint32_t count = core->route_count ? core->route_count : ROUTES_FIRST;
	uint8_t *routes;

	if (dst < core->route_count)
		return 0;
	if (dst >= ROUTES_MAX)
		return -EINVAL;
	while (count <= dst)
		count *= 2;
	routes = realloc(core->routes, count);
	if (!routes)
		return -ENOMEM;
	memset(routes + core->route_count, 0, count - core->route_count);
	core->routes = routes;
	core->route_count = count;
	return 0;
}

static int find(struct wf_core *core, uint64_t dst)
{
	const struct wf_names *names = &core->host.names;
	struct wf_addr addr;
	int err = names->get(names->arg, dst, &addr);

	if (!err)
		err = make_room_for(core, dst);
	if (err)
		return err;
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *way = &core->ways[i];

		err = way->ops->reaches(way->self, &addr);
		/* To go on to the next transport would be a permanent
		 * choice. */
		if (err < 0)
			return -EAGAIN;
		if (!err)
			continue;
		core->routes[dst] = (uint8_t)(i + 1);
		return 0;
	}
	return -EHOSTUNREACH;
}

static void forget(struct wf_core *core, uint64_t name)
{
	if (name < core->route_count)
		core->routes[name] = 0;
}

int wf_core_submit(struct wf_core *core, uint64_t dst, const struct wf_tx *tx)
{
	struct wf_way *way;
	int err;

	if (wf_unlikely(core->host.names.changes))
		wf_core_follow(core);
	if (wf_unlikely(dst >= core->route_count || !core->routes[dst])) {
		err = find(core, dst);
		if (err)
			return err;
	}
	way = &core->ways[core->routes[dst] - 1];
	way->idle = 0;
	return way->ops->submit(way->self, dst, tx);
}

void wf_core_inserted(struct wf_core *core, uint64_t name,
		      const struct wf_addr *addr)
{
	bool taken = false;

	forget(core, name);
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *way = &core->ways[i];

		way->ops->inserted(way->self, name, addr, taken);
		/* The address of an IP address without a place says where it
		 * is. */
		if (wf_base_place_of(addr) && !taken)
			taken = way->ops->reaches(way->self, addr) > 0;
	}
}

void wf_core_removed(struct wf_core *core, uint64_t name)
{
	forget(core, name);
	for (uint32_t i = 0; i < core->way_count; i++)
		core->ways[i].ops->removed(core->ways[i].self, name);
}

void wf_core_unregistered(struct wf_core *core, uint64_t key)
{
	for (uint32_t i = 0; i < core->way_count; i++) {
		if (core->ways[i].ops->unregistered)
			core->ways[i].ops->unregistered(core->ways[i].self,
							key);
	}
}

void wf_core_follow(struct wf_core *core)
{
	/* Acquire: the changes that were counted are visible. Pairs with the
	 * creator's count. */
	uint64_t changes = wf_shared_load(core->host.names.changes, acquire);

	if (wf_likely(changes == core->names_seen))
		return;
	core->names_seen = changes;
	if (core->route_count)
		memset(core->routes, 0, core->route_count);
	for (uint32_t i = 0; i < core->way_count; i++)
		core->ways[i].ops->renamed(core->ways[i].self);
}
