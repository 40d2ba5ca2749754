/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager write: remote memory and the bytes for it in one packet.
 */
#include <errno.h>

#include <rdma/fabric.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	(void)ep;
	return tx->req.len <= room;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	struct wf_wire_packet wire;

	(void)max;
	if (tx->req.delivery && wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	pkts[0] = wf_rdm_tx_request(ep, tx, &wire, 0, tx->req.len);
	tx->constructed = pkts[0];
	return tx->constructed;
}

static int write(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet)
{
	int err = wf_rdm_serve_check(peer, packet->rma_iov,
				     packet->rma_iov_count, FI_REMOTE_WRITE);

	if (!err)
		err = wf_rdm_serve_put(peer, packet->rma_iov,
				       packet->rma_iov_count, 0, packet->data,
				       packet->data_len, true);
	if (!err)
		wf_rdm_serve_written(peer, packet->flags & WF_WIRE_CQ_DATA,
				     packet->cq_data, packet->data_len);
	return err;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;
	uint64_t total;
	int err;

	if (wf_rdm_serve_total(packet->rma_iov, packet->rma_iov_count,
			       &total) ||
	    total != packet->data_len)
		return -EPROTO;
	if (!(wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_DC)) {
		if (!packet->rma_iov_count)
			return 0; /* somebody wants a handshake, and has it */
		write(peer, packet);
		return 0;
	}
	rx = wf_rdm_rx_new(peer, &wf_rdm_protocol_eager_write, WF_RDM_RX_WRITE);
	if (!rx)
		return -EAGAIN;
	rx->send_id = packet->send_id;
	err = write(peer, packet);
	if (err) {
		wf_rdm_rx_fail(rx, -err, true);
		return 0;
	}
	rx->over = true;
	wf_rdm_rx_owe(rx, WF_RDM_OWES_RECEIPT);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_eager_write = {
	.name = "eager_write",
	.kind = WF_TX_WRITE,
	.types = {
		.msg = WF_WIRE_EAGER_RTW,
		.dc_msg = WF_WIRE_DC_EAGER_RTW,
	},
	.is_unasked = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_delivered,
	.answered = wf_rdm_tx_receipt,
	.receive = receive,
};
