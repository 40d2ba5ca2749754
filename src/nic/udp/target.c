/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of a data packet: a message into a posted receive, bytes into or
 * out of registered memory, data for a read of ours. Runs once per packet (in.c
 * ensures that) and without the application.
 */
#include <string.h>

#include "nic/udp/dev.h"
#include "nic/wqe.h"

/* The next posted receive, not taken yet. False: none, or the completion would
 * have no place. */
static bool peek_receive(struct wf_nic_qp *qp, struct wf_nic_rx_desc *desc)
{
	struct wf_queue_work look;

	if (!qp->rq.ring || qp->flushed ||
	    wf_queue_work_poll(&qp->rq_work) <= 0 ||
	    !wf_nic_cq_has_room(qp->recv_cq))
		return false;
	look = qp->rq_work;
	wf_queue_work_take(&look, desc);
	return true;
}

static void take_receive(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_nic_rx_desc desc;

	dev->rx_qpn = qp->num;
	wf_queue_work_take(&qp->rq_work, &desc);
}

static void complete(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		     struct wf_nic_qp *qp, const struct wf_nic_rx_desc *desc,
		     const struct wf_udp_data *head, enum wf_nic_opcode op,
		     uint32_t len, enum wf_nic_status status)
{
	bool imm =
		op == WF_NIC_OP_WRITE || head->common.flags & WF_UDP_DATA_IMM;
	struct wf_nic_cqe cqe = {
		.req_id = desc->req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, op, imm),
		.qpn = qp->num,
		.length = (uint16_t)len,
		.length_hi = (uint16_t)(len >> 16),
		.ah = peer->ah,
		.src_qpn = head->src_qpn,
		.imm = imm ? head->imm : 0,
	};

	take_receive(dev, qp);
	if (peer->ah == WF_NIC_AH_UNKNOWN) {
		wf_nic_qp_note_socket(qp, desc->req_id, &peer->addr);
		if (dev->nic.source && op == WF_NIC_OP_SEND)
			dev->nic.source(&peer->addr, cqe.source);
	}
	wf_udp_work_complete(dev, qp, &cqe);
	wf_udp_dev_count(dev, rx_msgs, 1);
}

/* A completion that no receive has a place for: only where it can be written at
 * once, behind none that waits. */
static bool may_tell(struct wf_udp_dev *dev, struct wf_nic_qp *qp)
{
	return !qp->flushed && wf_base_list_empty(&dev->soft.stuck) &&
	       wf_nic_cq_has_room(qp->recv_cq);
}

static void tell(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		 struct wf_nic_qp *qp, const struct wf_udp_data *head)
{
	const struct wf_nic_cqe cqe = {
		.status = WF_NIC_OK,
		.flags =
			wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_WRITE, true) |
			WF_NIC_CQE_UNSOLICITED,
		.qpn = qp->num,
		.length = (uint16_t)head->arg,
		.length_hi = (uint16_t)(head->arg >> 16),
		.ah = peer->ah,
		.src_qpn = head->src_qpn,
		.imm = head->imm,
	};

	wf_nic_cq_push(qp->recv_cq, &cqe);
	wf_nic_soft_wake(&dev->soft);
	wf_udp_dev_count(dev, rx_msgs, 1);
}

static enum wf_nic_status receive_send(struct wf_udp_dev *dev,
				       struct wf_udp_peer *peer,
				       struct wf_nic_qp *qp,
				       const struct wf_udp_data *head,
				       const uint8_t *payload)
{
	struct wf_nic_rx_desc desc;
	uint64_t addr;

	if (peer->ah == WF_NIC_AH_UNKNOWN && qp->no_strangers)
		return WF_NIC_RNR;
	if (!peek_receive(qp, &desc))
		return WF_NIC_RNR;
	if (head->len > desc.length)
		return WF_NIC_REM_LEN;
	addr = wf_nic_wqe_addr(desc.addr_lo, desc.addr_hi);
	if (head->len &&
	    !wf_nic_mr_local(&dev->nic.mrs, desc.lkey_ctrl & WF_NIC_LKEY_MASK,
			     addr, head->len, WF_NIC_LOCAL_WRITE)) {
		/* The receive is damaged, and its owner must know it. */
		complete(dev, peer, qp, &desc, head, WF_NIC_OP_SEND, 0,
			 WF_NIC_BAD_LKEY);
		return WF_NIC_BAD_STATUS;
	}
	if (head->len)
		memcpy((void *)(uintptr_t)addr, payload, head->len);
	complete(dev, peer, qp, &desc, head, WF_NIC_OP_SEND, head->len,
		 WF_NIC_OK);
	return WF_NIC_OK;
}

static enum wf_nic_status receive_write(struct wf_udp_dev *dev,
					struct wf_udp_peer *peer,
					struct wf_nic_qp *qp,
					const struct wf_udp_data *head,
					const uint8_t *payload)
{
	bool imm = head->common.kind == WF_UDP_WRITE_IMM;
	struct wf_nic_rx_desc desc;

	if (!wf_nic_mr_remote(&dev->nic.mrs, head->key, head->addr, head->len,
			      WF_NIC_REMOTE_WRITE))
		return WF_NIC_REM_ADDR;
	if (imm &&
	    !(qp->unsolicited ? may_tell(dev, qp) : peek_receive(qp, &desc)))
		return WF_NIC_RNR;
	if (head->len)
		memcpy((void *)(uintptr_t)head->addr, payload, head->len);
	if (imm && qp->unsolicited)
		tell(dev, peer, qp, head);
	else if (imm)
		complete(dev, peer, qp, &desc, head, WF_NIC_OP_WRITE, head->arg,
			 WF_NIC_OK);
	wf_udp_dev_count(dev, writes_served, 1);
	return WF_NIC_OK;
}

