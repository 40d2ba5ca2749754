/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: taken off the ring of a queue pair, ended with one completion each.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/udp/dev.h"

static struct wf_udp_qp *qp_of(struct wf_nic_qp *qp)
{
	return qp->dev;
}

/* -- completions ------------------------------------------------------------ */

void wf_udp_work_complete(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe)
{
	wf_nic_soft_complete(&dev->soft, qp, qp_of(qp)->stuck, cqe);
}

static void complete_send(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_request *req,
			  enum wf_nic_status status)
{
	wf_nic_soft_done(&dev->soft, qp, qp_of(qp)->stuck, req->req_id,
			 (enum wf_nic_opcode)req->op, status);
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
		complete_send(dev, op->qp, &op->req, status);
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

/* Whether the next descriptor has to wait for the end of some read. */
static bool must_wait(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	if (wf_likely(dev->read_ids.in_use < WF_UDP_READS_MOST) ||
	    wf_nic_soft_next_op(qp) != WF_NIC_OP_READ)
		return false;
	dev->ring_waits = true;
	return true;
}

static uint8_t kind_of(const struct wf_nic_request *req)
{
	static const uint8_t kinds[] = {
		[WF_NIC_OP_SEND] = WF_UDP_OP_SEND,
		[WF_NIC_OP_READ] = WF_UDP_OP_READ,
		[WF_NIC_OP_WRITE] = WF_UDP_OP_WRITE,
	};

	return kinds[req->op];
}

/* False: no room for another; the descriptor stays in the ring. */
static bool take_one(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	enum wf_nic_status status;
	struct wf_udp_op *op;

	if (must_wait(dev, qp))
		return false;
	op = wf_base_pool_get(&dev->ops);
	if (!op) {
		/* Nobody rings again for what was rung already. */
		dev->ring_waits = true;
		return false;
	}
	memset(op, 0, offsetof(struct wf_udp_op, req));
	status = wf_nic_soft_take(&dev->soft, qp, &op->req);
	if (status == WF_NIC_OK) {
		op->peer = wf_nic_ah_find(&dev->nic, op->req.ah)->dev;
		if (wf_unlikely(op->peer->lost))
			status = WF_NIC_ABORT;
	}
	if (status != WF_NIC_OK) {
		complete_send(dev, qp, &op->req, status);
		wf_base_pool_put(&dev->ops, op);
		return true;
	}
	op->qp = qp;
	op->src_qpn = qp->num;
	op->kind = kind_of(&op->req);
	if (op->kind == WF_UDP_OP_READ) {
		op->read_id = wf_queue_ids_get(&dev->read_ids);
		dev->reads[wf_queue_ids_index(&dev->read_ids, op->read_id)] =
			op;
	}
	op->in_list = true;
	wf_base_list_add_tail(&qp_of(qp)->ops, &op->qp_link);
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

void wf_udp_work_flush(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_list *ops = &qp_of(qp)->ops;

	while (!wf_base_list_empty(ops))
		wf_udp_work_end(
			dev,
			wf_container_of(ops->next, struct wf_udp_op, qp_link),
			WF_NIC_FLUSHED);
	wf_nic_soft_flush(&dev->soft, qp, qp_of(qp)->stuck);
}
