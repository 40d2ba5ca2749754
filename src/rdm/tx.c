/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of ours: memory, packets, completion.
 */
#include "rdm/tx.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "op/iov.h"
#include "rdm/direct.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/run.h"
#include "rdm/trace.h"

/* libfabric's efa has four bytes behind the address, and counts them. */
#define EFA_RAW_LEN (WF_ADDR_EFA_RAW + 4)

/* -- memory ---------------------------------------------------------------- */

static void unregister(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	if (!tx->registered)
		return;
	tx->registered = false;
	if (!ep->nic)
		return;
	for (uint32_t i = 0; i < tx->req.iov_count; i++) {
		if (tx->req.iov[i].iov_len)
			wf_nic_mr_dereg(ep->nic, tx->mrs[i].lkey);
	}
}

/* A peer that is given a key may use it until the memory is deregistered. So
 * memory that it may read is registered for the operation, and deregistered at
 * its end; the rest is used by our device alone. */
static bool may_borrow(const struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	if (!tx->req.described)
		return false;
	if (tx->req.kind == WF_TX_READ ||
	    (tx->req.kind == WF_TX_WRITE && wf_rdm_direct_can_use(ep, tx, 0)))
		return true;
	return !wf_rdm_protocol_longread.can_use_for_send(ep, tx, SIZE_MAX);
}

/* Registered before a protocol is chosen, so that none has to be given up
 * later. If it fails, the bytes are copied. */
static void try_register(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	const struct wf_tx *req = &tx->req;
	bool borrows, lent = false;

	tx->registered = true; /* as protocols shall see it */
	borrows = may_borrow(ep, tx);
	for (uint32_t i = 0; i < req->iov_count; i++) {
		if (!req->iov[i].iov_len)
			continue;
		if (!wf_nic_mr_use(ep->nic, borrows ? req->desc[i] : NULL,
				   req->iov[i].iov_base, req->iov[i].iov_len,
				   req->kind == WF_TX_READ ?
					   WF_NIC_LOCAL_WRITE :
					   WF_NIC_REMOTE_READ,
				   &tx->mrs[i])) {
			lent |= tx->mrs[i].lent;
			continue;
		}
		while (i-- > 0) {
			if (req->iov[i].iov_len)
				wf_nic_mr_dereg(ep->nic, tx->mrs[i].lkey);
		}
		tx->registered = false;
		return;
	}
	tx->lent = lent;
}

int wf_rdm_tx_keep_copy(struct wf_rdm_tx *tx)
{
	struct wf_tx *req = &tx->req;
	size_t bytes = wf_op_iov_len(req->iov, req->iov_count);

	if (!bytes || tx->bounce)
		return 0;
	tx->bounce = malloc(bytes);
	if (!tx->bounce)
		return -ENOMEM;
	wf_op_iov_gather(req->iov, req->iov_count, 0, tx->bounce, bytes);
	req->iov_count = 1;
	req->iov[0] = (struct iovec){ tx->bounce, bytes };
	req->described = false;
	return 0;
}

static void keep(struct wf_rdm_tx *tx, const struct wf_tx *req)
{
	wf_op_tx_copy(&tx->req, req);
	if (!req->remote) {
		wf_op_remote_init(&tx->remote);
		return;
	}
	wf_op_remote_copy(&tx->remote, req->remote);
	tx->req.remote = &tx->remote;
}

/* Others may have waited for this. */
static void wake_queue(struct wf_rdm_peer *peer)
{
	if (!wf_base_list_empty(&peer->queue))
		wf_rdm_post_activate(peer);
}

static void uncount(struct wf_rdm_tx *tx)
{
	struct wf_rdm_peer *peer = tx->named.peer;

	if (!tx->counted)
		return;
	if (tx->req.kind == WF_TX_READ)
		peer->reads--;
	else
		peer->writes--;
	tx->counted = false;
	wake_queue(peer);
}

/* Fills in an operation, but for its registered memory. */
static void init(struct wf_rdm_tx *tx, struct wf_rdm_peer *peer,
		 const struct wf_tx *req)
{
	memset(tx, 0, offsetof(struct wf_rdm_tx, mrs));
	tx->named.peer = peer;
	tx->named.is_tx = true;
	wf_base_list_init(&tx->link);
	wf_base_list_init(&tx->unacked_link);
	wf_base_list_init(&tx->stream.link);
	keep(tx, req);
}

