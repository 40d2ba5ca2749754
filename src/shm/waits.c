/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says what operations through shared memory wait for. It is called ten times a
 * second, and looks at a bounded number of channels and operations: of those
 * that wait for the same peer at the same step, the first stands for all. An
 * operation began to wait when it was first seen here.
 */
#include "shm/waits.h"

#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/pull.h"
#include "shm/tx.h"
#include "transport/waits.h"

/* Channels of each kind, and operations of a channel, that are looked at. */
#define CHANNELS 256
#define OPERATIONS 64

/* -- operations of ours ----------------------------------------------------- */

static void add_tx(struct wf_waits *waits, const struct wf_shm_out *out,
		   struct wf_shm_tx *tx, enum wf_wait_step step, uint32_t count,
		   uint64_t now)
{
	const struct wf_tx *req = tx->req;
	struct wf_wait *wait = wf_transport_waits_add_tx(
		waits, req, step, wf_transport_waits_seen(&tx->since, now),
		tx->proto ? tx->proto->name : NULL, &out->addr);

	if (!wait)
		return;
	wait->count = count;
	wait->done = req->remote ? tx->done.answered : tx->pushed;
}

static enum wf_wait_step step_of_pending(const struct wf_shm_out *out,
					 const struct wf_shm_tx *tx)
{
	if (out->state == WF_SHM_OUT_CONNECTING)
		return WF_WAIT_FOR_LISTENER;
	if (out->state == WF_SHM_OUT_GREETED)
		return WF_WAIT_FOR_WELCOME;
	if (!wf_op_compq_room(out->ep->txq))
		return WF_WAIT_FOR_OWN_CQ;
	if (tx->req->fence && !tx->pushed && !tx->stream && out->waiting.count)
		return WF_WAIT_FOR_FENCE;
	return WF_WAIT_FOR_ROOM;
}

/* The first one holds up those behind it. */
static void add_pending(struct wf_waits *waits, struct wf_shm_out *out,
			uint64_t now)
{
	struct wf_shm_tx *first =
		wf_container_of(out->pending.next, struct wf_shm_tx, link);
	uint32_t count = 0;
	const struct wf_list *pos;

	for (pos = out->pending.next;
	     pos != &out->pending && count < OPERATIONS; pos = pos->next)
		count++;
	if (!count)
		return; /* the last one left since the last push */
	add_tx(waits, out, first, step_of_pending(out, first), count, now);
}

static bool is_shared(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	for (uint32_t bits = out->sharing; bits; bits &= bits - 1) {
		if (out->shared[__builtin_ctz(bits)] == tx)
			return true;
	}
	return false;
}

static enum wf_wait_step step_of_waiting(const struct wf_shm_out *out,
					 const struct wf_shm_tx *tx)
{
	if (!wf_op_compq_room(out->ep->txq))
		return WF_WAIT_FOR_OWN_CQ;
	if (tx->req->kind != WF_TX_SEND)
		return WF_WAIT_FOR_ANSWER;
	if (tx->stream || is_shared(out, tx))
		return WF_WAIT_FOR_BYTES;
	return WF_WAIT_FOR_MATCH;
}

/* The oldest that waits for a reply. */
static void add_waiting(struct wf_waits *waits, struct wf_shm_out *out,
			uint64_t now)
{
	struct wf_shm_tx *oldest = NULL;
	uint32_t left = OPERATIONS;

	for (uint32_t i = 0; i < out->waiting.room && left; i++) {
		struct wf_shm_tx *tx = wf_base_table_get(&out->waiting, i);

		if (!tx)
			continue;
		left--;
		wf_transport_waits_seen(&tx->since, now);
		if (!oldest || tx->since < oldest->since)
			oldest = tx;
	}
	if (oldest)
		add_tx(waits, out, oldest, step_of_waiting(out, oldest),
		       out->waiting.count, now);
}

/* Channels that nothing waits for in a queue: a caller that injects tries
 * again. */
static void add_connecting(struct wf_waits *waits, const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;
	uint32_t left = CHANNELS;

	for (pos = ep->all_outs.next; pos != &ep->all_outs && left--;
	     pos = pos->next) {
		const struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);
		bool greeted = out->state == WF_SHM_OUT_GREETED;
		struct wf_wait *wait;

		if ((out->state != WF_SHM_OUT_CONNECTING && !greeted) ||
		    !wf_base_list_empty(&out->pending))
			continue;
		wait = wf_base_waits_add(waits, WF_WAIT_CONNECT,
					 greeted ? WF_WAIT_FOR_WELCOME :
						   WF_WAIT_FOR_LISTENER,
					 out->since);
		if (wait)
			wf_base_waits_peer(wait, &out->addr);
	}
}

/* -- messages of peers ------------------------------------------------------ */

static void add_pulls(struct wf_waits *waits, struct wf_shm_in *in,
		      uint64_t now)
{
	for (uint32_t i = 0; i < in->pulls.room && i < OPERATIONS; i++) {
		struct wf_shm_pull *pull = wf_base_table_get(&in->pulls, i);

		if (pull && pull->state != WF_SHM_PULL_UNMATCHED)
			wf_transport_waits_add_rx(
				waits, pull->ux.tag, pull->ux.len, pull->have,
				wf_transport_waits_seen(&pull->since, now),
				"parked", &in->addr);
	}
}

static void add_in(struct wf_waits *waits, struct wf_shm_in *in, uint64_t now)
{
	struct wf_shm_assembly *as = &in->assembly;

	if (as->have)
		wf_transport_waits_add_rx(
			waits, as->env.tag, as->env.len, as->have,
			wf_transport_waits_seen(&as->since, now), "chunked",
			&in->addr);
	if (in->pulls.count)
		add_pulls(waits, in, now);
}

void wf_shm_waits(struct wf_shm_ep *ep, struct wf_waits *waits, uint64_t now)
{
	struct wf_list *pos, *tmp;
	uint32_t left = CHANNELS;

	waits->bank->operations += (uint32_t)ep->tx_pool.in_use;
	wf_list_for_each (pos, tmp, &ep->pending_outs) {
		if (!left--)
			break;
		add_pending(
			waits,
			wf_container_of(pos, struct wf_shm_out, pending_link),
			now);
	}
	left = CHANNELS;
	wf_list_for_each (pos, tmp, &ep->waiting_outs) {
		if (!left--)
			break;
		add_waiting(
			waits,
			wf_container_of(pos, struct wf_shm_out, waiting_link),
			now);
	}
	if (ep->connecting)
		add_connecting(waits, ep);
	for (uint32_t i = 0; i < ep->watch.count && i < CHANNELS; i++)
		add_in(waits, ep->watch.ins[i], now);
}
