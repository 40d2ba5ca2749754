/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory at its target.
 */
#include "rdm/serve.h"

#include <errno.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "op/serve.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/rx.h"

int wf_rdm_serve_total(const struct wf_wire_iov *iov, uint32_t count,
		       uint64_t *total)
{
	*total = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].len > SIZE_MAX - *total)
			return -EPROTO;
		*total += iov[i].len;
	}
	return 0;
}

/* Counts refused accesses. */
static int count_refusal(struct wf_rdm_peer *peer, int err)
{
	if (err)
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_keys_rejected, 1);
	return err;
}

/* The part of segment @i that bytes from @offset on fall into. */
static bool part_of(const struct wf_wire_iov *seg, uint64_t *offset,
		    size_t left, struct wf_served *at)
{
	if (*offset >= seg->len && (left || seg->len)) {
		*offset -= seg->len;
		return false;
	}
	*at = (struct wf_served){
		.addr = seg->addr + *offset,
		.len = seg->len - *offset < left ? seg->len - *offset : left,
		.key = seg->key,
	};
	*offset = 0;
	return true;
}

int wf_rdm_serve_put(struct wf_rdm_peer *peer, const struct wf_wire_iov *segs,
		     uint32_t count, uint64_t offset, const void *bytes,
		     size_t len, bool last)
{
	const uint8_t *from = bytes;

	for (uint32_t i = 0; i < count && (len || i == 0); i++) {
		struct wf_served at;
		int err;

		if (!part_of(&segs[i], &offset, len, &at))
			continue;
		at.last = last && at.len == len;
		err = wf_op_serve_put(peer->ep->host->regs, &at, from);
		if (err)
			return count_refusal(peer, err);
		from += at.len;
		len -= at.len;
	}
	return 0;
}

static int get(struct wf_rdm_peer *peer, const struct wf_wire_iov *segs,
	       uint32_t count, uint64_t offset, uint8_t *to, size_t len,
	       bool last)
{
	for (uint32_t i = 0; i < count && (len || i == 0); i++) {
		struct wf_served at;
		int err;

		if (!part_of(&segs[i], &offset, len, &at))
			continue;
		at.last = last && at.len == len;
		err = wf_op_serve_get(peer->ep->host->regs, &at, to);
		if (err)
			return count_refusal(peer, err);
		to += at.len;
		len -= at.len;
	}
	return 0;
}

int wf_rdm_serve_check(struct wf_rdm_peer *peer, const struct wf_wire_iov *segs,
		       uint32_t count, uint64_t access)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct wf_served at = {
			.addr = segs[i].addr,
			.len = segs[i].len,
			.key = segs[i].key,
		};
		struct wf_reg_target target;
		int err = wf_op_serve_find(peer->ep->host->regs, &at, access,
					   &target);

		if (err)
			return count_refusal(peer, err);
	}
	return 0;
}

void wf_rdm_serve_written(struct wf_rdm_peer *peer, bool has_data,
			  uint64_t data, uint64_t total)
{
	struct wf_compq *compq = peer->ep->rxq->compq;
	const struct wf_comp comp = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = total,
		.data = data,
		.src = peer->name,
	};

	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_served, 1);
	wf_op_cntr_add(peer->ep->host->remote_writes, 1);
	if (has_data && !compq->discards)
		wf_op_compq_push(compq, &comp);
}

/* -- answers --------------------------------------------------------------- */

static void answer_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	struct wf_rdm_rx *rx = pkt->owner;

	rx->outstanding--;
	/* A peer with lives sees that the last one is over. This one would wait
	 * for the part that is missing, also if we have posted the last one. */
	if (wf_unlikely(err && !ep->closing && rx->named.peer->life.fixed &&
			!rx->err)) {
		wf_rdm_rx_fail(rx, err, true);
		return;
	}
	if (wf_rdm_stream_over(&rx->stream))
		rx->over = true;
	wf_rdm_rx_settle(rx);
}

