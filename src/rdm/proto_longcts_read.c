/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Longcts read: the answer begins with one packet and goes on as we grant.
 */
#include "rdm/peer.h"
#include "rdm/protocol.h"
#include "rdm/rtr.h"
#include "rdm/tx.h"

/* Packets that may come at once. */
#define FIRST_PACKETS 64

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	(void)ep;
	(void)tx;
	(void)room;
	return true;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	uint64_t first = (uint64_t)FIRST_PACKETS * tx->named.peer->max_msg;

	(void)max;
	return wf_rdm_rtr_construct(ep, tx, pkts,
				    tx->req.len < first ? tx->req.len : first);
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	return wf_rdm_rtr_receive(peer, &wf_rdm_protocol_longcts_read, packet);
}

const struct wf_rdm_protocol wf_rdm_protocol_longcts_read = {
	.name = "longcts_read",
	.kind = WF_TX_READ,
	.types = { .msg = WF_WIRE_LONGCTS_RTR },
	.ends_by_answer = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_answered,
	.answered = wf_rdm_rtr_answered,
	.receive = receive,
};
