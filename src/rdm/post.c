/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file chooses the next packet for a peer: owed packets first, then
 * operations in the order in which they were given, then the data of long ones
 * in turns. It does not decide whether the peer exists, or which life it
 * is in.
 */
#include "rdm/post.h"

#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "base/log.h"
#include "rdm/ep.h"
#include "rdm/in.h"
#include "rdm/lost.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rtr.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

/* Packets made at once for one operation. */
#define BATCH 32

/* Packets of long messages per turn, whatever the short ones took. */
#define STREAM_BUDGET 32

#define FEATURES                                                               \
	(WF_WIRE_FEATURE_RDMA_READ | WF_WIRE_FEATURE_DC |                      \
	 WF_WIRE_FEATURE_CONNID | WF_WIRE_FEATURE_RUNT |                       \
	 WF_WIRE_FEATURE_READ_NACK | WF_WIRE_FEATURE_PEER_ERROR)

#define FEATURES_NO_READ (FEATURES & ~(uint64_t)WF_WIRE_FEATURE_RDMA_READ)

void wf_rdm_post_activate(struct wf_rdm_peer *peer)
{
	if (peer->active)
		return;
	peer->active = true;
	peer->ep->blocked = false;
	wf_base_list_add_tail(&peer->ep->active, &peer->active_link);
}

/* A packet that is a header and nothing else. */
static bool post_note(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *wire, bool repeats)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_pkt *pkt = NULL;

	if (wf_rdm_ep_has_room(ep))
		pkt = wf_rdm_pkt_make(ep, peer, wire, 0);
	if (!pkt)
		return false;
	pkt->repeats = repeats;
	wf_rdm_pkt_post(ep, pkt);
	return true;
}

static bool post_handshake(struct wf_rdm_peer *peer)
{
	const struct wf_wire_packet wire = {
		.type = WF_WIRE_HANDSHAKE,
		.flags = WF_WIRE_CONNID,
		.connid = peer->life.ours,
		.extra_count = 1,
		.extra = { (peer->ep->attr.reads ? FEATURES :
						   FEATURES_NO_READ) |
			   (peer->asks_first ? WF_WIRE_FEATURE_ASK_FIRST : 0) },
	};

	if (!post_note(peer, &wire, true))
		return false;
	peer->owes_handshake = false;
	peer->sent_handshake = true;
	return true;
}

/* A write of no bytes to no address: it changes nothing, and the device finds
 * out whether the peer exists. */
static bool post_probe(struct wf_rdm_peer *peer)
{
	struct wf_wire_packet wire = {
		.type = WF_WIRE_EAGER_RTW,
		.flags = WF_WIRE_CONNID,
		.connid = peer->life.ours,
	};

	if (peer->life.fixed && !peer->greeted_us)
		wf_rdm_tx_raw_addr(peer->ep, &wire);
	if (!post_note(peer, &wire, false))
		return false;
	peer->owes_probe = false;
	return true;
}

uint32_t wf_rdm_post_room(const struct wf_rdm_peer *peer)
{
	const struct wf_rdm_ep *ep = peer->ep;
	uint32_t room = wf_nic_qp_send_room(ep->qp);

	/* A peer that does not answer must not occupy all of the queue. */
	if (ep->peer_count > 1 && peer->outstanding >= WF_RDM_PEER_SHARE)
		return 0;
	return room;
}

/* Owed packets that cannot be sent now go to the end of the list, so that
 * others are sent. */
static bool post_owed(struct wf_rdm_peer *peer)
{
	struct wf_list *pos, *tmp, *last = peer->owing.prev;
	bool all = true;

	wf_list_for_each (pos, tmp, &peer->owing) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, owe_link);

		all &= wf_rdm_rx_pay(rx);
		if (pos == last || !wf_rdm_ep_has_room(peer->ep))
			break;
	}
	return all && wf_base_list_empty(&peer->owing);
}