/* Bytes of our memory, copied while nobody can remove it. */
static struct wf_rdm_pkt *memory_packet(struct wf_rdm_rx *rx,
					const struct wf_wire_packet *wire,
					uint64_t offset, size_t len, int *err)
{
	struct wf_rdm_peer *peer = rx->named.peer;
	struct wf_rdm_pkt *pkt = wf_rdm_pkt_make(rx->ep, peer, wire, len);
	bool last = offset + len == rx->stream.end;

	if (!pkt)
		return NULL;
	*err = -get(peer, rx->segs, rx->seg_count, offset, pkt->buf + pkt->len,
		    len, last);
	if (*err) {
		wf_rdm_pkt_put(rx->ep, pkt);
		return NULL;
	}
	pkt->len = (uint16_t)(pkt->len + len);
	pkt->payload = (uint32_t)len;
	pkt->completed = answer_done;
	pkt->owner = rx;
	rx->outstanding++;
	if (last) {
		wf_rdm_stat_add(rx->ep, WF_RDM_STAT_served, 1);
		wf_op_cntr_add(rx->ep->host->remote_reads, 1);
	}
	return pkt;
}

static struct wf_rdm_pkt *stream_packet(struct wf_rdm_ep *ep,
					struct wf_rdm_stream *stream,
					const struct wf_wire_packet *wire,
					uint64_t offset, size_t len, int *err)
{
	(void)ep;
	return memory_packet(wf_container_of(stream, struct wf_rdm_rx, stream),
			     wire, offset, len, err);
}

static void stream_failed(struct wf_rdm_ep *ep, struct wf_rdm_stream *stream,
			  int err)
{
	(void)ep;
	wf_rdm_rx_fail(wf_container_of(stream, struct wf_rdm_rx, stream), err,
		       true);
}

/* The first bytes of a read; the others follow as the reader grants. */
static bool answer_read(struct wf_rdm_rx *rx, struct wf_wire_packet *wire)
{
	struct wf_rdm_ep *ep = rx->ep;
	size_t room = rx->named.peer->max_msg - wf_wire_packet_header(wire);
	uint64_t granted = rx->stream.window;
	size_t len = granted < room ? granted : room;
	struct wf_rdm_pkt *pkt;
	int err = 0;

	wire->send_id = rx->named.id;
	wire->seg_length = len;
	pkt = memory_packet(rx, wire, 0, len, &err);
	if (err) {
		rx->stream.window = 0;
		wf_rdm_rx_fail(rx, err, true);
		return false;
	}
	if (!pkt)
		return false;
	rx->owes &= (uint8_t)~WF_RDM_OWES_ANSWER;
	rx->stream.packet = stream_packet;
	rx->stream.failed = stream_failed;
	rx->stream.at = len;
	rx->stream.window = 0;
	wf_rdm_pkt_post(ep, pkt);
	if (granted > len)
		wf_rdm_stream_grant(rx->named.peer, &rx->stream, rx->send_id,
				    granted - len);
	return true;
}

static bool answer_atomic(struct wf_rdm_rx *rx, struct wf_wire_packet *wire)
{
	struct wf_rdm_pkt *pkt;

	wire->seg_length = rx->buffer_len;
	pkt = wf_rdm_pkt_make(rx->ep, rx->named.peer, wire, 0);
	if (!pkt)
		return false;
	pkt->data = (struct wf_nic_sge){
		.addr = rx->buffer,
		.len = (uint32_t)rx->buffer_len,
		.lkey = rx->ep->own.lkey,
	};
	pkt->completed = answer_done;
	pkt->owner = rx;
	rx->outstanding++;
	rx->owes &= (uint8_t)~WF_RDM_OWES_ANSWER;
	wf_rdm_pkt_post(rx->ep, pkt);
	return true;
}

bool wf_rdm_serve_answer(struct wf_rdm_rx *rx)
{
	struct wf_wire_packet wire = {
		.type = rx->answer,
		.flags = WF_WIRE_CONNID,
		.connid = rx->named.peer->life.ours,
		.recv_id = rx->send_id,
	};

	return rx->answer == WF_WIRE_READRSP ? answer_read(rx, &wire) :
					       answer_atomic(rx, &wire);
}
