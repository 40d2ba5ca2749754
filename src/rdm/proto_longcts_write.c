/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longcts write: the first packet names the memory, the rest comes as the
 * target grants.
 */
#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>

#include "rdm/cts.h"
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
	(void)tx;
	return room;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	(void)max;
	return wf_rdm_cts_construct(ep, tx, pkts, true);
}

/* All of it is there. */
static void pulled(struct wf_rdm_rx *rx)
{
	wf_rdm_serve_written(rx->named.peer, rx->env.flags & FI_REMOTE_CQ_DATA,
			     rx->env.data, rx->env.len);
	rx->over = true;
	if (rx->receipt)
		wf_rdm_rx_owe(rx, WF_RDM_OWES_RECEIPT);
	wf_rdm_rx_settle(rx);
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;
	uint64_t total;
	int err;

	if (!packet->rma_iov_count ||
	    wf_rdm_serve_total(packet->rma_iov, packet->rma_iov_count,
			       &total) ||
	    !total || total != packet->msg_length)
		return -EPROTO;
	rx = wf_rdm_rx_new(peer, &wf_rdm_protocol_longcts_write,
			   WF_RDM_RX_WRITE);
	if (!rx)
		return -EAGAIN;
	rx->send_id = packet->send_id;
	rx->receipt = wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_DC;
	rx->env.len = total;
	rx->env.data = packet->cq_data;
	rx->env.flags = packet->flags & WF_WIRE_CQ_DATA ? FI_REMOTE_CQ_DATA : 0;
	rx->seg_count = packet->rma_iov_count;
	memcpy(rx->segs, packet->rma_iov, sizeof(rx->segs));
	err = wf_rdm_serve_check(peer, rx->segs, rx->seg_count,
				 FI_REMOTE_WRITE);
	if (!err)
		err = wf_rdm_serve_put(peer, rx->segs, rx->seg_count, 0,
				       packet->data, packet->data_len,
				       packet->data_len == total);
	if (err) {
		wf_rdm_rx_fail(rx, -err, true);
		return 0;
	}
	rx->have = packet->data_len;
	rx->granted = packet->data_len;
	if (rx->have == total)
		pulled(rx);
	else
		wf_rdm_rx_grant(rx);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_longcts_write = {
	.name = "longcts_write",
	.kind = WF_TX_WRITE,
	.types = {
		.msg = WF_WIRE_LONGCTS_RTW,
		.dc_msg = WF_WIRE_DC_LONGCTS_RTW,
	},
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.handle_tx_packets_posted = wf_rdm_cts_posted,
	.request_completed = wf_rdm_tx_is_delivered,
	.answered = wf_rdm_tx_receipt,
	.receive = receive,
	.pulled = pulled,
};