static bool post_asking(struct wf_rdm_peer *peer)
{
	while (!wf_base_list_empty(&peer->asking)) {
		if (!wf_rdm_rtr_ask(peer, wf_container_of(peer->asking.next,
							  struct wf_rdm_tx,
							  unacked_link)))
			return false;
	}
	return true;
}

/* Whether anything is in flight besides the operation of which @tx is a
 * piece. */
static bool others_fly(const struct wf_rdm_peer *peer,
		       const struct wf_rdm_tx *tx)
{
	const struct wf_list *first = peer->flight.next;

	if (tx->whole && first == &tx->whole->link)
		first = first->next;
	return first != &peer->flight;
}

bool wf_rdm_post_is_ahead(const struct wf_rdm_peer *peer)
{
	const struct wf_list *first = peer->unacked.next;

	return first != &peer->unacked &&
	       peer->posted - wf_container_of(first, struct wf_rdm_tx,
					      unacked_link)
				       ->began >=
		       WF_RDM_AHEAD;
}

/* Whether @tx has to wait for others of the same peer. */
static bool is_blocked(const struct wf_rdm_peer *peer,
		       const struct wf_rdm_tx *tx)
{
	uint64_t order = peer->ep->attr.order;
	uint64_t after_write = 0, after_read = 0;

	if (tx->begun)
		return false;
	if (tx->req.fence && others_fly(peer, tx))
		return true;
	if (wf_rdm_post_is_ahead(peer))
		return true;
	if (wf_likely(!peer->writes && !peer->reads))
		return false;
	switch (tx->req.kind) {
	case WF_TX_SEND:
		after_write = FI_ORDER_SAW;
		after_read = FI_ORDER_SAR;
		break;
	case WF_TX_WRITE:
		after_write = FI_ORDER_RMA_WAW;
		after_read = FI_ORDER_RMA_WAR;
		break;
	case WF_TX_READ:
		after_write = FI_ORDER_RMA_RAW;
		after_read = FI_ORDER_RMA_RAR;
		break;
	case WF_TX_ATOMIC:
		break; /* among themselves by number */
	}
	return ((order & after_write) && peer->writes) ||
	       ((order & after_read) && peer->reads);
}

