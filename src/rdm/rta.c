/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics.
 */
#include "rdm/rta.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include "op/iov.h"
#include "op/serve.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/serve.h"
#include "rdm/tx.h"

/* Header of the longest request: 24, four segments, address, data, id. */
#define HEADER_MAX 192

size_t wf_rdm_rta_room(const struct wf_rdm_peer *peer)
{
	size_t room = (peer->max_msg - HEADER_MAX) / 2;

	return room / WF_OP_AMO_SIZE_MAX * WF_OP_AMO_SIZE_MAX;
}

bool wf_rdm_rta_can_send(const struct wf_rdm_tx *tx, enum wf_op_amo_kind kind,
			 size_t room)
{
	return tx->remote.amo_kind == kind && 2 * tx->req.len <= room;
}

/* Operands, then values to compare with. */
int wf_rdm_rta_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, bool answered)
{
	const struct wf_tx *req = &tx->req;
	const struct wf_remote *remote = &tx->remote;
	size_t operands = wf_op_iov_len(req->iov, req->iov_count);
	size_t compares = remote->amo_kind == WF_OP_AMO_COMPARE ? req->len : 0;
	struct wf_wire_packet wire;
	struct wf_rdm_pkt *pkt;

	if ((answered || req->delivery) && wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	wire.datatype = remote->amo_type;
	wire.op = remote->amo_op;
	pkt = wf_rdm_tx_request(ep, tx, &wire, 0, 0);
	if (!pkt)
		return 0;
	/* A small packet may be too small for what follows. */
	if (pkt->len + operands + compares > WF_RDM_PKT_SMALL) {
		struct wf_rdm_pkt *large = wf_rdm_pkt_make(
			ep, tx->named.peer, &wire, operands + compares);

		if (!large) {
			tx->outstanding--;
			tx->requests--;
			tx->packets--;
			wf_rdm_pkt_put(ep, pkt);
			return 0;
		}
		large->owner = tx;
		large->completed = pkt->completed;
		large->is_request = true;
		wf_rdm_pkt_put(ep, pkt);
		pkt = large;
	}
	wf_op_iov_gather(req->iov, req->iov_count, 0, pkt->buf + pkt->len,
			 operands);
	pkt->len = (uint16_t)(pkt->len + operands);
	wf_op_iov_gather(remote->compare, remote->compare_count, 0,
			 pkt->buf + pkt->len, compares);
	pkt->len = (uint16_t)(pkt->len + compares);
	pkt->payload = (uint32_t)req->len;
	pkts[0] = pkt;
	tx->constructed = true;
	return 1;
}

int wf_rdm_rta_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			const struct wf_wire_packet *packet)
{
	if (packet->type != WF_WIRE_ATOMRSP || tx->err || tx->reported ||
	    packet->data_len != tx->req.len)
		return -EPROTO;
	wf_op_iov_scatter(tx->remote.result, tx->remote.result_count, 0,
			  packet->data, packet->data_len);
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

/* One segment after the other: operands, values to compare with and results go
 * on with each. */
static int run(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet,
	       enum wf_op_amo_kind kind, uint64_t total, uint8_t *result)
{
	uint64_t access = packet->op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE;
	uint64_t done = 0;
	int err;

	if (kind != WF_OP_AMO_WRITE)
		access |= FI_REMOTE_READ;
	err = wf_rdm_serve_check(peer, packet->rma_iov, packet->rma_iov_count,
				 access);
	for (uint32_t i = 0; !err && i < packet->rma_iov_count; i++) {
		const struct wf_wire_iov *seg = &packet->rma_iov[i];
		const struct wf_served at = {
			.addr = seg->addr,
			.len = seg->len,
			.key = seg->key,
			.last = i + 1 == packet->rma_iov_count,
		};
		const struct wf_served_amo amo = {
			.kind = kind,
			.op = packet->op,
			.type = packet->datatype,
			.operand = packet->data + done,
			.compare = packet->data + total + done,
			.result = result ? result + done : NULL,
		};

		err = wf_op_serve_amo(peer->ep->host->regs, &at, &amo);
		done += seg->len;
	}
	return err;
}

/* A peer's description of an atomic: all of it is checked before any of it is
 * done. */
static int check(const struct wf_wire_packet *packet, enum wf_op_amo_kind kind,
		 uint64_t *total)
{
	const struct wf_served_amo amo = {
		.kind = kind,
		.op = packet->op,
		.type = packet->datatype,
	};
	int bytes;

	if (!packet->rma_iov_count ||
	    wf_rdm_serve_total(packet->rma_iov, packet->rma_iov_count, total))
		return -EPROTO;
	for (uint32_t i = 0; i < packet->rma_iov_count; i++) {
		if (wf_op_serve_amo_bytes(&amo, packet->rma_iov[i].len) < 0)
			return -EPROTO;
	}
	bytes = wf_op_serve_amo_bytes(&amo, *total);
	return bytes < 0 || (size_t)bytes != packet->data_len ? -EPROTO : 0;
}

static void conclude(struct wf_rdm_peer *peer, enum wf_op_amo_kind kind)
{
	struct wf_rdm_ep *ep = peer->ep;

	wf_rdm_stat_add(ep, WF_RDM_STAT_served, 1);
	/* fi_ep_bind(3): an atomic that fetches counts as a read. */
	wf_op_cntr_add(kind == WF_OP_AMO_WRITE ? ep->host->remote_writes :
						 ep->host->remote_reads,
		       1);
}

static struct wf_rdm_rx *new_answer(struct wf_rdm_peer *peer,
				    const struct wf_rdm_protocol *protocol,
				    size_t len)
{
	struct wf_rdm_rx *rx = wf_rdm_rx_new(peer, protocol, WF_RDM_RX_ANSWER);

	if (!rx || !len)
		return rx;
	rx->buffer = malloc(len);
	rx->buffer_len = len;
	if (rx->buffer)
		return rx;
	wf_rdm_rx_free(rx);
	return NULL;
}

int wf_rdm_rta_receive(struct wf_rdm_peer *peer,
		       const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet,
		       enum wf_op_amo_kind kind)
{
	bool dc = wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_DC;
	bool fetches = kind != WF_OP_AMO_WRITE;
	struct wf_rdm_rx *rx = NULL;
	uint64_t total;
	int err;

	if (check(packet, kind, &total))
		return -EPROTO;
	if (dc || fetches) {
		rx = new_answer(peer, protocol, fetches ? total : 0);
		if (!rx)
			return -EAGAIN;
		rx->send_id = fetches ? packet->recv_id : packet->send_id;
		rx->msg_id = packet->msg_id;
	}
	err = run(peer, packet, kind, total, rx ? rx->buffer : NULL);
	if (!err)
		conclude(peer, kind);
	if (!rx)
		return 0;
	if (err) {
		wf_rdm_rx_fail(rx, -err, true);
		return 0;
	}
	rx->answer = WF_WIRE_ATOMRSP;
	rx->over = !fetches;
	wf_rdm_rx_owe(rx, fetches ? WF_RDM_OWES_ANSWER : WF_RDM_OWES_RECEIPT);
	return 0;
}
