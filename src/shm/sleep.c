/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going to sleep without missing anything.
 */
#include "shm/sleep.h"

#include "base/barrier.h"
#include "base/clock.h"
#include "os/poll.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/ep.h"

/* What has to be tried again and again while asleep: replies that found no
 * room, guests that say nothing, messages that wait for room in the completion
 * queue. */
#define RETRY_NS WF_NS_PER_MS

/* A process of another user may have cleared the word by which others wake us,
 * see watch.c. */
#define DISTRUST_NS (100 * WF_NS_PER_MS)

static bool needs_timer(const struct wf_shm_ep *ep)
{
	return !wf_base_list_empty(&ep->busy_ins) ||
	       !wf_base_list_empty(&ep->guests);
}

/* The timer is made before the first sleep, whether that has an end or not:
 * wf_shm_sleep_disturb() needs it, and may find no descriptor left. */
static bool make_timer(struct wf_shm_ep *ep)
{
	int fd;

	if (ep->timer.fd >= 0)
		return true;
	fd = wf_os_timerfd_create();
	if (fd < 0)
		return false;
	ep->timer.fd = fd;
	if (!wf_shm_conn_watch(ep, &ep->timer))
		return true;
	wf_shm_conn_drop(ep, &ep->timer);
	return false;
}

/* Expires after @ns, 0: never, and then makes the epoll descriptor readable
 * until it is set again. So a thread that waits there is woken either by a peer,
 * because all were told to, or by this. */
static bool set_timer(struct wf_shm_ep *ep, uint64_t ns)
{
	return make_timer(ep) && !wf_os_timerfd_set(ep->timer.fd, ns);
}

static void tell_receivers(struct wf_shm_ep *ep, uint32_t asleep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->state == WF_SHM_OUT_OPEN)
			wf_shared_store(&out->region.header->sender_asleep,
					asleep, relaxed);
	}
}

/* Whether progress would find replies or credit. */
static bool outs_stir(const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;

	for (pos = ep->waiting_outs.next; pos != &ep->waiting_outs;
	     pos = pos->next) {
		if (wf_shm_out_stirs(wf_container_of(pos, struct wf_shm_out,
						     waiting_link)))
			return true;
	}
	for (pos = ep->pending_outs.next; pos != &ep->pending_outs;
	     pos = pos->next) {
		if (wf_shm_out_stirs(wf_container_of(pos, struct wf_shm_out,
						     pending_link)))
			return true;
	}
	return false;
}

/* Whether messages wait. With a full completion queue they can only be taken
 * after the application has read it, which it may do without a call that makes
 * progress: *@stalled says that they are to be looked at again soon, but are no
 * reason to stay awake. */
static bool ins_stir(const struct wf_shm_ep *ep, bool *stalled)
{
	bool pending = ep->draining || wf_shm_watch_pending(&ep->watch);

	*stalled = pending && !wf_shm_watch_has_room(&ep->watch);
	return pending && !*stalled;
}

/* For how long at most; 0: for ever. */
static uint64_t patience(const struct wf_shm_ep *ep, bool stalled,
			 uint64_t deadline_ns)
{
	uint64_t now, ns = stalled || needs_timer(ep) ? RETRY_NS : UINT64_MAX;

	if (ns > DISTRUST_NS && ep->watch.distrusted)
		ns = DISTRUST_NS;
	if (ep->connecting && wf_shm_conn_next(ep) < deadline_ns)
		deadline_ns = wf_shm_conn_next(ep);
	if (deadline_ns == UINT64_MAX)
		return ns == UINT64_MAX ? 0 : ns;
	now = wf_base_clock_ns();
	if (now >= deadline_ns)
		return 1;
	return ns < deadline_ns - now ? ns : deadline_ns - now;
}

bool wf_shm_sleep_begin(struct wf_shm_ep *ep, uint64_t deadline_ns)
{
	bool was_asleep = ep->asleep, stalled;

	if (ep->forked)
		return true; /* nothing will ever come */
	if (ep->reap || ep->busy_pulls)
		return false;
	if (!was_asleep) {
		for (uint32_t i = 0; i < ep->watch.count; i++)
			wf_shm_in_credit(ep->watch.ins[i]);
		wf_shm_stats_flush(ep);
	}
	ep->asleep = true;
	wf_shm_ep_busy(ep);
	tell_receivers(ep, 1);
	wf_shm_watch_all_bells(&ep->watch);
	wf_shared_store(&ep->board.board->asleep, 1, seq_cst);
	/* Whoever wrote without seeing the words above has written before
	 * this; what it wrote is seen below. */
	wf_base_barrier_all(ep->all_joined);
	wf_shm_watch_settle(&ep->watch);
	if (!ins_stir(ep, &stalled) && !outs_stir(ep) &&
	    set_timer(ep, patience(ep, stalled, deadline_ns))) {
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_sleeps, !was_asleep);
		return true;
	}
	wf_shm_sleep_end(ep);
	return false;
}

void wf_shm_sleep_end(struct wf_shm_ep *ep)
{
	ep->asleep = false;
	wf_shared_store(&ep->board.board->asleep, 0, seq_cst);
	wf_shm_watch_few_bells(&ep->watch);
	tell_receivers(ep, 0);
	/* Others who sleep until something happens here are not waited upon
	 * any more by our peers: they look for themselves. */
	if (ep->attr.threads)
		set_timer(ep, 1);
	/* Sockets are looked at by the next tick: what woke us is there. */
	ep->sockets_due = 0;
	ep->polls = WF_SHM_EP_POLLS_PER_CLOCK;
}

void wf_shm_sleep_disturb(struct wf_shm_ep *ep)
{
	if (wf_likely(!ep->asleep))
		return;
	wf_shm_sleep_end(ep);
	set_timer(ep, 1);
}
