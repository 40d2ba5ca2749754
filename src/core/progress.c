/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress of an endpoint when the fast path does not suffice: polls every
 * transport that is on, and now and then reads the clock, checks the
 * descriptors, and offers the processor to others.
 */
#include "base/clock.h"
#include "core/core.h"
#include "core/trace.h"

/* Polls in a row that found nothing, after which a transport whose polls are
 * system calls is looked at less often, if another one has peers: such a poll
 * takes as long as ten messages through memory. */
#define IDLE_POLLS 1000
#define IDLE_EVERY 32

/* Looks at the clock without a message, some 50 us, before the CPU is offered. */
#define QUIET_TICKS 16

/* The descriptors are looked at so often, or sooner if a transport asks. */
#define LOOK_EVERY (500 * WF_NS_PER_US)
/* Between two looks at the clock: a look costs 50 ns. */
#define TICK_ENOUGH (20 * WF_NS_PER_US)
#define TICK_MOST (200 * WF_NS_PER_US)

static bool others_have_peers(const struct wf_core *core,
			      const struct wf_way *way)
{
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *other = &core->ways[i];

		if (other != way && other->ops->has_peers(other->self))
			return true;
	}
	return false;
}

/* A program that polls rarely is not made to wait for so many polls. */
static __attribute__((noinline)) bool is_skipped(const struct wf_core *core,
						 struct wf_way *way)
{
	return core->host.polls_per_clock > 1 && others_have_peers(core, way) &&
	       ++way->idle % IDLE_EVERY;
}

static void note(struct wf_core *core, struct wf_way *way,
		 enum wf_polled polled)
{
	if (polled == WF_POLLED_NOTHING) {
		way->idle++;
		return;
	}
	way->idle = 0;
	wf_transport_host_active(&core->host);
}

static inline void poll_way(struct wf_core *core, struct wf_way *way)
{
	enum wf_polled polled;

	if (wf_unlikely(way->idle > IDLE_POLLS) && is_skipped(core, way))
		return;
	polled = way->ops->poll(way->self);
	if (wf_unlikely(polled != WF_POLLED_WAITING))
		note(core, way, polled);
}

/* Nothing has arrived for a while: the process we wait for may need this very
 * CPU. With more processes than CPUs, callers that poll without ever yielding
 * (MPI_Send over Open MPI's mtl/ofi) otherwise keep their peers from answering
 * until the scheduler preempts them, milliseconds later. Alone on a CPU, a
 * yield costs a third of a microsecond in 32 polls. Never yield with a lock
 * held, because others may wait for it: if there is a lock, the caller rests
 * after it has dropped it. */
static void rest_when_quiet(struct wf_core *core)
{
	uint32_t ticks = core->host.quiet_ticks;

	if (ticks <= QUIET_TICKS)
		core->host.quiet_ticks++;
	if (ticks < QUIET_TICKS) {
		core->rest_due = false;
		return;
	}
	if (wf_core_has_threads(core)) {
		core->rest_row += ticks == QUIET_TICKS;
		core->rest_due = true;
		return;
	}
	if (ticks == QUIET_TICKS)
		wf_base_rest_begin(&core->rest);
	wf_base_rest(&core->rest);
	core->host.now = wf_base_clock_ns();
}

bool wf_core_is_quiet(const struct wf_core *core)
{
	return core->host.quiet_ticks > QUIET_TICKS;
}

void wf_core_look(struct wf_core *core, uint64_t now)
{
	uint64_t every = LOOK_EVERY;

	wf_transport_loop_run(&core->host.loop, now);
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *way = &core->ways[i];
		uint64_t wish =
			way->on ? way->ops->look(way->self, now) : every;

		every = wish < every ? wish : every;
	}
	core->host.look_at = now + every;
	wf_core_report_look(&core->report, core, now);
	wf_core_trace_look(core, now);
}

/* A program may poll without a pause, or once in a second. The time between two
 * looks at the clock and the descriptors must be short for both, so their number
 * of polls follows from the time that the last ones took. Our own rests do not
 * count. */
static void set_pace(struct wf_host *host, uint64_t took)
{
	uint32_t polls = host->polls_per_clock;

	if (host->rested)
		host->rested = false;
	else if (took > TICK_MOST)
		polls = 1;
	else if (took > TICK_ENOUGH && polls > 1)
		polls /= 2;
	else if (took <= TICK_ENOUGH && polls < WF_HOST_POLLS_PER_CLOCK)
		polls *= 2;
	host->polls_per_clock = polls;
	host->polls = WF_HOST_POLLS_PER_CLOCK - polls;
}

/* Not inlined: only one poll in 32 gets here, and all others would have to save
 * its registers. */
__attribute__((noinline)) void wf_core_tick(struct wf_core *core)
{
	struct wf_host *host = &core->host;
	uint64_t now = wf_base_clock_ns();
	bool rested = host->rested;

	set_pace(host, now - host->now);
	host->now = now;
	if (wf_likely(core->ways[0].on))
		core->ways[0].ops->tick(core->ways[0].self, now);
	if (wf_unlikely(core->ways[1].on))
		core->ways[1].ops->tick(core->ways[1].self, now);
	if (now >= host->look_at)
		wf_core_look(core, now);
	if (!rested)
		rest_when_quiet(core);
}

void wf_core_progress(struct wf_core *core)
{
	struct wf_host *host = &core->host;

	if (wf_unlikely(host->forked))
		return;
	if (wf_unlikely(host->asleep))
		wf_core_wake(core);
	if (wf_unlikely(host->names.changes))
		wf_core_follow(core);
	/* The first is the one that matters; it says whether there is a short
	 * way, unless others have to be polled as well. */
	if (wf_likely(core->ways[0].on))
		poll_way(core, &core->ways[0]);
	if (wf_unlikely(core->ways[1].on)) {
		poll_way(core, &core->ways[1]);
		wf_transport_host_busy(host);
	}
	if (++host->polls >= WF_HOST_POLLS_PER_CLOCK)
		wf_core_tick(core);
}
