/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading remote memory.
 */
#include "rdm/rtr.h"

#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

/* Bytes of a read under way at once, as for long messages. */
#define GRANT_PACKETS 64

uint64_t wf_rdm_rtr_room(const struct wf_rdm_peer *peer)
{
	const struct wf_wire_packet wire = { .type = WF_WIRE_READRSP,
					     .flags = WF_WIRE_CONNID };

	return peer->max_msg - wf_wire_packet_header(&wire);
}

int wf_rdm_rtr_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, uint64_t first)
{
	struct wf_wire_packet wire;

	if (wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	wire.recv_length = first;
	pkts[0] = wf_rdm_tx_request(ep, tx, &wire, 0, 0);
	if (!pkts[0])
		return 0;
	tx->granted = first;
	tx->constructed = true;
	return 1;
}

int wf_rdm_rtr_receive(struct wf_rdm_peer *peer,
		       const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;
	uint64_t total;
	int err;

	if (wf_rdm_serve_total(packet->rma_iov, packet->rma_iov_count,
			       &total) ||
	    total != packet->msg_length || packet->recv_length > total)
		return -EPROTO;
	rx = wf_rdm_rx_new(peer, protocol, WF_RDM_RX_ANSWER);
	if (!rx)
		return -EAGAIN;
	if (wf_rdm_named_add(peer->ep, &rx->named)) {
		wf_rdm_rx_free(rx);
		return -EAGAIN;
	}
	rx->send_id = packet->recv_id;
	rx->answer = WF_WIRE_READRSP;
	rx->seg_count = packet->rma_iov_count;
	memcpy(rx->segs, packet->rma_iov, sizeof(rx->segs));
	rx->stream.end = total;
	rx->stream.window = packet->recv_length;
	err = wf_rdm_serve_check(peer, rx->segs, rx->seg_count, FI_REMOTE_READ);
	if (err)
		wf_rdm_rx_fail(rx, -err, true);
	else
		wf_rdm_rx_owe(rx, WF_RDM_OWES_ANSWER);
	return 0;
}

/* -- what comes back ------------------------------------------------------- */

/* Half of what was granted has come. */
static void ask_for_more(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
{
	uint64_t window = (uint64_t)GRANT_PACKETS * peer->max_msg;

	if (tx->granted == tx->req.len || !tx->knows_peer_op ||
	    tx->granted - tx->have > window / 2 ||
	    !wf_base_list_empty(&tx->unacked_link))
		return;
	wf_base_list_add_tail(&peer->asking, &tx->unacked_link);
	wf_rdm_post_activate(peer);
}

bool wf_rdm_rtr_ask(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
{
	struct wf_rdm_ep *ep = peer->ep;
	uint64_t window = (uint64_t)GRANT_PACKETS * peer->max_msg;
	uint64_t left = tx->req.len - tx->granted;
	struct wf_wire_packet wire = {
		.type = WF_WIRE_CTS,
		.flags = WF_WIRE_CONNID | WF_WIRE_FOR_READ,
		.connid = peer->life.ours,
		.send_id = tx->peer_op,
		.recv_id = tx->named.id,
		.recv_length = left < window ? left : window,
	};
	struct wf_rdm_pkt *pkt = NULL;

	if (wf_rdm_ep_has_room(ep))
		pkt = wf_rdm_pkt_make(ep, peer, &wire, 0);
	if (!pkt)
		return false;
	wf_base_list_del(&tx->unacked_link);
	tx->granted += wire.recv_length;
	wf_rdm_pkt_post(ep, pkt);
	return true;
}

static int take(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		const struct wf_wire_packet *packet)
{
	uint64_t left = tx->req.len - tx->have;

	if (tx->err || tx->reported || packet->data_len > left ||
	    packet->seg_offset > tx->req.len ||
	    packet->data_len > tx->req.len - packet->seg_offset)
		return -EPROTO;
	wf_op_iov_scatter(tx->req.iov, tx->req.iov_count, packet->seg_offset,
			  packet->data, packet->data_len);
	tx->have += packet->data_len;
	if (tx->have == tx->req.len && tx->knows_peer_op)
		wf_rdm_tx_answer(peer->ep, tx, 0);
	else
		ask_for_more(peer, tx);
	return 0;
}

int wf_rdm_rtr_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			const struct wf_wire_packet *packet)
{
	switch (packet->type) {
	case WF_WIRE_READRSP:
		if (tx->knows_peer_op)
			return -EPROTO;
		tx->peer_op = packet->send_id;
		tx->knows_peer_op = true;
		return take(peer, tx, packet);
	case WF_WIRE_CTSDATA:
		return take(peer, tx, packet);
	default:
		return -EPROTO;
	}
}