int wf_rdm_tx_new(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
		  const struct wf_tx *req, struct wf_rdm_tx **out)
{
	bool has_source = req->kind == WF_TX_SEND || req->kind == WF_TX_WRITE;
	bool direct = ep->direct && req->len &&
		      (req->kind == WF_TX_WRITE || req->kind == WF_TX_READ) &&
		      (!ep->hard || req->len > ep->copy_max || req->described);
	struct wf_rdm_tx *tx;

	/* Messages of runs are operations, too. */
	if (ep->tx_pool.in_use + ep->run_more >= ep->host->tx_size)
		return -EAGAIN;
	tx = wf_base_pool_get(&ep->tx_pool);
	if (!tx)
		return -EAGAIN;
	init(tx, peer, req);
	/* Small ones are copied into their packet at once, unless it has to
	 * wait, or may have to be made later. */
	if (req->inject &&
	    (req->len > ep->copy_max || direct ||
	     peer->max_msg < WF_RDM_PKT_SMALL) &&
	    wf_rdm_tx_keep_copy(tx)) {
		wf_base_pool_put(&ep->tx_pool, tx);
		return -EAGAIN;
	}
	if (!tx->bounce && ((has_source && req->len > ep->copy_max) || direct))
		try_register(ep, tx);
	*out = tx;
	return 0;
}

void wf_rdm_tx_free(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	struct wf_rdm_peer *peer = tx->named.peer;

	unregister(ep, tx);
	uncount(tx);
	if (tx->run)
		wf_rdm_run_free(tx);
	if (tx->protocol->released)
		tx->protocol->released(ep, tx);
	wf_rdm_named_del(ep, &tx->named);
	wf_base_list_del(&tx->link);
	wf_base_list_del(&tx->unacked_link);
	wf_base_list_del(&tx->stream.link);
	free(tx->bounce);
	wf_base_pool_put(&ep->tx_pool, tx);
	wake_queue(peer);
}

int wf_rdm_tx_name(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	return wf_rdm_named_add(ep, &tx->named);
}

uint32_t wf_rdm_tx_read_iov(const struct wf_rdm_tx *tx, struct wf_wire_iov *iov)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < tx->req.iov_count; i++) {
		if (!tx->req.iov[i].iov_len)
			continue;
		iov[count++] = (struct wf_wire_iov){
			.addr = (uintptr_t)tx->req.iov[i].iov_base,
			.len = tx->req.iov[i].iov_len,
			.key = tx->mrs[i].rkey,
		};
	}
	return count;
}

/* -- packets --------------------------------------------------------------- */

uint32_t wf_rdm_tx_raw_len(const struct wf_rdm_ep *ep)
{
	return ep->connid ? EFA_RAW_LEN : wf_base_addr_len(&ep->host->addr);
}

static void put_raw_addr(const struct wf_rdm_ep *ep,
			 struct wf_wire_packet *wire)
{
	const struct wf_addr *own = &ep->host->addr;

	wire->raw_addr_len = wf_rdm_tx_raw_len(ep);
	if (!ep->connid) {
		memcpy(wire->raw_addr, own, wire->raw_addr_len);
		return;
	}
	memset(wire->raw_addr, 0, wire->raw_addr_len);
	wf_base_addr_get_raw(own, wire->raw_addr);
}

void wf_rdm_tx_raw_addr(const struct wf_rdm_ep *ep, struct wf_wire_packet *wire)
{
	wire->flags =
		(wire->flags & (uint16_t)~WF_WIRE_CONNID) | WF_WIRE_RAW_ADDR;
	put_raw_addr(ep, wire);
}

void wf_rdm_tx_header(const struct wf_rdm_tx *tx, struct wf_wire_packet *wire)
{
	const struct wf_rdm_peer *peer = tx->named.peer;

	wf_wire_packet_clear(wire);
	wire->type = tx->wire_type;
	wire->flags = tx->wire_flags;
	wire->msg_id = tx->msg_id;
	wire->send_id = tx->named.id;
	wire->recv_id = tx->named.id;
	wire->connid = peer->life.ours;
	wire->tag = tx->req.tag;
	wire->cq_data = tx->req.data;
	wire->msg_length = tx->req.len;
	if (tx->wire_flags & WF_WIRE_RAW_ADDR)
		put_raw_addr(peer->ep, wire);
	if (tx->req.kind == WF_TX_SEND)
		return;
	wire->rma_iov_count = tx->remote.seg_count;
	for (uint32_t i = 0; i < tx->remote.seg_count; i++)
		wire->rma_iov[i] = (struct wf_wire_iov){
			.addr = tx->remote.segs[i].addr,
			.len = tx->remote.segs[i].len,
			.key = tx->remote.segs[i].key,
		};
}

