/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longread write: one packet names the target's memory and where the bytes are;
 * the target reads them in place and confirms when it is done (EOR).
 */
#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>

#include "op/iov.h"
#include "op/serve.h"
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
	return wf_rdm_protocol_longread.can_use_for_send(ep, tx, room);
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	return wf_rdm_protocol_longread.construct_tx_packets(ep, tx, pkts, max);
}

static void pulled(struct wf_rdm_rx *rx)
{
	struct wf_rdm_peer *peer = rx->named.peer;

	wf_rdm_pull_end(rx);
	wf_op_serve_note(rx->ep->host->regs, rx->segs[rx->seg_count - 1].key,
			 true);
	wf_rdm_serve_written(peer, rx->env.flags & FI_REMOTE_CQ_DATA,
			     rx->env.data, rx->env.len);
	rx->over = true;
	wf_rdm_rx_owe(rx, WF_RDM_OWES_EOR);
}

/* Where in our memory the bytes go. */
static int find_parts(struct wf_rdm_rx *rx, struct iovec *parts,
		      uint32_t *count)
{
	*count = 0;
	for (uint32_t i = 0; i < rx->seg_count; i++) {
		const struct wf_served at = {
			.addr = rx->segs[i].addr,
			.len = rx->segs[i].len,
			.key = rx->segs[i].key,
		};
		struct wf_reg_target target;
		int err = wf_op_serve_find(rx->ep->host->regs, &at,
					   FI_REMOTE_WRITE, &target);

		if (err) {
			wf_rdm_stat_add(rx->ep, WF_RDM_STAT_keys_rejected, 1);
			return err;
		}
		for (uint32_t j = 0; j < target.seg_count; j++)
			parts[(*count)++] = target.segs[j];
	}
	return 0;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct iovec parts[WF_OP_IOV_PARTS_MAX];
	struct wf_rdm_rx *rx;
	uint64_t total, readable;
	uint32_t count;
	int err;

	if (!packet->rma_iov_count || !packet->read_iov_count ||
	    wf_rdm_serve_total(packet->rma_iov, packet->rma_iov_count,
			       &total) ||
	    wf_rdm_serve_total(packet->read_iov, packet->read_iov_count,
			       &readable) ||
	    !total || total != packet->msg_length || readable != total)
		return -EPROTO;
	rx = wf_rdm_rx_new(peer, &wf_rdm_protocol_longread_write,
			   WF_RDM_RX_WRITE);
	if (!rx)
		return -EAGAIN;
	rx->send_id = packet->send_id;
	rx->env.len = total;
	rx->env.data = packet->cq_data;
	rx->env.flags = packet->flags & WF_WIRE_CQ_DATA ? FI_REMOTE_CQ_DATA : 0;
	rx->seg_count = packet->rma_iov_count;
	rx->read_count = packet->read_iov_count;
	memcpy(rx->segs, packet->rma_iov, sizeof(rx->segs));
	memcpy(rx->reads, packet->read_iov, sizeof(rx->reads));
	err = find_parts(rx, parts, &count);
	if (!err)
		err = wf_rdm_pull_begin(rx, parts, NULL, count, total);
	if (err)
		wf_rdm_rx_fail(rx, -err, true);
	return 0;
}

static int answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		    const struct wf_wire_packet *packet)
{
	if (packet->type != WF_WIRE_EOR)
		return -EPROTO;
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

const struct wf_rdm_protocol wf_rdm_protocol_longread_write = {
	.name = "longread_write",
	.kind = WF_TX_WRITE,
	.types = { .msg = WF_WIRE_LONGREAD_RTW },
	.ends_by_answer = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_answered,
	.answered = answered,
	.receive = receive,
	.pulled = pulled,
};
