/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of operations that are under way. The decoder has checked what a
 * packet says of itself; here is checked whether it means something to us.
 */
#include "rdm/control.h"

#include <errno.h>
#include <stddef.h>

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

/* Bytes of a read under way at once, as for long messages. */
#define GRANT_PACKETS 64

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

/* -- data that was asked for ----------------------------------------------- */

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

bool wf_rdm_control_ask(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
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

static int take_read(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		     const struct wf_wire_packet *packet)
{
	uint64_t left = tx->req.len - tx->have;

	if (tx->req.kind != WF_TX_READ || tx->err || tx->reported ||
	    packet->data_len > left || packet->seg_offset > tx->req.len ||
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

static int on_readrsp(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->recv_id);

	if (!tx || tx->knows_peer_op)
		return -EPROTO;
	tx->peer_op = packet->send_id;
	tx->knows_peer_op = true;
	return take_read(peer, tx, packet);
}

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
		return take_read(peer, tx, packet);
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

static int on_atomrsp(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->recv_id);

	if (!tx || tx->req.kind != WF_TX_ATOMIC || tx->err || tx->reported ||
	    !tx->protocol->ends_by_answer || packet->data_len != tx->req.len)
		return -EPROTO;
	wf_op_iov_scatter(tx->remote.result, tx->remote.result_count, 0,
			  packet->data, packet->data_len);
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

/* -- last words ------------------------------------------------------------ */

static int on_eor(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->send_id);

	if (!tx || !tx->protocol->ends_by_answer ||
	    (tx->req.kind != WF_TX_SEND && tx->req.kind != WF_TX_WRITE))
		return -EPROTO;
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

static int on_receipt(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->send_id);

	if (!tx || !tx->req.delivery || tx->protocol->ends_by_answer ||
	    !tx->constructed)
		return -EPROTO;
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

/* The receiver cannot read: the same message goes by CTS. */
static int on_read_nack(struct wf_rdm_peer *peer,
			const struct wf_wire_packet *packet)
{
	struct wf_rdm_tx *tx = find_tx(peer, packet->send_id);

	if (!tx || tx->err || tx->nacked || tx->reported ||
	    (tx->protocol != &wf_rdm_protocol_longread &&
	     tx->protocol != &wf_rdm_protocol_runtread))
		return -EPROTO;
	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_read_nacks, 1);
	tx->nacked = true;
	/* A runt that is under way comes first. */
	if (tx->constructed)
		wf_rdm_protocol_nacked(peer->ep, tx);
	return 0;
}

static int on_peer_error(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet)
{
	int err = packet->prov_errno && packet->prov_errno < 1u << 16 ?
			  (int)packet->prov_errno :
			  FI_EIO;
	struct wf_rdm_tx *tx;
	struct wf_rdm_rx *rx;

	if (packet->ref_kind != WF_RDM_REF_OP)
		return -EPROTO;
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
	[WF_WIRE_READRSP] = on_readrsp,
	[WF_WIRE_EOR] = on_eor,
	[WF_WIRE_ATOMRSP] = on_atomrsp,
	[WF_WIRE_HANDSHAKE] = on_handshake,
	[WF_WIRE_RECEIPT] = on_receipt,
	[WF_WIRE_READ_NACK] = on_read_nack,
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