size_t wf_rdm_tx_room(const struct wf_rdm_tx *tx,
		      const struct wf_wire_packet *wire)
{
	size_t header = wf_wire_packet_header(wire);
	size_t most = tx->named.peer->max_msg;

	return header < most ? most - header : 0;
}

/* Where @len bytes from @offset on lie in one piece that the device knows. */
static bool in_one_piece(const struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx,
			 uint64_t offset, size_t len, struct wf_nic_sge *sge)
{
	for (uint32_t i = 0; i < tx->req.iov_count; i++) {
		const struct iovec *iov = &tx->req.iov[i];

		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		sge->addr = (char *)iov->iov_base + offset;
		sge->len = (uint32_t)len;
		sge->lkey = tx->bounce ? ep->own.lkey : tx->mrs[i].lkey;
		return len <= iov->iov_len - offset;
	}
	return false;
}

static void copy_bytes(const struct wf_tx *req, uint64_t offset, uint8_t *to,
		       size_t len)
{
	if (wf_likely(req->iov_count == 1))
		memcpy(to, (const uint8_t *)req->iov[0].iov_base + offset, len);
	else
		wf_op_iov_gather(req->iov, req->iov_count, offset, to, len);
}

struct wf_rdm_pkt *wf_rdm_tx_packet(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				    const struct wf_wire_packet *wire,
				    uint64_t offset, size_t len)
{
	size_t header = wf_wire_packet_header(wire);
	bool copy = header + len <= WF_RDM_PKT_SMALL;
	struct wf_nic_sge sge;
	struct wf_rdm_pkt *pkt;

	if (!copy && (!(tx->registered || tx->bounce) ||
		      !in_one_piece(ep, tx, offset, len, &sge)))
		copy = true;
	pkt = wf_rdm_pkt_build(ep, tx->named.peer, wire, header,
			       copy ? len : 0);
	if (!pkt)
		return NULL;
	if (!copy) {
		pkt->data = sge;
	} else if (len) {
		copy_bytes(&tx->req, offset, pkt->buf + pkt->len, len);
		pkt->len = (uint16_t)(pkt->len + len);
	}
	pkt->owner = tx;
	pkt->quiet = tx->req.inject && !tx->req.wants_comp && !tx->req.cntr;
	pkt->payload = (uint32_t)len;
	tx->outstanding++;
	tx->packets++;
	return pkt;
}

void wf_rdm_tx_request_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			    int err)
{
	struct wf_rdm_tx *tx = pkt->owner;

	/* A number that was assigned and is not delivered would block all that
	 * follow it: begin a new life. While we are counted, @tx stays. */
	if (wf_unlikely(err && !tx->err && !tx->reported))
		wf_rdm_peer_fail(pkt->peer, err);
	tx->outstanding--;
	tx->requests--;
	tx->acked += err ? 0 : pkt->payload;
	if (tx->constructed && !tx->requests) {
		wf_base_list_del(&tx->unacked_link);
		wake_queue(pkt->peer);
	}
	wf_rdm_tx_settle(ep, tx);
}

struct wf_rdm_pkt *wf_rdm_tx_request(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				     const struct wf_wire_packet *wire,
				     uint64_t offset, size_t len)
{
	struct wf_rdm_pkt *pkt = wf_rdm_tx_packet(ep, tx, wire, offset, len);

	if (!pkt)
		return NULL;
	pkt->completed = wf_rdm_tx_request_done;
	pkt->is_request = true;
	tx->requests++;
	return pkt;
}

