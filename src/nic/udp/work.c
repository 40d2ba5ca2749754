/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: taken off the ring of a queue pair and checked, ended with one
 * completion each. Completions wait here when their queue is full; nothing is
 * ever dropped for want of room.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/udp/dev.h"
#include "nic/wqe.h"
#include "os/poll.h"
#include "queue/wake.h"

static struct wf_list *ops_of(struct wf_nic_qp *qp)
{
	return &((struct wf_udp_qp *)qp->dev)->ops;
}

/* Where the completion of a request waits. */
static struct wf_udp_stuck *place_of(struct wf_nic_qp *qp,
				     const struct wf_nic_cqe *cqe)
{
	struct wf_udp_stuck *places = ((struct wf_udp_qp *)qp->dev)->stuck;

	if (wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_SQ)
		return &places[wf_queue_ids_index(&qp->sq_ids, cqe->req_id)];
	return &places[qp->sq_ids.count +
		       wf_queue_ids_index(&qp->rq_ids, cqe->req_id)];
}

static void unstick(struct wf_udp_stuck *stuck)
{
	wf_base_list_unlink(&stuck->link);
	stuck->cq = NULL;
}

/* -- completions ------------------------------------------------------------ */

void wf_udp_work_complete(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe)
{
	bool sent = wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_SQ;
	struct wf_nic_cq *cq = sent ? qp->send_cq : qp->recv_cq;
	struct wf_udp_stuck *stuck;

	/* In order behind those that wait already. */
	if (wf_base_list_empty(&dev->stuck) && !wf_nic_cq_push(cq, cqe)) {
		if (dev->user_fd >= 0 &&
		    wf_queue_wake_needed(&dev->user_asleep))
			wf_os_eventfd_write(dev->user_fd, 1);
		return;
	}
	stuck = place_of(qp, cqe);
	if (stuck->cq) {
		wf_warn("queue pair %u: two requests with one id", qp->num);
		return;
	}
	wf_udp_count(dev, cq_full, 1);
	stuck->cq = cq;
	stuck->cqe = *cqe;
	wf_base_list_add_tail(&dev->stuck, &stuck->link);
}

void wf_udp_work_unstick(struct wf_udp_dev *dev)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->stuck) {
		struct wf_udp_stuck *stuck =
			wf_container_of(pos, struct wf_udp_stuck, link);

		if (wf_nic_cq_push(stuck->cq, &stuck->cqe))
			continue;
		unstick(stuck);
		if (dev->user_fd >= 0 &&
		    wf_queue_wake_needed(&dev->user_asleep))
			wf_os_eventfd_write(dev->user_fd, 1);
	}
}

void wf_udp_work_drop(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->stuck) {
		struct wf_udp_stuck *stuck =
			wf_container_of(pos, struct wf_udp_stuck, link);

		if (stuck->cqe.qpn == qp->num)
			unstick(stuck);
	}
}

static void complete_send(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  uint16_t req_id, enum wf_nic_opcode op,
			  enum wf_nic_status status)
{
	const struct wf_nic_cqe cqe = {
		.req_id = req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_SQ, op, false),
		.qpn = qp->num,
	};

	wf_udp_count(dev, tx_done, 1);
	if (status != WF_NIC_OK)
		wf_udp_count(dev, tx_failed, 1);
	wf_udp_work_complete(dev, qp, &cqe);
}

static enum wf_nic_opcode opcode_of(const struct wf_udp_op *op)
{
	if (op->kind == WF_UDP_OP_READ)
		return WF_NIC_OP_READ;
	return op->kind == WF_UDP_OP_WRITE ? WF_NIC_OP_WRITE : WF_NIC_OP_SEND;
}

void wf_udp_work_end(struct wf_udp_dev *dev, struct wf_udp_op *op,
		     enum wf_nic_status status)
{
	if (op->slots)
		wf_udp_out_forget(dev, op->peer, op);
	if (op->in_list)
		wf_base_list_unlink(&op->link);
	wf_base_list_unlink(&op->qp_link);
	if (op->kind == WF_UDP_OP_READ)
		wf_queue_ids_put(&dev->read_ids, op->read_id);
	if (op->kind == WF_UDP_OP_SERVE) {
		op->peer->serving--;
		dev->serving--;
	} else {
		complete_send(dev, op->qp, op->req_id, opcode_of(op), status);
	}
	wf_base_pool_put(&dev->ops, op);
}

