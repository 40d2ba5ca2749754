/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runtread: the first bytes are sent at once, in several packets, while the
 * receiver reads the rest. Each packet says where the message is, so that the
 * first to arrive can begin the read. The number of such bytes is limited for
 * the endpoint as a whole.
 */
#include <errno.h>
#include <string.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/pull.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

/* Runts of all messages under way. */
#define BUDGET_RUNTS 8

/* Parked runts are kept in memory. */
#define RECEIVE_MAX ((uint64_t)16 << 20)

static bool can_use_for_send(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx, size_t room)
{
	const struct wf_rdm_peer *peer = tx->named.peer;
	const uint64_t needs = WF_WIRE_FEATURE_RDMA_READ | WF_WIRE_FEATURE_RUNT;
	size_t runt = ep->attr.runt_size;

	return runt && tx->registered && !tx->lent && !tx->req.delivery &&
	       tx->req.len >= ep->attr.read_min && tx->req.len > runt &&
	       ep->attr.reads && peer->greeted_us &&
	       (peer->features & needs) == needs &&
	       ep->runting + runt <= BUDGET_RUNTS * runt &&
	       runt / (room / 2) < WF_RDM_AHEAD &&
	       tx->req.iov_count * sizeof(struct wf_wire_iov) < room;
}

static int construct_tx_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				struct wf_rdm_pkt **pkts, int max)
{
	struct wf_wire_packet wire;
	size_t room;
	int count = 0;

	if (wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	wire.read_iov_count = wf_rdm_tx_read_iov(tx, wire.read_iov);
	wire.runt_length = ep->attr.runt_size;
	room = wf_rdm_tx_room(tx, &wire);
	while (count < max && !tx->constructed) {
		uint64_t left = wire.runt_length - tx->sent;
		size_t len = left < room ? left : room;

		wire.seg_offset = tx->sent;
		pkts[count] = wf_rdm_tx_request(ep, tx, &wire, tx->sent, len);
		if (!pkts[count])
			break;
		count++;
		tx->sent += len;
		ep->runting += len;
		tx->constructed = tx->sent == wire.runt_length;
	}
	return count;
}

/* It is complete when the runt has arrived and the rest has been read. */
static void end(struct wf_rdm_rx *rx)
{
	uint64_t all = rx->nacked ? rx->env.len : rx->read_from;

	if (!rx->read_count && rx->have == all)
		wf_rdm_rx_finish(rx);
}

static void pulled(struct wf_rdm_rx *rx)
{
	rx->read_count = 0;
	wf_rdm_rx_owe(rx, WF_RDM_OWES_EOR);
	end(rx);
}

static struct wf_rdm_rx *begin(struct wf_rdm_peer *peer,
			       const struct wf_wire_packet *packet, int *err)
{
	struct wf_rdm_rx *rx;
	uint64_t total;

	*err = -EPROTO;
	if (packet->msg_id != peer->order.expected || !packet->read_iov_count ||
	    wf_rdm_serve_total(packet->read_iov, packet->read_iov_count,
			       &total) ||
	    total != packet->msg_length ||
	    packet->runt_length >= packet->msg_length ||
	    packet->runt_length > RECEIVE_MAX)
		return NULL;
	*err = -EAGAIN;
	rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_runtread, packet, total,
			       packet->runt_length);
	if (!rx)
		return NULL;
	rx->read_count = packet->read_iov_count;
	rx->read_from = packet->runt_length;
	memcpy(rx->reads, packet->read_iov, sizeof(rx->reads));
	if (!rx->waits)
		wf_rdm_pull_message(rx);
	return rx;
}

static int receive(struct wf_rdm_peer *peer,
		   const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx = wf_rdm_rx_find(peer, packet->msg_id);
	int err;

	if (!packet->data_len)
		return -EPROTO;
	if (!rx)
		rx = begin(peer, packet, &err);
	if (!rx)
		return err;
	if (rx->protocol != &wf_rdm_protocol_runtread ||
	    packet->seg_offset > rx->read_from ||
	    packet->data_len > rx->read_from - packet->seg_offset ||
	    packet->data_len > rx->env.len - rx->have)
		return -EPROTO;
	wf_rdm_rx_place(rx, packet->seg_offset, packet->data, packet->data_len);
	/* The packet after our NACK may have overtaken this one. The missing
	 * bytes of the runt count as granted, and may have left no room for
	 * more. */
	if (rx->granted)
		wf_rdm_rx_grant(rx);
	end(rx);
	return 0;
}

/* The receiver may have said before the whole runt was made that it cannot read
 * the rest. */
static void handle_tx_packets_posted(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	if (tx->nacked)
		wf_rdm_protocol_nacked(ep, tx);
}

/* The read and the bytes that were sent before it end independently. */
static bool request_completed(const struct wf_rdm_tx *tx)
{
	return tx->answered && !tx->requests;
}

static int answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		    const struct wf_wire_packet *packet)
{
	return wf_rdm_protocol_longread.answered(peer, tx, packet);
}

static void released(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	ep->runting -= tx->sent;
}

const struct wf_rdm_protocol wf_rdm_protocol_runtread = {
	.name = "runtread",
	.kind = WF_TX_SEND,
	.types = {
		.msg = WF_WIRE_RUNTREAD_MSGRTM,
		.tagged = WF_WIRE_RUNTREAD_TAGRTM,
	},
	.ends_by_answer = true,
	.has_more = true,
	.can_use_for_send = can_use_for_send,
	.construct_tx_packets = construct_tx_packets,
	.handle_tx_packets_posted = handle_tx_packets_posted,
	.request_completed = request_completed,
	.answered = answered,
	.released = released,
	.receive = receive,
	.matched = wf_rdm_pull_message,
	.pulled = pulled,
};
