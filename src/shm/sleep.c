/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going to sleep without missing anything.
 */
#include "shm/sleep.h"

#include <errno.h>
#include <sys/timerfd.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "shm/conn.h"
#include "shm/ep.h"

/* What has to be tried again and again while asleep: connecting where nobody
 * listens yet, replies that found no room, guests that say nothing. */
#define RETRY_NS WF_NS_PER_MS

static bool needs_timer(const struct wf_shm_ep *ep)
{
	return ep->connecting || !wf_base_list_empty(&ep->busy_ins) ||
	       !wf_base_list_empty(&ep->guests);
}

static bool set_timer(struct wf_shm_ep *ep, uint64_t ns)
{
	const struct itimerspec when = {
		.it_value = { .tv_sec = (time_t)(ns / WF_NS_PER_S),
			      .tv_nsec = (long)(ns % WF_NS_PER_S) },
	};

	if (ep->timer.fd < 0) {
		if (!ns)
			return true;
		ep->timer.fd = timerfd_create(CLOCK_MONOTONIC,
					      TFD_NONBLOCK | TFD_CLOEXEC);
		if (ep->timer.fd < 0 || wf_shm_conn_watch(ep, &ep->timer))
			return false;
	}
	return !timerfd_settime(ep->timer.fd, 0, &when, NULL);
}

static void tell_receivers(struct wf_shm_ep *ep, uint32_t asleep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->state == WF_SHM_OUT_OPEN)
			atomic_store_explicit(
				&out->region.header->sender_asleep, asleep,
				memory_order_relaxed);
	}
}

static void tell_senders(struct wf_shm_ep *ep, bool asleep)
{
	for (uint32_t i = 0; i < ep->watched; i++)
		atomic_store_explicit(&ep->ins[i]->region.header->bell_wanted,
				      asleep, memory_order_relaxed);
	atomic_store(&ep->board.board->asleep, asleep);
}

/* Everything that progress would find. */
static bool stirs(const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;

	for (uint32_t i = 0; i < ep->in_count; i++) {
		if ((ep->ins[i]->watched || ep->ins[i]->cooling) &&
		    wf_shm_in_ready(ep->ins[i]))
			return true;
	}
	for (uint32_t i = 0; i < ep->bell_words; i++) {
		if (wf_shm_board_word(ep->board.board, i))
			return true;
	}
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

/* For how long at most; 0: for ever. */
static uint64_t patience(const struct wf_shm_ep *ep, uint64_t deadline_ns)
{
	uint64_t now, ns = needs_timer(ep) ? RETRY_NS : 0;

	if (deadline_ns == UINT64_MAX)
		return ns;
	now = wf_base_clock_ns();
	if (now >= deadline_ns)
		return 1;
	return ns && ns < deadline_ns - now ? ns : deadline_ns - now;
}

bool wf_shm_sleep_begin(struct wf_shm_ep *ep, uint64_t deadline_ns)
{
	bool was_asleep = ep->asleep;

	if (ep->forked)
		return true; /* nothing will ever come */
	if (ep->reap || ep->busy_pulls)
		return false;
	if (!was_asleep) {
		for (uint32_t i = 0; i < ep->in_count; i++)
			wf_shm_in_credit(ep->ins[i]);
		wf_shm_stats_flush(ep);
	}
	ep->asleep = true;
	wf_shm_ep_busy(ep);
	tell_receivers(ep, 1);
	tell_senders(ep, true);
	/* Whoever wrote without seeing the words above has written before
	 * this; what it wrote is seen below. */
	wf_base_barrier_all(ep->all_joined);
	if (!stirs(ep) && set_timer(ep, patience(ep, deadline_ns))) {
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_sleeps, !was_asleep);
		return true;
	}
	wf_shm_sleep_end(ep);
	return false;
}

/* Rings that are watched rang only because we slept. */
static void still_bells(struct wf_shm_ep *ep)
{
	struct wf_shm_board *board = ep->board.board;

	for (uint32_t i = 0; i < ep->bell_words * WF_SHM_BELLS_PER_WORD; i++) {
		if (!ep->bell_ins[i] || ep->bell_ins[i]->watched)
			wf_shm_board_answer(board, i);
	}
}

void wf_shm_sleep_end(struct wf_shm_ep *ep)
{
	ep->asleep = false;
	tell_senders(ep, false);
	tell_receivers(ep, 0);
	still_bells(ep);
	/* Others who sleep until something happens here are not waited upon
	 * any more by our peers: they look for themselves. */
	if (ep->attr.threads)
		set_timer(ep, 1);
	/* Sockets are looked at by the next tick: what woke us is there. */
	ep->sockets_due = 0;
	ep->polls = WF_SHM_EP_POLLS_PER_CLOCK;
}
