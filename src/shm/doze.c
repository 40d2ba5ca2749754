/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells peers that this endpoint sleeps.
 */
#include "shm/doze.h"

#include "base/clock.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/ep.h"

/* Interval of retries while asleep: for replies that found no room, connections
 * without a hello, peers that could not be woken, and messages that wait for room
 * in the completion queue or for memory of their ring. */
#define RETRY_NS WF_NS_PER_MS

/* A process of another user may have cleared the word by which others wake us
 * (see watch.c), so we look after this time. */
#define DISTRUST_NS (100 * WF_NS_PER_MS)

static bool needs_timer(const struct wf_shm_ep *ep)
{
	return !wf_base_list_empty(&ep->busy_ins) ||
	       !wf_base_list_empty(&ep->guests) ||
	       !wf_base_list_empty(&ep->letters) || ep->unwoken ||
	       (ep->starved && !wf_base_list_empty(&ep->pending_outs));
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
static bool outs_have_work(const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;

	for (pos = ep->waiting_outs.next; pos != &ep->waiting_outs;
	     pos = pos->next) {
		if (wf_shm_out_has_work(wf_container_of(pos, struct wf_shm_out,
							waiting_link)))
			return true;
	}
	for (pos = ep->pending_outs.next; pos != &ep->pending_outs;
	     pos = pos->next) {
		if (wf_shm_out_has_work(wf_container_of(pos, struct wf_shm_out,
							pending_link)))
			return true;
	}
	return false;
}

/* Whether there are messages to read. */
static bool ins_have_work(const struct wf_shm_ep *ep)
{
	return ep->draining || !wf_base_list_empty(&ep->letters) ||
	       wf_shm_watch_pending(&ep->watch);
}

/* Helping a receiver to copy needs no room in a queue. */
static bool is_sharing(const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;

	for (pos = ep->waiting_outs.next; pos != &ep->waiting_outs;
	     pos = pos->next) {
		if (wf_container_of(pos, struct wf_shm_out, waiting_link)
			    ->sharing)
			return true;
	}
	return false;
}

/* Whether there is work now. If a completion queue is full, messages, replies
 * and room can be handled only after the application has read the queue, which
 * it may do without a call that makes progress. *@stalled then tells the caller
 * to look again soon, but this is no reason to stay awake. */
static bool has_work(const struct wf_shm_ep *ep, bool *stalled)
{
	bool out = !wf_base_list_empty(&ep->waiting_outs) ||
		   !wf_base_list_empty(&ep->pending_outs) || ep->settling;

	*stalled = false;
	if (wf_shm_watch_has_room(&ep->watch)) {
		if (ins_have_work(ep))
			return true;
	} else {
		*stalled = ins_have_work(ep);
	}
	if (!out)
		return false;
	if (wf_op_compq_room(ep->txq))
		return ep->settling || outs_have_work(ep);
	*stalled = true;
	return is_sharing(ep);
}

bool wf_shm_doze_begin(struct wf_shm_ep *ep)
{
	if (ep->reap || ep->busy_pulls)
		return false;
	ep->slept = ep->host->asleep;
	if (!ep->slept) {
		for (uint32_t i = 0; i < ep->watch.count; i++)
			wf_shm_in_credit(ep->watch.ins[i]);
		wf_shm_stats_flush_all(ep);
	}
	tell_receivers(ep, 1);
	wf_shm_watch_all_bells(&ep->watch);
	wf_shared_store(&ep->board.board->asleep, 1, seq_cst);
	return true;
}

static void lower(uint64_t *deadline, uint64_t ns)
{
	if (ns < *deadline)
		*deadline = ns;
}

bool wf_shm_doze_has_work(struct wf_shm_ep *ep, uint64_t *deadline)
{
	bool stalled;

	wf_shm_watch_settle(&ep->watch);
	if (has_work(ep, &stalled))
		return true;
	if (stalled || needs_timer(ep))
		lower(deadline, wf_base_clock_ns() + RETRY_NS);
	else if (ep->watch.distrusted)
		lower(deadline, wf_base_clock_ns() + DISTRUST_NS);
	if (ep->connecting)
		lower(deadline, wf_shm_conn_next(ep));
	if (ep->deaf_until)
		lower(deadline, ep->deaf_until);
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_sleeps, !ep->slept);
	return false;
}

void wf_shm_doze_end(struct wf_shm_ep *ep)
{
	wf_shared_store(&ep->board.board->asleep, 0, seq_cst);
	wf_shm_watch_few_bells(&ep->watch);
	tell_receivers(ep, 0);
}
