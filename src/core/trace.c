/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the recording of events on and off.
 */
#include "core/trace.h"

#include "core/core.h"

void wf_core_trace_open(struct wf_core *core)
{
	wf_base_trace_open(&core->trace, &core->report.waits, &core->host.addr);
	core->host.trace = NULL;
}

void wf_core_trace_close(struct wf_core *core)
{
	core->host.trace = NULL;
	wf_base_trace_close(&core->trace);
}

void wf_core_trace_forked(struct wf_core *core)
{
	core->host.trace = NULL;
	wf_base_trace_forked(&core->trace);
}

static void turn(struct wf_core *core, bool on)
{
	if (on && !wf_base_trace_start(&core->trace))
		return;
	/* Set before transports are told that it is on, and after they were
	 * told that it is off. */
	if (on)
		core->host.trace = &core->trace;
	for (uint32_t i = 0; i < core->way_count; i++) {
		struct wf_way *way = &core->ways[i];

		if (way->ops->trace)
			way->ops = way->ops->trace(way->self, on);
	}
	if (!on)
		core->host.trace = NULL;
	wf_transport_host_busy(&core->host);
}

void wf_core_trace_look(struct wf_core *core, uint64_t now)
{
	bool wanted = wf_base_trace_wanted(&core->trace, now);

	if (wf_unlikely(wanted != !!core->host.trace))
		turn(core, wanted);
	if (core->host.trace)
		wf_base_trace_note(core->host.trace, WF_TRACE_POLL);
}
