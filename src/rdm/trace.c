/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of operations by packets.
 */
#include "rdm/trace.h"

#include "base/trace.h"
#include "rdm/ep.h"
#include "rdm/peer.h"

/* One number for both directions of a peer. */
static uint16_t channel_of(struct wf_rdm_peer *peer)
{
	if (!peer->traced) {
		peer->traced = true;
		peer->trace_channel = wf_base_trace_channel(
			peer->ep->host->trace, &peer->addr);
	}
	return peer->trace_channel;
}

/* Tells operations under way apart: they are of one pool. */
static uint64_t number_of(const struct wf_rdm_tx *tx)
{
	return ((uintptr_t)tx / WF_LINE) << WF_TRACE_LEN_BITS;
}

void wf_rdm_trace_post(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	uint64_t len = tx->req.len & ((1ull << WF_TRACE_LEN_BITS) - 1);

	wf_base_trace_emit(ep->host->trace, WF_TRACE_POST,
			   channel_of(tx->named.peer), tx->msg_id,
			   (uint8_t)tx->req.kind, tx->req.tag,
			   len | number_of(tx));
}

void wf_rdm_trace_done(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	wf_base_trace_emit(ep->host->trace, WF_TRACE_DONE,
			   channel_of(tx->named.peer), tx->msg_id,
			   (uint8_t)tx->req.kind, tx->req.tag, number_of(tx));
}

void wf_rdm_trace_came(struct wf_rdm_peer *peer,
		       const struct wf_wire_packet *packet)
{
	wf_base_trace_emit(peer->ep->host->trace, WF_TRACE_CAME,
			   channel_of(peer), packet->msg_id, 0, packet->tag,
			   packet->msg_length ? packet->msg_length :
						packet->data_len);
}
