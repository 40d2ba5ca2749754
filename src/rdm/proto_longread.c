/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longread: one packet says where the message is; the receiver reads it through
 * the device once it has a receive, and confirms when it is done (EOR).
 */
#include <errno.h>
#include <string.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/pull.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	const struct wf_rdm_peer *peer = tx->named.peer;

	return tx->registered && !tx->lent &&
	       (tx->req.len >= ep->attr.read_min ||
		(ep->attr.read_advised && wf_rdm_eager_is_crowded(ep, tx))) &&
	       ep->attr.reads && peer->greeted_us &&
	       (peer->features & WF_WIRE_FEATURE_RDMA_READ) &&
	       tx->req.iov_count * sizeof(struct wf_wire_iov) <= room;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	struct wf_wire_packet wire;

	(void)max;
	if (wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	wire.read_iov_count = wf_rdm_tx_read_iov(tx, wire.read_iov);
	pkts[0] = wf_rdm_tx_request(ep, tx, &wire, 0, 0);
	tx->constructed = pkts[0];
	return tx->constructed;
}

static void pulled(struct wf_rdm_rx *rx)
{
	wf_rdm_rx_owe(rx, WF_RDM_OWES_EOR);
	wf_rdm_rx_finish(rx);
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;
	uint64_t total;

	if (packet->msg_id != peer->order.expected || !packet->read_iov_count ||
	    wf_rdm_serve_total(packet->read_iov, packet->read_iov_count,
			       &total) ||
	    !total || total != packet->msg_length)
		return -EPROTO;
	rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_longread, packet, total,
			       0);
	if (!rx)
		return -EAGAIN;
	rx->read_count = packet->read_iov_count;
	memcpy(rx->reads, packet->read_iov, sizeof(rx->reads));
	if (!rx->waits)
		wf_rdm_pull_message(rx);
	return 0;
}

/* The receiver has read it, or cannot. */
static int answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		    const struct wf_wire_packet *packet)
{
	if (packet->type == WF_WIRE_READ_NACK)
		return wf_rdm_protocol_nack(peer->ep, tx);
	if (packet->type != WF_WIRE_EOR)
		return -EPROTO;
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_longread = {
	.name = "longread",
	.kind = WF_TX_SEND,
	.types = {
		.msg = WF_WIRE_LONGREAD_MSGRTM,
		.tagged = WF_WIRE_LONGREAD_TAGRTM,
	},
	.ends_by_answer = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_answered,
	.answered = answered,
	.receive = receive,
	.matched = wf_rdm_pull_message,
	.pulled = pulled,
};
