/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a core.
 */
#include "core/core.h"

#include <assert.h>
#include <stdlib.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "core/trace.h"

void wf_core_init(struct wf_core *core, bool threads)
{
	*core = (struct wf_core){ .lock = &core->own_lock };
	wf_base_lock_init(core->lock, threads);
}

int wf_core_open(struct wf_core *core, const struct wf_host *host)
{
	int err;

	core->host = *host;
	core->names_seen = 0;
	core->host.joined = wf_base_barrier_join();
	core->host.all_joined = core->host.joined;
	core->host.now = wf_base_clock_ns();
	core->host.polls_per_clock = 1;
	core->host.polls = WF_HOST_POLLS_PER_CLOCK - 1;
	err = wf_transport_loop_open(&core->host.loop);
	if (err)
		return err;
	wf_core_report_open(core);
	wf_core_trace_open(core);
	return 0;
}

struct wf_way *wf_core_add(struct wf_core *core, const struct wf_transport *ops,
			   void *self)
{
	struct wf_way *way = &core->ways[core->way_count++];

	assert(core->way_count <= WF_CORE_WAYS);
	*way = (struct wf_way){ .ops = ops, .self = self };
	return way;
}

void wf_core_close(struct wf_core *core)
{
	if (!core->host.forked)
		wf_core_linger(core);
	for (uint32_t i = core->way_count; i-- > 0;)
		core->ways[i].ops->close(core->ways[i].self);
	core->way_count = 0;
	wf_core_trace_close(core);
	wf_core_report_close(core);
	wf_transport_loop_close(&core->host.loop);
	free(core->routes);
	core->routes = NULL;
	core->route_count = 0;
}

void wf_core_forked(struct wf_core *core)
{
	/* Threads that had entered do not exist in the child. */
	wf_base_lock_init(core->lock, core->lock->real);
	core->host.forked = true;
	core->host.asleep = false;
	wf_transport_host_busy(&core->host);
	wf_core_trace_forked(core);
	wf_core_report_forked(core);
	for (uint32_t i = 0; i < core->way_count; i++)
		core->ways[i].ops->forked(core->ways[i].self);
	wf_transport_loop_close(&core->host.loop);
}