void wf_udp_work_check(struct wf_udp_dev *dev, struct wf_udp_op *op)
{
	if (op->slots || op->kind == WF_UDP_OP_READ)
		return;
	if (op->made) {
		wf_udp_work_end(dev, op, WF_NIC_OK);
	} else if (!op->in_list) {
		/* Its immediate data may go now. */
		op->in_list = true;
		wf_base_list_add_tail(&op->peer->out.ops, &op->link);
		wf_udp_peer_activate(dev, op->peer);
	}
}

/* -- requests --------------------------------------------------------------- */

static enum wf_nic_status read_sges(struct wf_udp_dev *dev,
				    const struct wf_nic_tx_wqe *wqe,
				    struct wf_udp_op *op)
{
	if (wqe->length > WF_NIC_SGE_MAX)
		return WF_NIC_UNSUPP_OP;
	op->sges = (uint8_t)wqe->length;
	for (unsigned i = 0; i < op->sges; i++) {
		const struct wf_nic_tx_sge *sge = &wqe->sgl[i];

		op->sge[i].addr = wf_nic_wqe_addr(sge->addr_lo, sge->addr_hi);
		op->sge[i].len = sge->length;
		op->sge[i].lkey = sge->lkey;
		if (sge->length > dev->max_msg - op->len)
			return WF_NIC_LOCAL_LEN;
		op->len += sge->length;
		if (sge->length &&
		    !wf_nic_mr_local(&dev->nic.mrs, sge->lkey, op->sge[i].addr,
				     sge->length, 0))
			return WF_NIC_BAD_LKEY;
	}
	return WF_NIC_OK;
}

static enum wf_nic_status read_rdma(struct wf_udp_dev *dev,
				    const struct wf_nic_tx_wqe *wqe,
				    struct wf_udp_op *op)
{
	const struct wf_nic_tx_remote *remote = &wqe->rdma.remote;
	const struct wf_nic_tx_sge *local = &wqe->rdma.local;
	bool reads = op->kind == WF_UDP_OP_READ;

	if (wqe->length != 1 || (reads && op->has_imm))
		return WF_NIC_UNSUPP_OP;
	if (local->length != remote->length ||
	    local->length > dev->nic.caps.max_rdma)
		return WF_NIC_LOCAL_LEN;
	op->sges = 1;
	op->sge[0].addr = wf_nic_wqe_addr(local->addr_lo, local->addr_hi);
	op->sge[0].len = local->length;
	op->sge[0].lkey = local->lkey;
	op->len = local->length;
	op->raddr = wf_nic_wqe_addr(remote->addr_lo, remote->addr_hi);
	op->rkey = remote->rkey;
	if (op->len &&
	    !wf_nic_mr_local(&dev->nic.mrs, local->lkey, op->sge[0].addr,
			     op->len, reads ? WF_NIC_LOCAL_WRITE : 0))
		return WF_NIC_BAD_LKEY;
	return WF_NIC_OK;
}

/* From descriptor to op. Nothing in the ring is trusted: a stray store of the
 * application must not become one of ours. */
static enum wf_nic_status decode(struct wf_udp_dev *dev,
				 const struct wf_nic_tx_wqe *wqe,
				 struct wf_udp_op *op)
{
	const uint8_t once = WF_NIC_TX_FIRST | WF_NIC_TX_LAST;
	unsigned code = wqe->ctrl1 & WF_NIC_TX_OP_MASK;
	bool inlined = wqe->ctrl1 & WF_NIC_TX_INLINE;

	if (!(wqe->ctrl1 & WF_NIC_TX_META) || (wqe->ctrl2 & once) != once ||
	    code > WF_NIC_OP_WRITE || (inlined && code != WF_NIC_OP_SEND))
		return WF_NIC_UNSUPP_OP;
	op->has_imm = wqe->ctrl1 & WF_NIC_TX_HAS_IMM;
	op->imm = wqe->imm;
	op->dst_qpn = wqe->dest_qpn;
	op->qkey = wqe->qkey;
	if (code != WF_NIC_OP_SEND) {
		op->kind = code == WF_NIC_OP_READ ? WF_UDP_OP_READ :
						    WF_UDP_OP_WRITE;
		return read_rdma(dev, wqe, op);
	}
	op->kind = WF_UDP_OP_SEND;
	if (!inlined)
		return read_sges(dev, wqe, op);
	if (wqe->length > WF_NIC_INLINE_MAX)
		return WF_NIC_LOCAL_LEN;
	op->inlined = true;
	op->len = wqe->length;
	memcpy(op->data, wqe->inline_data, sizeof(op->data));
	return WF_NIC_OK;
}

