/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says what operations by packets wait for. It is called ten times a second,
 * and looks at a bounded number of peers: the first operation of each list
 * stands for all. An operation began to wait when it was first seen here.
 */
#include "rdm/waits.h"

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"
#include "transport/waits.h"

#define PEERS 256
#define OPERATIONS 64

static uint32_t length_of(const struct wf_list *head)
{
	const struct wf_list *pos;
	uint32_t count = 0;

	for (pos = head->next; pos != head && count < OPERATIONS;
	     pos = pos->next)
		count++;
	return count;
}

/* The device's answer about the way there comes first. */
static enum wf_wait_step step_of(const struct wf_rdm_peer *peer,
				 const struct wf_rdm_tx *tx, bool up)
{
	if (!up)
		return WF_WAIT_FOR_LISTENER;
	if (!tx->begun)
		return tx->req.fence ? WF_WAIT_FOR_FENCE : WF_WAIT_FOR_QUEUE;
	if (tx->outstanding)
		return WF_WAIT_FOR_DELIVERY;
	if (!peer->greeted_us)
		return WF_WAIT_FOR_WELCOME;
	return tx->req.kind == WF_TX_SEND ? WF_WAIT_FOR_MATCH :
					    WF_WAIT_FOR_ANSWER;
}

static void add_tx(struct wf_waits *waits, const struct wf_rdm_peer *peer,
		   struct wf_list *list, bool up, uint64_t now)
{
	struct wf_rdm_tx *tx;
	struct wf_wait *wait;
	struct wf_list *pos = list->next;

	/* Those that were reported only wait for the device to forget them. */
	while (pos != list &&
	       wf_container_of(pos, struct wf_rdm_tx, link)->reported)
		pos = pos->next;
	if (pos == list)
		return;
	tx = wf_container_of(pos, struct wf_rdm_tx, link);
	wait = wf_transport_waits_add_tx(
		waits, &tx->req, step_of(peer, tx, up),
		wf_transport_waits_seen(&tx->since, now),
		tx->protocol ? tx->protocol->name : NULL, &peer->addr);
	if (!wait)
		return;
	wait->flags |= WF_WAIT_PACKETS;
	wait->count = length_of(list);
	wait->done = tx->req.kind == WF_TX_READ ? tx->have : tx->acked;
}

/* Messages of the peer that have a receive and are not whole. */
static void add_rxs(struct wf_waits *waits, struct wf_rdm_peer *peer,
		    uint64_t now)
{
	struct wf_list *pos, *tmp;
	uint32_t left = OPERATIONS;

	wf_list_for_each (pos, tmp, &peer->rxs) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, link);
		struct wf_wait *wait;

		if (!left--)
			return;
		if (rx->kind != WF_RDM_RX_MESSAGE || rx->waits || rx->over ||
		    rx->dropping)
			continue;
		wait = wf_transport_waits_add_rx(
			waits, rx->env.tag, rx->env.len, rx->have,
			wf_transport_waits_seen(&rx->since, now),
			rx->protocol->name, &peer->addr);
		if (!wait)
			return;
		wait->flags =
			WF_WAIT_PACKETS | (rx->tagged ? WF_WAIT_TAGGED : 0);
	}
}

static void add_peer(struct wf_waits *waits, struct wf_rdm_peer *peer,
		     uint64_t now)
{
	struct wf_nic_path path = { .up = false };

	if (wf_base_list_empty(&peer->queue) &&
	    wf_base_list_empty(&peer->flight) && wf_base_list_empty(&peer->rxs))
		return;
	if (wf_nic_ah_query(peer->ep->nic, peer->ah, &path))
		return;
	add_tx(waits, peer, &peer->flight, path.up, now);
	add_tx(waits, peer, &peer->queue, path.up, now);
	add_rxs(waits, peer, now);
}

void wf_rdm_waits(struct wf_rdm_ep *ep, struct wf_waits *waits, uint64_t now)
{
	struct wf_list *pos, *tmp;
	uint32_t left = PEERS;

	if (!ep->awake)
		return;
	waits->bank->operations += (uint32_t)ep->tx_pool.in_use + ep->run_more;
	wf_list_for_each (pos, tmp, &ep->peers) {
		if (!left--)
			break;
		add_peer(waits, wf_container_of(pos, struct wf_rdm_peer, link),
			 now);
	}
}
