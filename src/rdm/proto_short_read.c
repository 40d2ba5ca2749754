/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short read: the answer is one packet.
 */
#include "rdm/protocol.h"
#include "rdm/rtr.h"
#include "rdm/tx.h"

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	(void)ep;
	(void)room;
	return tx->req.len <= wf_rdm_rtr_room(tx->named.peer);
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	(void)max;
	return wf_rdm_rtr_construct(ep, tx, pkts, tx->req.len);
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	return wf_rdm_rtr_receive(peer, &wf_rdm_protocol_short_read, packet);
}

const struct wf_rdm_protocol wf_rdm_protocol_short_read = {
	.name = "short_read",
	.kind = WF_TX_READ,
	.types = { .msg = WF_WIRE_SHORT_RTR },
	.ends_by_answer = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_answered,
	.answered = wf_rdm_rtr_answered,
	.receive = receive,
};