void wf_rdm_tx_run(struct wf_rdm_tx *tx, const struct wf_tx *req,
		   struct wf_rdm_pkt *pkt)
{
	init(tx, pkt->peer, req);
	tx->protocol = &wf_rdm_protocol_eager;
	pkt->owner = tx;
	pkt->completed = wf_rdm_tx_request_done;
	pkt->is_request = true;
	pkt->payload = (uint32_t)tx->req.len;
	tx->run = pkt;
	tx->requests = 1;
	tx->outstanding = 1;
	tx->packets = 1;
	tx->sent = tx->req.len;
	tx->constructed = true;
}

/* -- completion ------------------------------------------------------------ */

static void report_failure(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	const struct wf_tx *req = &tx->req;
	struct wf_comp comp = {
		.context = req->context,
		.flags = req->comp_flags,
		.data = req->data,
		.tag = req->tag,
		.src = WF_MATCH_ANY,
	};

	/* Failures are reported even where successes are not (fi_cq(3)). */
	wf_op_compq_fail(ep->txq, &comp, tx->err, 0);
	wf_op_cntr_fail(req->cntr, 1);
}

static void report(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	struct wf_rdm_tx *whole = tx->whole;

	if (wf_unlikely(ep->host->trace))
		wf_rdm_trace_done(ep, tx);
	if (whole) {
		if (tx->err && !whole->err)
			whole->err = tx->err;
		if (!--whole->pieces)
			wf_rdm_tx_settle(ep, whole);
	} else if (tx->err) {
		if (tx->run && !tx->req.wants_comp)
			wf_rdm_run_report(tx);
		else
			report_failure(ep, tx);
	} else {
		if (tx->req.wants_comp)
			wf_op_compq_push_sent(ep->txq, tx->req.context,
					      tx->req.comp_flags);
		wf_op_cntr_add(tx->req.cntr, 1);
	}
}

bool wf_rdm_tx_is_delivered(const struct wf_rdm_tx *tx)
{
	if (tx->req.delivery)
		return tx->answered;
	return !tx->outstanding && tx->acked == tx->req.len;
}

bool wf_rdm_tx_is_answered(const struct wf_rdm_tx *tx)
{
	return tx->answered;
}

static bool is_done(const struct wf_rdm_tx *tx)
{
	return tx->constructed && tx->protocol->request_completed(tx);
}

/* It may have failed, but the device still writes to memory that we cannot take
 * from it. All requests of the hardware come to an end. */
static bool is_written(const struct wf_rdm_tx *tx)
{
	return tx->lent && tx->outstanding &&
	       tx->protocol == &wf_rdm_protocol_direct_read;
}

/* No more packets are made of it: it only waits for the device. */
static void only_waits(struct wf_rdm_tx *tx)
{
	wf_base_list_del(&tx->link);
	wf_base_list_add_tail(&tx->named.peer->flight, &tx->link);
}

void wf_rdm_tx_settle(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	if (!tx->reported) {
		if (tx->pieces || (!tx->err && !is_done(tx)))
			return;
		if (wf_unlikely(is_written(tx))) {
			only_waits(tx);
			return;
		}
		tx->reported = true;
		if (tx->run)
			wf_rdm_run_close(tx);
		/* The memory is the application's again. */
		unregister(ep, tx);
		wf_base_list_del(&tx->stream.link);
		uncount(tx);
		report(ep, tx);
		only_waits(tx);
	}
	if (!tx->outstanding)
		wf_rdm_tx_free(ep, tx);
}

void wf_rdm_tx_answer(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx, int err)
{
	tx->answered = true;
	if (err && !tx->err)
		tx->err = err;
	wf_rdm_tx_settle(ep, tx);
}

int wf_rdm_tx_receipt(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		      const struct wf_wire_packet *packet)
{
	if (packet->type != WF_WIRE_RECEIPT || !tx->req.delivery ||
	    !tx->constructed)
		return -EPROTO;
	wf_rdm_tx_answer(peer->ep, tx, 0);
	return 0;
}

void wf_rdm_tx_abort(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx, int err)
{
	if (!tx->err)
		tx->err = err;
	/* A whole ends with its pieces, which are aborted as well. */
	wf_rdm_tx_settle(ep, tx);
}

void wf_rdm_tx_quit(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	unregister(ep, tx);
	wf_base_list_del(&tx->stream.link);
	wf_base_list_del(&tx->unacked_link);
	tx->reported = true;
	if (!tx->outstanding)
		wf_rdm_tx_free(ep, tx);
}
