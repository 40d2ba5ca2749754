/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading remote memory.
 */
#include "rdm/rtr.h"

#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

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
