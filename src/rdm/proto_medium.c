/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Medium: the message is several packets, each of which says to which message
 * it belongs and where its bytes go. The first to arrive finds the receive.
 */
#include <errno.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

/* We accept so much from peers, whose limit may differ: a parked message is
 * kept in memory. */
#define RECEIVE_MAX ((uint64_t)16 << 20)

#define ALIGN 64u

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	/* No more packets than a receiver keeps for a message that is early. */
	return room && tx->req.len <= ep->attr.medium_max &&
	       tx->req.len / room < WF_RDM_AHEAD &&
	       !(wf_rdm_eager_is_crowded(ep, tx) &&
		 wf_rdm_protocol_longread.can_use_for_send(ep, tx, room));
}

/* Packets of about the same size, so that none is nearly empty. */
static size_t piece(size_t len, size_t room)
{
	size_t count = (len + room - 1) / room;
	size_t even = (len + count - 1) / count;
	size_t aligned = (even + ALIGN - 1) / ALIGN * ALIGN;

	return aligned <= room ? aligned : even;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	struct wf_wire_packet wire;
	size_t most;
	int count = 0;

	if (!tx->sent && wf_rdm_eager_is_crowded(ep, tx))
		return 0;
	if (tx->req.delivery && wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	most = piece(tx->req.len, wf_rdm_tx_room(tx, &wire));
	while (count < max && !tx->constructed) {
		uint64_t left = tx->req.len - tx->sent;
		size_t len = left < most ? left : most;

		wire.seg_offset = tx->sent;
		pkts[count] = wf_rdm_tx_request(ep, tx, &wire, tx->sent, len);
		if (!pkts[count])
			break;
		if (ep->max_placed)
			wf_rdm_eager_pushed(pkts[count]);
		count++;
		tx->sent += len;
		tx->constructed = tx->sent == tx->req.len;
	}
	return count;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx = wf_rdm_rx_find(peer, packet->msg_id);
	uint64_t total = packet->msg_length;

	if (!packet->data_len || packet->data_len > total ||
	    total > RECEIVE_MAX)
		return -EPROTO;
	if (!rx) {
		if (packet->msg_id != peer->order.expected)
			return -EPROTO;
		rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_medium, packet,
				       total, total);
		if (!rx)
			return -EAGAIN;
	}
	if (rx->protocol != &wf_rdm_protocol_medium || total != rx->env.len ||
	    packet->data_len > total - rx->have)
		return -EPROTO;
	wf_rdm_rx_place(rx, packet->seg_offset, packet->data, packet->data_len);
	if (rx->have == total)
		wf_rdm_rx_finish(rx);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_medium = {
	.name = "medium",
	.kind = WF_TX_SEND,
	.types = {
		.msg = WF_WIRE_MEDIUM_MSGRTM,
		.tagged = WF_WIRE_MEDIUM_TAGRTM,
		.dc_msg = WF_WIRE_DC_MEDIUM_MSGRTM,
		.dc_tagged = WF_WIRE_DC_MEDIUM_TAGRTM,
	},
	.has_more = true,
	.is_unasked = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_delivered,
	.answered = wf_rdm_tx_receipt,
	.receive = receive,
};
