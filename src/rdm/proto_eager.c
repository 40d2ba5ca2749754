/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager: the message is one packet. If the device lets the receiver choose
 * where the payload goes (place.h), a packet may be longer than a receive.
 */
#include <errno.h>
#include <string.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

/* Longer than what goes unasked in packets of the usual length. */
static bool is_long(const struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	return tx->req.len > tx->named.peer->max_msg &&
	       tx->req.len > ep->attr.medium_max;
}

bool wf_rdm_eager_is_crowded(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx)
{
	const struct wf_rdm_peer *peer = tx->named.peer;

	return ep->max_placed && tx->req.len > peer->max_msg && peer->pushed &&
	       tx->req.len + peer->pushed > WF_RDM_PUSHED_MOST;
}

static bool must_ask(const struct wf_rdm_peer *peer)
{
	return peer->greeted_us && (peer->features & WF_WIRE_FEATURE_ASK_FIRST);
}

/* The receiver shall read it. */
static bool must_be_read(const struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	return (is_long(ep, tx) && must_ask(tx->named.peer)) ||
	       (wf_rdm_eager_is_crowded(ep, tx) &&
		wf_rdm_protocol_longread.can_use_for_send(ep, tx, SIZE_MAX));
}

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	if (tx->req.len <= room)
		return true;
	/* One piece of memory that the device knows, behind the header. */
	return tx->req.len <= ep->max_placed &&
	       (tx->bounce || (tx->registered && tx->req.iov_count == 1)) &&
	       !must_be_read(ep, tx);
}

static void pushed_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	pkt->peer->pushed -= pkt->payload;
	wf_rdm_tx_request_done(ep, pkt, err);
}

void wf_rdm_eager_pushed(struct wf_rdm_pkt *pkt)
{
	pkt->peer->pushed += pkt->payload;
	pkt->completed = pushed_done;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	struct wf_rdm_peer *peer = tx->named.peer;
	bool is_pushed = ep->max_placed && tx->req.len > peer->max_msg;
	struct wf_wire_packet wire;

	/* That has come about since this was chosen. */
	if (wf_unlikely(is_pushed) && must_be_read(ep, tx))
		return wf_rdm_protocol_select(ep, tx) ?
			       0 :
			       tx->protocol->construct_tx_packets(ep, tx, pkts,
								  max);
	if (wf_unlikely(is_pushed) && wf_rdm_eager_is_crowded(ep, tx))
		return 0;
	if (tx->req.delivery && wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	pkts[0] = wf_rdm_tx_request(ep, tx, &wire, 0, tx->req.len);
	if (!pkts[0])
		return 0;
	if (wf_unlikely(is_pushed))
		wf_rdm_eager_pushed(pkts[0]);
	tx->sent = tx->req.len;
	tx->constructed = true;
	return 1;
}

/* With a receive and no receipt to give there is nothing to remember. */
bool wf_rdm_eager_deliver(struct wf_rxq *rxq, bool tagged,
			  const struct wf_envelope *env, const void *data)
{
	struct wf_rx *rx =
		wf_match_rxq_take(rxq, tagged, env->tag, env->src, env->len);
	size_t len;

	if (!rx)
		return false;
	len = env->len < rx->len ? env->len : rx->len;
	if (wf_likely(rx->iov_count == 1 && len))
		memcpy(rx->iov[0].iov_base, data, len);
	else
		wf_op_iov_scatter(rx->iov, rx->iov_count, 0, data, len);
	wf_match_rxq_done(rxq, rx, env);
	return true;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	unsigned int kind = wf_wire_packet_kind(packet->type);
	const struct wf_envelope env = {
		.tag = packet->tag,
		.data = packet->cq_data,
		.src = peer->name,
		.flags =
			packet->flags & WF_WIRE_CQ_DATA ? FI_REMOTE_CQ_DATA : 0,
		.len = packet->data_len,
	};
	struct wf_rdm_rx *rx;

	if (!(kind & WF_WIRE_KIND_DC) &&
	    wf_rdm_eager_deliver(peer->ep->rxq, kind & WF_WIRE_KIND_TAGGED,
				 &env, packet->data))
		return 0;
	rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_eager, packet,
			       packet->data_len, packet->data_len);
	if (!rx)
		return -EAGAIN;
	wf_rdm_rx_place(rx, 0, packet->data, packet->data_len);
	wf_rdm_rx_finish(rx);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_eager = {
	.name = "eager",
	.kind = WF_TX_SEND,
	.types = {
		.msg = WF_WIRE_EAGER_MSGRTM,
		.tagged = WF_WIRE_EAGER_TAGRTM,
		.dc_msg = WF_WIRE_DC_EAGER_MSGRTM,
		.dc_tagged = WF_WIRE_DC_EAGER_TAGRTM,
	},
	.is_unasked = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_delivered,
	.answered = wf_rdm_tx_receipt,
	.receive = receive,
};
