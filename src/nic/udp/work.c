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

void wf_udp_work_ended(struct wf_udp_engine *engine, struct wf_udp_op *op,
		       enum wf_nic_status status)
{
	struct wf_udp_dev *dev = wf_udp_dev_of_engine(engine);
	struct wf_udp_request *request = (struct wf_udp_request *)op;

	if (op->kind == WF_UDP_OP_READ)
		wf_queue_ids_put(&dev->read_ids, request->read_id);
	if (op->kind == WF_UDP_OP_SERVE) {
		op->peer->serving--;
		dev->serving--;
	} else {
		complete_send(dev, request->qp, &request->req, status);
	}
	wf_base_pool_put(&dev->requests, request);
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

static void refuse(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
		   struct wf_udp_request *request, enum wf_nic_status status)
{
	complete_send(dev, qp, &request->req, status);
	wf_base_pool_put(&dev->requests, request);
}

/* False: no room for another; the descriptor stays in the ring. */
static bool take_one(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_udp_request *request;
	enum wf_nic_status status;
	struct wf_udp_op *op;

	if (must_wait(dev, qp))
		return false;
	request = wf_base_pool_get(&dev->requests);
	if (!request) {
		/* A doorbell that was rung already is not rung again. */
		dev->ring_waits = true;
		return false;
	}
	op = &request->op;
	memset(request, 0, offsetof(struct wf_udp_request, req));
	status = wf_nic_soft_take(&dev->soft, qp, &request->req);
	if (status == WF_NIC_OK) {
		op->peer = wf_nic_ah_find(&dev->nic, request->req.ah)->dev;
		if (wf_unlikely(op->peer->lost))
			status = WF_NIC_ABORT;
	}
	if (status != WF_NIC_OK) {
		refuse(dev, qp, request, status);
		return true;
	}
	request->qp = qp;
	request->src_qpn = qp->num;
	op->kind = kind_of(&request->req);
	op->rnr_retry = qp->rnr_retry;
	op->has_imm = request->req.has_imm;
	op->len = request->req.len;
	if (op->kind == WF_UDP_OP_READ) {
		request->read_id = wf_queue_ids_get(&dev->read_ids);
		/* A program that writes the ring by itself has changed the
		 * descriptor into a read after must_wait() looked at it. */
		if (wf_unlikely(request->read_id == WF_QUEUE_ID_NONE)) {
			refuse(dev, qp, request, WF_NIC_UNSUPP_OP);
			return true;
		}
		dev->reads[wf_queue_ids_index(&dev->read_ids,
					      request->read_id)] = request;
	}
	wf_base_list_add_tail(&qp_of(qp)->ops, &op->owner_link);
	wf_udp_engine_submit(&dev->engine, dev->now, op);
	return true;
}

void wf_udp_work_take(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	int ready;

	if (qp->flushed)
		return;
	ready = wf_queue_work_poll(&qp->sq_work);
	if (ready < 0) {
		wf_warn("queue pair %u: invalid doorbell", qp->num);
		return;
	}
	while (ready-- && take_one(dev, qp))
		;
}

void wf_udp_work_flush(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_list *ops = &qp_of(qp)->ops;

	while (!wf_base_list_empty(ops))
		wf_udp_op_end(&dev->engine,
			      wf_container_of(ops->next, struct wf_udp_op,
					      owner_link),
			      WF_NIC_FLUSHED);
	wf_nic_soft_flush(&dev->soft, qp, qp_of(qp)->stuck);
}
