/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing an endpoint: waits a limited time for pending operations that report
 * no completion.
 */
#include "base/clock.h"
#include "core/core.h"

void wf_core_linger(struct wf_core *core)
{
	uint64_t begin = wf_base_clock_ns(), now = begin;
	bool left;

	if (core->host.asleep)
		wf_core_wake(core);
	wf_base_rest_begin(&core->rest);
	do {
		left = false;
		for (uint32_t i = 0; i < core->way_count; i++) {
			const struct wf_way *way = &core->ways[i];

			if (way->on && now - begin < way->ops->linger_ns)
				left |= way->ops->drain(way->self);
		}
		if (!left)
			return;
		core->host.now = now;
		wf_core_look(core, now); /* find out who has died */
		wf_base_rest(&core->rest);
		now = wf_base_clock_ns();
	} while (left);
}
