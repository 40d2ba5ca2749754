/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the hardware and their completions: the part that both ways
 * (calls.c, ring.c) share. The hardware's queues have as many places as ours,
 * so a post never finds them full. This file keeps the id and operation of each
 * request that the hardware has: a completion counts only if its request
 * exists.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/dev.h"
#include "nic/wqe.h"

/* -- requests --------------------------------------------------------------- */

/* An id of the hardware's may be any: it gets a place, and is compared. */
static uint32_t *send_at(struct wf_srd_dev *dev, uint16_t req_id)
{
	return &dev->sends[wf_queue_ids_index(&dev->qp->sq_ids, req_id) %
			   WF_SRD_SENDS];
}

static uint32_t *recv_at(struct wf_srd_dev *dev, uint16_t req_id)
{
	return &dev->recvs[wf_queue_ids_index(&dev->qp->rq_ids, req_id) %
			   WF_SRD_RECVS];
}

int wf_srd_work_pieces(struct wf_srd_dev *dev, const struct wf_nic_request *req,
		       struct ibv_sge *to)
{
	uint32_t index = wf_queue_ids_index(&dev->qp->sq_ids, req->req_id);
	uint8_t *copy = dev->copies + (size_t)index * dev->copy_stride;
	bool copied = false;
	int count = 0;

	for (int i = 0; i < req->sges; i++) {
		const struct wf_nic_local *piece = &req->sge[i];
		const struct wf_srd_mr *hard =
			&dev->mrs[piece->lkey & WF_NIC_MR_MAX];

		if (!piece->len)
			continue;
		if (hard->known) {
			to[count++] = (struct ibv_sge){
				.addr = piece->addr,
				.length = piece->len,
				.lkey = hard->lkey,
			};
			copied = false;
			continue;
		}
		memcpy(copy, (const void *)(uintptr_t)piece->addr, piece->len);
		if (copied)
			to[count - 1].length += piece->len;
		else
			to[count++] = (struct ibv_sge){
				.addr = (uintptr_t)copy,
				.length = piece->len,
				.lkey = dev->copies_mr->lkey,
			};
		copy += piece->len;
		copied = true;
	}
	/* RDMA has one piece, if only an empty one. */
	if (!count && req->op != WF_NIC_OP_SEND)
		to[count++] = (struct ibv_sge){
			.addr = (uintptr_t)copy,
			.lkey = dev->copies_mr->lkey,
		};
	return count;
}

static void complete(struct wf_srd_dev *dev, uint16_t req_id, unsigned int op,
		     enum wf_nic_status status)
{
	wf_nic_soft_done(&dev->soft, dev->qp, dev->stuck, req_id,
			 (enum wf_nic_opcode)op, status);
}

static enum wf_nic_status check(struct wf_srd_dev *dev,
				const struct wf_nic_request *req)
{
	const struct wf_nic_caps *caps = &dev->soft.nic.caps;

	if (req->op == WF_NIC_OP_SEND)
		return WF_NIC_OK;
	if (req->user_key || req->has_imm ||
	    !(req->op == WF_NIC_OP_READ ? caps->hard_reads : caps->hard_writes))
		return WF_NIC_UNSUPP_OP;
	/* It reads into the memory itself, and no copy is that long. */
	if (req->len && !dev->mrs[req->sge[0].lkey & WF_NIC_MR_MAX].known)
		return WF_NIC_BAD_LKEY;
	return WF_NIC_OK;
}

bool wf_srd_work_accept(struct wf_srd_dev *dev,
			const struct wf_nic_request *req,
			enum wf_nic_status status)
{
	if (status == WF_NIC_OK)
		status = check(dev, req);
	if (wf_unlikely(status != WF_NIC_OK)) {
		complete(dev, req->req_id, req->op, status);
		return false;
	}
	wf_srd_work_note(dev, req->req_id, req->op);
	return true;
}

bool wf_srd_work_take(struct wf_srd_dev *dev, struct wf_nic_request *req)
{
	enum wf_nic_status status = wf_nic_soft_take(&dev->soft, dev->qp, req);

	return wf_srd_work_accept(dev, req, status);
}

void wf_srd_work_refuse(struct wf_srd_dev *dev, uint16_t req_id)
{
	uint32_t op = *send_at(dev, req_id) >> WF_SRD_OP_SHIFT;

	*send_at(dev, req_id) = WF_SRD_FREE;
	complete(dev, req_id, op, WF_NIC_QP_INTERNAL);
}

static void flush_recv(struct wf_srd_dev *dev, uint16_t req_id)
{
	const struct wf_nic_rx_desc desc = { .req_id = req_id };

	wf_nic_soft_flush_recv(&dev->soft, dev->qp, dev->stuck, &desc);
}

bool wf_srd_work_take_recv(struct wf_srd_dev *dev, struct wf_nic_rx_desc *desc,
			   uint32_t *lkey)
{
	const struct wf_srd_mr *hard;

	wf_queue_work_take(&dev->qp->rq_work, desc);
	hard = &dev->mrs[desc->lkey_ctrl & WF_NIC_MR_MAX];
	if (!hard->known) {
		flush_recv(dev, desc->req_id);
		return false;
	}
	*lkey = hard->lkey;
	*recv_at(dev, desc->req_id) = desc->req_id;
	return true;
}

