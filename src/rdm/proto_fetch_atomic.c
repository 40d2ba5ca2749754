/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetch atomic: returns the previous value.
 */
#include "rdm/protocol.h"
#include "rdm/rta.h"
#include "rdm/tx.h"
#include "wire/packet.h"

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	(void)ep;
	return wf_rdm_rta_can_send(tx, WF_OP_AMO_FETCH, room);
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	(void)max;
	return wf_rdm_rta_construct(ep, tx, pkts, true);
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	return wf_rdm_rta_receive(peer, &wf_rdm_protocol_fetch_atomic, packet,
				  WF_OP_AMO_FETCH);
}

const struct wf_rdm_protocol wf_rdm_protocol_fetch_atomic = {
	.name = "fetch_atomic",
	.kind = WF_TX_ATOMIC,
	.types = {
		.msg = WF_WIRE_FETCH_RTA,
	},
	.ends_by_answer = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.request_completed = wf_rdm_tx_is_answered,
	.answered = wf_rdm_rta_answered,
	.receive = receive,
};