void wf_rdm_post_begin(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
{
	if (tx->begun)
		return;
	tx->begun = true;
	tx->began = peer->posted;
	if (tx->ordered)
		wf_base_list_add_tail(&peer->unacked, &tx->unacked_link);
	tx->counted = tx->req.kind == WF_TX_WRITE ||
		      tx->req.kind == WF_TX_READ ||
		      tx->req.kind == WF_TX_ATOMIC;
	if (tx->req.kind == WF_TX_READ)
		peer->reads++;
	else if (tx->counted)
		peer->writes++;
}

static void log_posted(const struct wf_rdm_tx *tx)
{
	if (wf_unlikely(wf_base_log_debugs()))
		wf_debug("%s: %u packets, %zu bytes, message %u",
			 tx->protocol->name, tx->packets, tx->req.len,
			 tx->msg_id);
}

/* Makes and posts packets of one operation. Returns how many. */
static int post_tx(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx, int max)
{
	struct wf_rdm_pkt *pkts[BATCH];
	struct wf_rdm_ep *ep = peer->ep;
	uint32_t room = wf_rdm_post_room(peer);
	int count;

	if (max > BATCH)
		max = BATCH;
	if ((uint32_t)max > room)
		max = (int)room;
	if (!max)
		return 0;
	wf_rdm_post_begin(peer, tx);
	count = tx->protocol->construct_tx_packets(ep, tx, pkts, max);
	ep->last = ep->alone && count == 1 && tx->constructed &&
		   tx->link.next == &peer->queue;
	for (int i = 0; i < count; i++)
		wf_rdm_pkt_post(ep, pkts[i]);
	ep->last = false;
	peer->posted += (uint64_t)count;
	if (!tx->constructed)
		return count;
	wf_base_list_del(&tx->link);
	wf_base_list_add_tail(&peer->flight, &tx->link);
	log_posted(tx);
	if (tx->protocol->handle_tx_packets_posted)
		tx->protocol->handle_tx_packets_posted(ep, tx);
	return count;
}

static int post_queue(struct wf_rdm_peer *peer, int budget, bool *stuck)
{
	int posted = 0;

	*stuck = false;
	while (posted < budget && !wf_base_list_empty(&peer->queue)) {
		struct wf_rdm_tx *tx = wf_container_of(peer->queue.next,
						       struct wf_rdm_tx, link);
		int count;

		/* The event that it waits for activates the peer again. */
		if (is_blocked(peer, tx))
			return posted;
		count = post_tx(peer, tx, budget - posted);
		posted += count;
		if (!count) {
			*stuck = true;
			return posted;
		}
	}
	*stuck = !wf_base_list_empty(&peer->queue);
	return posted;
}

/* The peer is gone: whether it is back is found out before a message is sent. */
static bool ask(struct wf_rdm_peer *peer)
{
	return peer->outstanding || post_probe(peer);
}

/* One operation after the other, a few packets each. */
static bool post_streams(struct wf_rdm_peer *peer, int budget)
{
	while (budget > 0 && !wf_base_list_empty(&peer->streams)) {
		struct wf_rdm_stream *stream = wf_container_of(
			peer->streams.next, struct wf_rdm_stream, link);
		int count;

		wf_base_list_unlink(&stream->link);
		wf_base_list_add_tail(&peer->streams, &stream->link);
		count = wf_rdm_stream_pump(peer, stream, 8);
		if (!count && !wf_rdm_ep_has_room(peer->ep))
			return false;
		if (!count && !wf_base_list_empty(&peer->streams))
			return false; /* no packet is free */
		budget -= count;
	}
	return wf_base_list_empty(&peer->streams);
}

/* @tx is all that there is to do for @peer. */
static bool is_all(const struct wf_rdm_peer *peer, const struct wf_rdm_tx *tx)
{
	return peer->queue.next == &tx->link && !peer->behind &&
	       !peer->barred && !peer->owes_handshake && !peer->owes_probe &&
	       !peer->gone && wf_base_list_empty(&peer->again) &&
	       wf_base_list_empty(&peer->owing) &&
	       wf_base_list_empty(&peer->asking) &&
	       wf_base_list_empty(&peer->streams);
}

bool wf_rdm_post_at_once(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
{
	return is_all(peer, tx) && !is_blocked(peer, tx) &&
	       post_tx(peer, tx, BATCH) && tx->constructed;
}

bool wf_rdm_post_pump(struct wf_rdm_peer *peer, int budget)
{
	bool stuck = false, all = true;

	if (wf_unlikely(peer->behind))
		wf_rdm_in_catch_up(peer);
	if (wf_unlikely(peer->barred) && !wf_rdm_peer_unbar(peer))
		return true;
	if (peer->owes_handshake)
		all &= post_handshake(peer);
	if (wf_unlikely(!wf_base_list_empty(&peer->again)))
		all &= wf_rdm_lost_post(peer);
	if (wf_unlikely(peer->owes_probe))
		all &= post_probe(peer);
	if (!wf_base_list_empty(&peer->owing))
		all &= post_owed(peer);
	if (!wf_base_list_empty(&peer->asking))
		all &= post_asking(peer);
	if (wf_unlikely(peer->gone) && !wf_base_list_empty(&peer->queue)) {
		all &= ask(peer);
	} else if (!wf_base_list_empty(&peer->queue)) {
		budget -= post_queue(peer, budget, &stuck);
		all &= !stuck;
	}
	if (!wf_base_list_empty(&peer->streams))
		all &= post_streams(peer, STREAM_BUDGET);
	return !all || peer->behind;
}