void wf_srd_work_refuse_recv(struct wf_srd_dev *dev, uint16_t req_id)
{
	*recv_at(dev, req_id) = WF_SRD_FREE;
	flush_recv(dev, req_id);
}

int wf_srd_work_post(struct wf_srd_dev *dev)
{
	const struct wf_srd_way *way = dev->port->way;
	struct wf_nic_qp *qp = dev->qp;
	int sends, recvs;

	if (!qp || qp->flushed)
		return 0;
	recvs = qp->rq.ring ? wf_queue_work_poll(&qp->rq_work) : 0;
	if (recvs > 0)
		way->post_recvs(dev, recvs);
	else
		recvs = 0;
	sends = wf_queue_work_poll(&qp->sq_work);
	if (sends < 0)
		sends = 0;
	way->post_sends(dev, sends);
	return recvs + sends;
}

/* -- completions ------------------------------------------------------------ */

/* The sender, as far as the hardware knows it: not its key. */
static bool find_source(struct wf_srd_dev *dev, const struct wf_nic_cqe *cqe,
			const uint8_t *gid, struct wf_addr *from)
{
	const struct wf_srd_host *host =
		wf_srd_hard_ahn(dev->port->hard, cqe->ah);
	uint8_t raw[WF_ADDR_EFA_RAW] = { 0 };

	if (host)
		gid = host->gid;
	if (!gid)
		return false;
	memcpy(raw, gid, sizeof(host->gid));
	if (wf_base_addr_set_raw(from, raw, sizeof(raw)))
		return false;
	from->efa.qpn = cqe->src_qpn;
	return true;
}

static void name_source(struct wf_srd_dev *dev, struct wf_nic_cqe *cqe,
			const uint8_t *gid)
{
	const struct wf_srd_peer *peer =
		wf_srd_dev_peer(dev, cqe->ah, cqe->src_qpn);
	struct wf_addr from = { 0 };

	if (wf_likely(peer)) {
		cqe->ah = peer->num;
		return;
	}
	if (find_source(dev, cqe, gid, &from))
		wf_nic_qp_note_socket(dev->qp, cqe->req_id, &from);
	else /* nobody who could be answered */
		cqe->status = WF_NIC_UNKNOWN_PEER;
	cqe->ah = WF_NIC_AH_UNKNOWN;
}

bool wf_srd_work_received(struct wf_srd_dev *dev, struct wf_nic_cqe *cqe,
			  const uint8_t *gid)
{
	uint32_t *at = recv_at(dev, cqe->req_id);

	if (wf_unlikely(*at != cqe->req_id))
		return false;
	*at = WF_SRD_FREE;
	cqe->flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_SEND,
				      cqe->flags & WF_NIC_CQE_HAS_IMM);
	cqe->qpn = dev->qp->num;
	if (wf_unlikely(cqe->status == WF_NIC_OK &&
			cqe->length > dev->port->hard->max_msg))
		cqe->status = WF_NIC_QP_INTERNAL;
	if (wf_likely(cqe->status == WF_NIC_OK))
		name_source(dev, cqe, gid);
	else
		cqe->ah = WF_NIC_AH_UNKNOWN;
	wf_nic_count(&dev->soft.nic.counters->rx_msgs, 1);
	wf_nic_soft_complete(&dev->soft, dev->qp, dev->stuck, cqe);
	return true;
}

bool wf_srd_work_sent(struct wf_srd_dev *dev, uint16_t req_id,
		      enum wf_nic_status status)
{
	uint32_t *at = send_at(dev, req_id), op = *at >> WF_SRD_OP_SHIFT;

	if (wf_unlikely(*at == WF_SRD_FREE || (uint16_t)*at != req_id))
		return false;
	*at = WF_SRD_FREE;
	complete(dev, req_id, op, status);
	return true;
}

int wf_srd_work_poll(struct wf_srd_dev *dev)
{
	if (!dev->qp || !dev->port->qp)
		return 0;
	return dev->port->way->poll(dev);
}

void wf_srd_work_flush(struct wf_srd_dev *dev)
{
	struct wf_srd_port *port = dev->port;

	while (wf_srd_work_poll(dev) == WF_SRD_BATCH)
		;
	/* From here on it touches no memory. */
	port->verbs->ibv_destroy_qp(port->qp);
	port->qp = NULL;
	for (uint32_t i = 0; i < WF_SRD_SENDS; i++) {
		if (dev->sends[i] != WF_SRD_FREE)
			complete(dev, (uint16_t)dev->sends[i],
				 dev->sends[i] >> WF_SRD_OP_SHIFT,
				 WF_NIC_FLUSHED);
		dev->sends[i] = WF_SRD_FREE;
	}
	for (uint32_t i = 0; i < WF_SRD_RECVS; i++) {
		if (dev->recvs[i] != WF_SRD_FREE)
			flush_recv(dev, (uint16_t)dev->recvs[i]);
		dev->recvs[i] = WF_SRD_FREE;
	}
	wf_nic_soft_flush(&dev->soft, dev->qp, dev->stuck);
}