static enum wf_nic_status receive_read(struct wf_udp_dev *dev,
				       struct wf_udp_peer *peer,
				       const struct wf_udp_data *head)
{
	struct wf_udp_request *request;

	if (head->len || head->arg > dev->nic.caps.max_rdma ||
	    !wf_nic_mr_remote(&dev->nic.mrs, head->key, head->addr, head->arg,
			      WF_NIC_REMOTE_READ))
		return WF_NIC_REM_ADDR;
	if (peer->serving >= WF_UDP_SERVE_MOST ||
	    dev->serving >= WF_UDP_SERVE_ALL)
		return WF_NIC_RNR;
	request = wf_base_pool_get(&dev->requests);
	if (!request)
		return WF_NIC_RNR;
	*request = (struct wf_udp_request){
		.op = { .peer = peer,
			.kind = WF_UDP_OP_SERVE,
			.rnr_retry = WF_NIC_RNR_FOREVER,
			.len = head->arg },
		.src_qpn = head->dst_qpn,
		.read_id = head->imm,
		.req = { .dst_qpn = head->src_qpn,
			 .len = head->arg,
			 .rkey = head->key,
			 .raddr = head->addr },
	};
	peer->serving++;
	dev->serving++;
	wf_base_list_add_tail(&peer->served, &request->op.owner_link);
	wf_udp_engine_submit(&dev->engine, dev->engine.now, &request->op);
	wf_udp_dev_count(dev, reads_served, 1);
	return WF_NIC_OK;
}

/* Data for a read of ours. One that is over (flushed, failed) is none of ours:
 * the packet is accepted and forgotten. */
static enum wf_nic_status receive_read_data(struct wf_udp_dev *dev,
					    struct wf_udp_peer *peer,
					    const struct wf_udp_data *head,
					    const uint8_t *payload)
{
	struct wf_udp_request *request;

	if (!wf_queue_ids_live(&dev->read_ids, head->key))
		return WF_NIC_OK;
	request = dev->reads[wf_queue_ids_index(&dev->read_ids, head->key)];
	if (request->op.peer != peer) {
		wf_udp_dev_count(dev, bad_field, 1);
		return WF_NIC_OK;
	}
	/* A request that was not sent cannot be answered. The packet is for the
	 * previous process at our address, which had a read with this id; it
	 * reaches us only until the peer learns of us, which is before a
	 * request leaves. */
	if (wf_unlikely(!request->op.made))
		return WF_NIC_OK;
	if (head->arg) {
		wf_udp_op_end(&dev->engine, &request->op,
			      head->arg < WF_NIC_STATUSES ?
				      (enum wf_nic_status)head->arg :
				      WF_NIC_BAD_STATUS);
		return WF_NIC_OK;
	}
	/* Every packet comes once, so that counting bytes is enough. */
	if (head->addr > request->req.len ||
	    head->len > request->req.len - head->addr ||
	    head->len > request->req.len - request->got) {
		wf_udp_dev_count(dev, bad_field, 1);
		wf_udp_op_end(&dev->engine, &request->op, WF_NIC_BAD_STATUS);
		return WF_NIC_OK;
	}
	if (head->len &&
	    !wf_nic_mr_local(&dev->nic.mrs, request->req.sge[0].lkey,
			     request->req.sge[0].addr + head->addr, head->len,
			     WF_NIC_LOCAL_WRITE)) {
		wf_udp_op_end(&dev->engine, &request->op, WF_NIC_BAD_LKEY);
		return WF_NIC_OK;
	}
	if (head->len)
		memcpy((void *)(uintptr_t)(request->req.sge[0].addr +
					   head->addr),
		       payload, head->len);
	request->got += head->len;
	if (request->got == request->req.len)
		wf_udp_op_end(&dev->engine, &request->op, WF_NIC_OK);
	return WF_NIC_OK;
}

enum wf_nic_status wf_udp_target(struct wf_udp_engine *engine,
				 struct wf_udp_peer *peer,
				 const struct wf_udp_data *head,
				 const uint8_t *payload)
{
	struct wf_udp_dev *dev = wf_udp_dev_of_engine(engine);
	struct wf_nic_qp *qp;

	if (head->common.kind == WF_UDP_FILLER)
		return WF_NIC_OK;
	if (head->common.kind == WF_UDP_READ_DATA)
		return receive_read_data(dev, peer, head, payload);
	qp = wf_nic_qp_find(&dev->nic, head->dst_qpn);
	/* They are opened and not ready yet: peers are not told to give up. */
	if (!qp && !dev->nic.had_qp)
		return WF_NIC_RNR;
	if (!qp || qp->qkey != head->qkey || qp->flushed)
		return WF_NIC_BAD_QPN;
	switch (head->common.kind) {
	case WF_UDP_SEND:
		return receive_send(dev, peer, qp, head, payload);
	case WF_UDP_WRITE:
	case WF_UDP_WRITE_IMM:
		return receive_write(dev, peer, qp, head, payload);
	case WF_UDP_READ:
		return receive_read(dev, peer, head);
	}
	wf_udp_dev_count(dev, bad_field, 1);
	return WF_NIC_UNSUPP_OP;
}
