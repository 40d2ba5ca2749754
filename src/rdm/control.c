/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of operations in flight. The decoder has validated each packet by
 * itself; this file checks whether it matches an operation of ours.
 */
#include "rdm/control.h"

#include <errno.h>
#include <stddef.h>

#include <rdma/fi_errno.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

static struct wf_rdm_tx *find_tx(struct wf_rdm_peer *peer, uint32_t id)
{
	struct wf_rdm_named *named = wf_rdm_named_get(peer->ep, peer, id);

	if (!named || !named->is_tx)
		return NULL;
	return wf_container_of(named, struct wf_rdm_tx, named);
}

static struct wf_rdm_rx *find_rx(struct wf_rdm_peer *peer, uint32_t id)
{
	struct wf_rdm_named *named = wf_rdm_named_get(peer->ep, peer, id);

	if (!named || named->is_tx)
		return NULL;
	return wf_container_of(named, struct wf_rdm_rx, named);
}

static int on_handshake(struct wf_rdm_peer *peer,
			const struct wf_wire_packet *packet)
{
	wf_rdm_peer_greeted(peer, packet);
	return 0;
}

static int on_cts(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx;
	struct wf_rdm_tx *tx;

	if (packet->flags & WF_WIRE_FOR_READ) {
		rx = find_rx(peer, packet->send_id);
		if (!rx || rx->kind != WF_RDM_RX_ANSWER || rx->err ||
		    rx->answer != WF_WIRE_READRSP || !rx->stream.packet)
			return -EPROTO;
		return wf_rdm_stream_grant(peer, &rx->stream, packet->recv_id,
					   packet->recv_length);
	}
	tx = find_tx(peer, packet->send_id);
	if (!tx || tx->err || tx->reported || !tx->stream.packet)
		return -EPROTO;
	return wf_rdm_stream_grant(peer, &tx->stream, packet->recv_id,
				   packet->recv_length);
}

/* -- data ------------------------------------------------------------------ */

static int take_write(struct wf_rdm_rx *rx, const struct wf_wire_packet *packet)
{
	struct wf_rdm_peer *peer = rx->named.peer;
	bool last = rx->have + packet->data_len == rx->env.len;
	int err = wf_rdm_serve_put(peer, rx->segs, rx->seg_count,
				   packet->seg_offset, packet->data,
				   packet->data_len, last);

	if (err) {
		wf_rdm_rx_fail(rx, -err, true);
		return 0;
	}
	rx->have += packet->data_len;
	if (!last) {
		wf_rdm_rx_grant(rx);
		return 0;
	}
	rx->protocol->pulled(rx);
	return 0;
}

static int on_ctsdata(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->recv_id);
	struct wf_rdm_rx *rx;

	if (tx)
		return tx->protocol->answered(peer, tx, packet);
	rx = find_rx(peer, packet->recv_id);
	if (!rx || rx->over || rx->err || rx->kind == WF_RDM_RX_ANSWER ||
	    !packet->data_len || packet->seg_offset > rx->granted ||
	    packet->data_len > rx->granted - packet->seg_offset ||
	    packet->data_len > rx->env.len - rx->have)
		return -EPROTO;
	if (rx->kind == WF_RDM_RX_WRITE)
		return take_write(rx, packet);
	wf_rdm_rx_place(rx, packet->seg_offset, packet->data, packet->data_len);
	if (rx->have == rx->env.len)
		wf_rdm_rx_finish(rx);
	else
		wf_rdm_rx_grant(rx);
	return 0;
}

/* -- answers --------------------------------------------------------------- */

static int answer(struct wf_rdm_peer *peer, uint32_t id,
		  const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, id);

	return tx ? tx->protocol->answered(peer, tx, packet) : -EPROTO;
}

static int on_data(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	return answer(peer, packet->recv_id, packet);
}

static int on_word(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	return answer(peer, packet->send_id, packet);
}

static int on_peer_error(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet)
{
	int err = packet->prov_errno && packet->prov_errno < 1u << 16 ?
			  (int)packet->prov_errno :
			  FI_EIO;
	struct wf_rdm_tx *tx;
	struct wf_rdm_rx *rx;

	tx = find_tx(peer, packet->op_id);
	if (tx) {
		wf_rdm_tx_answer(peer->ep, tx, err);
		return 0;
	}
	rx = find_rx(peer, packet->op_id);
	if (!rx || rx->over)
		return -EPROTO;
	wf_rdm_rx_fail(rx, err, false);
	return 0;
}

static int (*const handlers[])(struct wf_rdm_peer *,
			       const struct wf_wire_packet *) = {
	[WF_WIRE_CTS] = on_cts,
	[WF_WIRE_CTSDATA] = on_ctsdata,
	[WF_WIRE_READRSP] = on_data,
	[WF_WIRE_EOR] = on_word,
	[WF_WIRE_ATOMRSP] = on_data,
	[WF_WIRE_HANDSHAKE] = on_handshake,
	[WF_WIRE_RECEIPT] = on_word,
	[WF_WIRE_READ_NACK] = on_word,
	[WF_WIRE_PEER_ERROR] = on_peer_error,
};

int wf_rdm_control_receive(struct wf_rdm_peer *peer,
			   const struct wf_wire_packet *packet)
{
	if (packet->type >= sizeof(handlers) / sizeof(handlers[0]) ||
	    !handlers[packet->type])
		return -EPROTO;
	return handlers[packet->type](peer, packet);
}
