/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longcts: the first packet announces the message, the receiver grants windows
 * (CTS) once it has a receive, and the rest follows as CTSDATA. For receivers
 * that cannot read the sender's memory, and for a message that could not be
 * read after all: then the first packet has no bytes and names a message that
 * is known.
 */
#include <errno.h>

#include "rdm/cts.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	(void)ep;
	(void)tx;
	return room;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	(void)max;
	return wf_rdm_cts_construct(ep, tx, pkts, !tx->nacked);
}

static void matched(struct wf_rdm_rx *rx)
{
	wf_rdm_rx_grant(rx);
}

/* Continues a message where the previous attempt to receive it ended. */
static int receive_nacked(struct wf_rdm_peer *peer,
			  const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx = wf_rdm_rx_find(peer, packet->msg_id);

	if (!rx || !rx->nacked || packet->data_len ||
	    packet->msg_length != rx->env.len || rx->named.has_id)
		return -EPROTO;
	rx->send_id = packet->send_id;
	rx->receipt = wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_DC;
	rx->granted = rx->read_from;
	wf_rdm_rx_grant(rx);
	return 0;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;

	if (packet->flags & WF_WIRE_NACKED)
		return receive_nacked(peer, packet);
	if (packet->msg_id != peer->order.expected || !packet->msg_length)
		return -EPROTO;
	rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_longcts, packet,
			       packet->msg_length, packet->data_len);
	if (!rx)
		return -EAGAIN;
	rx->granted = packet->data_len;
	wf_rdm_rx_place(rx, 0, packet->data, packet->data_len);
	if (rx->have == rx->env.len)
		wf_rdm_rx_finish(rx);
	else if (!rx->waits)
		wf_rdm_rx_grant(rx);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_longcts = {
	.name = "longcts",
	.kind = WF_TX_SEND,
	.types = {
		.msg = WF_WIRE_LONGCTS_MSGRTM,
		.tagged = WF_WIRE_LONGCTS_TAGRTM,
		.dc_msg = WF_WIRE_DC_LONGCTS_MSGRTM,
		.dc_tagged = WF_WIRE_DC_LONGCTS_TAGRTM,
	},
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.handle_tx_packets_posted = wf_rdm_cts_posted,
	.request_completed = wf_rdm_tx_is_delivered,
	.answered = wf_rdm_tx_receipt,
	.receive = receive,
	.matched = matched,
};