/* Whether the next descriptor has to wait for the end of some read. */
static bool must_wait(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_queue_work look = qp->sq_work;
	struct wf_nic_tx_wqe wqe;

	if (wf_likely(dev->read_ids.in_use < WF_UDP_READS_MOST))
		return false;
	wf_queue_work_take(&look, &wqe);
	if ((wqe.ctrl1 & WF_NIC_TX_OP_MASK) != WF_NIC_OP_READ)
		return false;
	dev->ring_waits = true;
	return true;
}

/* False: no room for another; the descriptor stays in the ring. */
static bool take_one(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_nic_tx_wqe wqe;
	enum wf_nic_status status;
	struct wf_udp_op *op;
	struct wf_nic_ah *ah;
	unsigned phase;

	if (must_wait(dev, qp))
		return false;
	op = wf_base_pool_get(&dev->ops);
	if (!op) {
		/* Nobody rings again for what was rung already. */
		dev->ring_waits = true;
		return false;
	}
	phase = wf_queue_work_phase(&qp->sq_work);
	wf_queue_work_take(&qp->sq_work, &wqe);
	*op = (struct wf_udp_op){ .qp = qp,
				  .req_id = wqe.req_id,
				  .src_qpn = qp->num };
	wf_udp_count(dev, tx_msgs, 1);
	ah = wf_nic_ah_find(&dev->nic, wqe.ah);
	status = (wqe.ctrl2 & WF_NIC_TX_PHASE) != phase ? WF_NIC_UNSUPP_OP :
							  decode(dev, &wqe, op);
	if (status == WF_NIC_OK && !ah)
		status = WF_NIC_BAD_AH;
	if (status == WF_NIC_OK && ((struct wf_udp_peer *)ah->dev)->lost)
		status = WF_NIC_ABORT;
	if (status == WF_NIC_OK && op->kind == WF_UDP_OP_READ) {
		op->read_id = wf_queue_ids_get(&dev->read_ids);
		dev->reads[wf_queue_ids_index(&dev->read_ids, op->read_id)] =
			op;
	}
	if (status != WF_NIC_OK) {
		complete_send(dev, qp, wqe.req_id, opcode_of(op), status);
		wf_base_pool_put(&dev->ops, op);
		return true;
	}
	op->peer = ah->dev;
	op->in_list = true;
	wf_base_list_add_tail(ops_of(qp), &op->qp_link);
	wf_base_list_add_tail(&op->peer->out.ops, &op->link);
	wf_udp_hello_start(dev, op->peer);
	wf_udp_peer_activate(dev, op->peer);
	return true;
}

void wf_udp_work_take(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	int ready;

	if (qp->flushed)
		return;
	ready = wf_queue_work_poll(&qp->sq_work);
	if (ready < 0) {
		wf_warn("queue pair %u: its doorbell makes no sense", qp->num);
		return;
	}
	while (ready-- && take_one(dev, qp))
		;
}

static void flush_receives(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	int ready = qp->rq.ring ? wf_queue_work_poll(&qp->rq_work) : 0;

	for (; ready > 0; ready--) {
		struct wf_nic_rx_desc desc;
		struct wf_nic_cqe cqe = {
			.status = WF_NIC_FLUSHED,
			.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_SEND,
						  false),
			.qpn = qp->num,
			.ah = WF_NIC_AH_UNKNOWN,
		};

		wf_queue_work_take(&qp->rq_work, &desc);
		cqe.req_id = desc.req_id;
		wf_udp_work_complete(dev, qp, &cqe);
	}
}

void wf_udp_work_flush(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_list *ops = ops_of(qp);
	int ready;

	while (!wf_base_list_empty(ops))
		wf_udp_work_end(
			dev,
			wf_container_of(ops->next, struct wf_udp_op, qp_link),
			WF_NIC_FLUSHED);
	ready = wf_queue_work_poll(&qp->sq_work);
	for (; ready > 0; ready--) {
		struct wf_nic_tx_wqe wqe;

		wf_queue_work_take(&qp->sq_work, &wqe);
		complete_send(dev, qp, wqe.req_id, WF_NIC_OP_SEND,
			      WF_NIC_FLUSHED);
	}
	flush_receives(dev, qp);
}
