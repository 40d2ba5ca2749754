/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going to sleep without missing an event. Before an endpoint sleeps, it
 * announces this to its peers: a peer that sends to it or answers it then makes
 * the epoll descriptor of its loop readable. New peers, peers that end, and the
 * time at which something must be tried again do the same.
 *
 * The paths that send and answer need no fence: between the announcement and
 * the last check, the sleeping side runs one barrier on all processors.
 */
#include "base/barrier.h"
#include "base/clock.h"
#include "core/core.h"

/* In reverse: the first has the most peers to tell, and another one may say no.
 * *@told: one of them said yes. */
static bool all_doze(struct wf_core *core, uint64_t *deadline, bool *told)
{
	for (uint32_t i = core->way_count; i-- > 0;) {
		const struct wf_way *way = &core->ways[i];

		if (!way->on)
			continue;
		if (!way->ops->doze(way->self, deadline))
			return false;
		*told = true;
	}
	return true;
}

static bool any_has_work(struct wf_core *core, uint64_t *deadline)
{
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *way = &core->ways[i];

		if (way->on && way->ops->has_work(way->self, deadline))
			return true;
	}
	return false;
}

/* For how long at most; 0: for ever. */
static uint64_t patience(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return 0;
	now = wf_base_clock_ns();
	return now >= deadline ? 1 : deadline - now;
}

bool wf_core_sleep(struct wf_core *core)
{
	struct wf_host *host = &core->host;
	uint64_t deadline = UINT64_MAX;
	bool told = false;

	if (host->forked)
		return true; /* nothing will ever come */
	wf_transport_host_busy(host);
	if (all_doze(core, &deadline, &told)) {
		host->asleep = true;
		/* A peer that wrote without seeing the announcement has written
		 * before this barrier; the check below sees what it wrote. */
		wf_base_barrier_all(host->all_joined);
		if (!any_has_work(core, &deadline) &&
		    wf_transport_loop_set(&host->loop, patience(deadline))) {
			wf_core_report_sleep(core);
			if (host->trace)
				wf_base_trace_note(host->trace, WF_TRACE_SLEEP);
			return true;
		}
	}
	if (told)
		wf_core_wake(core);
	return false;
}

void wf_core_wake(struct wf_core *core)
{
	struct wf_host *host = &core->host;

	host->asleep = false;
	wf_base_waits_asleep(&core->report.waits, 0);
	if (host->trace)
		wf_base_trace_note(host->trace, WF_TRACE_WAKE);
	for (uint32_t i = 0; i < core->way_count; i++) {
		if (core->ways[i].on)
			core->ways[i].ops->wake(core->ways[i].self);
	}
	/* Our peers no longer wake other threads that sleep here: those threads
	 * check for themselves. */
	if (wf_core_has_threads(core))
		wf_transport_loop_set(&host->loop, 1);
	/* This progress checks the descriptors: one of them woke us. Time has
	 * passed meanwhile. */
	host->now = wf_base_clock_ns();
	host->look_at = 0;
	host->polls = WF_HOST_POLLS_PER_CLOCK;
}
