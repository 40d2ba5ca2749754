/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the hardware, and what comes back. The id of a request to
 * libibverbs is ours, with its operation: completions of failed ones say
 * neither. There are as many places in the hardware's queues as in ours, so a
 * post never finds them full.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/dev.h"
#include "nic/wqe.h"

/* Posted by one call, completions taken by one poll. */
#define BATCH 64

#define IS_RECV (1ull << 32)
#define OP_SHIFT 16

static uint64_t wr_id_of(uint16_t req_id, unsigned int op)
{
	return req_id | (uint64_t)op << OP_SHIFT;
}

/* -- requests --------------------------------------------------------------- */

/* The pieces as the hardware is to see them. Those in memory that it does not
 * know are copied, one behind the other. */
static int collect(struct wf_srd_dev *dev, const struct wf_nic_request *req,
		   struct ibv_sge *to)
{
	uint32_t index = wf_queue_ids_index(&dev->qp->sq_ids, req->req_id);
	uint8_t *copy = dev->copies + (size_t)index * dev->copy_stride;
	bool copied = false;
	int count = 0;

	for (int i = 0; i < req->sges; i++) {
		const struct wf_nic_local *piece = &req->sge[i];
		const struct ibv_mr *hard =
			dev->mrs[piece->lkey & WF_NIC_MR_MAX];

		if (!piece->len)
			continue;
		if (hard) {
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
	return count;
}

static void complete(struct wf_srd_dev *dev, uint16_t req_id, unsigned int op,
		     enum wf_nic_status status)
{
	wf_nic_soft_done(&dev->soft, dev->qp, dev->stuck, req_id,
			 (enum wf_nic_opcode)op, status);
}

/* Between wr_start and wr_complete. */
static void stage(struct wf_srd_dev *dev, const struct wf_nic_request *req)
{
	const struct wf_srd_peer *peer =
		wf_nic_ah_find(&dev->soft.nic, req->ah)->dev;
	struct ibv_qp_ex *wr = dev->port->wr;
	struct ibv_sge sge[WF_NIC_SGE_MAX];

	dev->sends[wf_queue_ids_index(&dev->qp->sq_ids, req->req_id)] =
		req->req_id;
	wr->wr_id = wr_id_of(req->req_id, req->op);
	wr->wr_flags = 0;
	if (req->op == WF_NIC_OP_READ)
		ibv_wr_rdma_read(wr, req->rkey, req->raddr);
	else if (req->op == WF_NIC_OP_WRITE)
		ibv_wr_rdma_write(wr, req->rkey, req->raddr);
	else if (req->has_imm)
		ibv_wr_send_imm(wr, htobe32(req->imm));
	else
		ibv_wr_send(wr);
	if (req->inlined)
		ibv_wr_set_inline_data(wr, (void *)(uintptr_t)req->data,
				       req->len);
	else
		ibv_wr_set_sge_list(wr, (size_t)collect(dev, req, sge), sge);
	/* The address of a peer names its queue pair. */
	ibv_wr_set_ud_addr(wr, peer->host->ah, peer->qpn, peer->qkey);
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
	if (req->len && !dev->mrs[req->sge[0].lkey & WF_NIC_MR_MAX])
		return WF_NIC_BAD_LKEY;
	return WF_NIC_OK;
}

/* Those that libibverbs did not take end here. */
static void refuse(struct wf_srd_dev *dev, const uint64_t *ids, int count,
		   int err)
{
	wf_warn("efa: %d requests were not posted: %s", count, strerror(err));
	for (int i = 0; i < count; i++) {
		uint16_t req_id = (uint16_t)ids[i];

		dev->sends[wf_queue_ids_index(&dev->qp->sq_ids, req_id)] =
			WF_SRD_FREE;
		complete(dev, req_id, (unsigned int)(ids[i] >> OP_SHIFT),
			 WF_NIC_QP_INTERNAL);
	}
}

static int post_batch(struct wf_srd_dev *dev, int ready)
{
	uint64_t ids[BATCH];
	int staged = 0, err;

	ibv_wr_start(dev->port->wr);
	for (int i = 0; i < ready; i++) {
		struct wf_nic_request req;
		enum wf_nic_status status =
			wf_nic_soft_take(&dev->soft, dev->qp, &req);

		if (status == WF_NIC_OK)
			status = check(dev, &req);
		if (status != WF_NIC_OK) {
			complete(dev, req.req_id, req.op, status);
			continue;
		}
		stage(dev, &req);
		ids[staged++] = wr_id_of(req.req_id, req.op);
	}
	err = ibv_wr_complete(dev->port->wr);
	if (wf_unlikely(err))
		refuse(dev, ids, staged, err);
	return ready;
}

static int post_sends(struct wf_srd_dev *dev)
{
	int ready = wf_queue_work_poll(&dev->qp->sq_work), done = 0;

	while (done < ready) {
		int count = ready - done < BATCH ? ready - done : BATCH;

		done += post_batch(dev, count);
	}
	return done;
}

static void flush_recv(struct wf_srd_dev *dev, uint16_t req_id)
{
	const struct wf_nic_rx_desc desc = { .req_id = req_id };

	wf_nic_soft_flush_recv(&dev->soft, dev->qp, dev->stuck, &desc);
}

/* A list of receives: all of it, or what the hardware takes. */
static void post_list(struct wf_srd_dev *dev, struct ibv_recv_wr *first)
{
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_recv(dev->port->qp, first, &bad);

	if (!err)
		return;
	wf_warn("efa: receives were not posted: %s", strerror(err));
	for (; bad; bad = bad->next) {
		uint16_t id = (uint16_t)bad->wr_id;

		dev->recvs[wf_queue_ids_index(&dev->qp->rq_ids, id)] =
			WF_SRD_FREE;
		flush_recv(dev, id);
	}
}

static int post_recvs(struct wf_srd_dev *dev)
{
	struct wf_nic_qp *qp = dev->qp;
	struct ibv_recv_wr list[BATCH];
	struct ibv_sge sges[BATCH];
	int ready = qp->rq.ring ? wf_queue_work_poll(&qp->rq_work) : 0;
	int done = 0, count = 0;

	while (done < ready) {
		struct wf_nic_rx_desc desc;
		const struct ibv_mr *hard;

		wf_queue_work_take(&qp->rq_work, &desc);
		done++;
		hard = dev->mrs[desc.lkey_ctrl & WF_NIC_MR_MAX];
		if (!hard) {
			flush_recv(dev, desc.req_id);
			continue;
		}
		sges[count] = (struct ibv_sge){
			.addr = wf_nic_wqe_addr(desc.addr_lo, desc.addr_hi),
			.length = desc.length,
			.lkey = hard->lkey,
		};
		list[count] = (struct ibv_recv_wr){
			.wr_id = desc.req_id | IS_RECV,
			.sg_list = &sges[count],
			.num_sge = 1,
		};
		if (count)
			list[count - 1].next = &list[count];
		dev->recvs[wf_queue_ids_index(&qp->rq_ids, desc.req_id)] =
			desc.req_id;
		if (++count == BATCH) {
			post_list(dev, list);
			count = 0;
		}
	}
	if (count)
		post_list(dev, list);
	return done;
}

int wf_srd_work_post(struct wf_srd_dev *dev)
{
	if (!dev->qp || dev->qp->flushed)
		return 0;
	return post_recvs(dev) + post_sends(dev);
}

/* -- completions ------------------------------------------------------------ */

/* libibverbs passes the status of the hardware on. */
static enum wf_nic_status status_of(struct ibv_cq_ex *cq)
{
	uint32_t status;

	if (cq->status == IBV_WC_SUCCESS)
		return WF_NIC_OK;
	if (cq->status == IBV_WC_WR_FLUSH_ERR)
		return WF_NIC_FLUSHED;
	status = ibv_wc_read_vendor_err(cq);
	return status && status < WF_NIC_STATUSES ? (enum wf_nic_status)status :
						    WF_NIC_QP_INTERNAL;
}

/* The sender, as far as the hardware knows it: not its key. */
static bool find_source(struct wf_srd_dev *dev, struct ibv_cq_ex *cq,
			uint16_t ahn, struct wf_addr *from)
{
	const struct wf_srd_host *host = wf_srd_hard_ahn(dev->port->hard, ahn);
	uint8_t raw[WF_ADDR_EFA_RAW] = { 0 };
	union ibv_gid gid;

	if (host)
		memcpy(gid.raw, host->gid, sizeof(gid.raw));
	else if (efadv_wc_read_sgid(dev->port->source, &gid))
		return false;
	memcpy(raw, gid.raw, sizeof(gid.raw));
	if (wf_base_addr_set_raw(from, raw, sizeof(raw)))
		return false;
	from->efa.qpn = (uint16_t)ibv_wc_read_src_qp(cq);
	return true;
}

static void received(struct wf_srd_dev *dev, struct ibv_cq_ex *cq,
		     uint16_t req_id)
{
	enum wf_nic_status status = status_of(cq);
	struct wf_nic_cqe cqe = {
		.req_id = req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_SEND, false),
		.qpn = dev->qp->num,
		.ah = WF_NIC_AH_UNKNOWN,
	};
	const struct wf_srd_peer *peer;
	struct wf_addr from = { 0 };
	uint16_t ahn;

	dev->recvs[wf_queue_ids_index(&dev->qp->rq_ids, req_id)] = WF_SRD_FREE;
	if (status == WF_NIC_OK) {
		ahn = (uint16_t)ibv_wc_read_slid(cq);
		cqe.src_qpn = (uint16_t)ibv_wc_read_src_qp(cq);
		cqe.length = (uint16_t)ibv_wc_read_byte_len(cq);
		if (ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM) {
			cqe.flags |= WF_NIC_CQE_HAS_IMM;
			cqe.imm = be32toh(ibv_wc_read_imm_data(cq));
		}
		peer = wf_srd_dev_peer(dev, ahn, cqe.src_qpn);
		if (peer)
			cqe.ah = peer->num;
		else if (find_source(dev, cq, ahn, &from))
			wf_nic_qp_note_socket(dev->qp, req_id, &from);
		else /* nobody who could be answered */
			cqe.status = WF_NIC_UNKNOWN_PEER;
	}
	wf_nic_count(&dev->soft.nic.counters->rx_msgs, 1);
	wf_nic_soft_complete(&dev->soft, dev->qp, dev->stuck, &cqe);
}

static void sent(struct wf_srd_dev *dev, struct ibv_cq_ex *cq, uint16_t req_id,
		 unsigned int op)
{
	dev->sends[wf_queue_ids_index(&dev->qp->sq_ids, req_id)] = WF_SRD_FREE;
	complete(dev, req_id, op, status_of(cq));
}

int wf_srd_work_poll(struct wf_srd_dev *dev)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct ibv_cq_ex *cq = dev->port->cq;
	int count = 0, err;

	if (!dev->qp || !dev->port->qp)
		return 0;
	err = ibv_start_poll(cq, &attr);
	if (err)
		return 0;
	do {
		uint64_t id = cq->wr_id;

		if (id & IS_RECV)
			received(dev, cq, (uint16_t)id);
		else
			sent(dev, cq, (uint16_t)id,
			     (unsigned int)(id >> OP_SHIFT));
	} while (++count < BATCH && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return count;
}

void wf_srd_work_flush(struct wf_srd_dev *dev)
{
	struct wf_srd_port *port = dev->port;

	while (wf_srd_work_poll(dev) == BATCH)
		;
	/* From here on it touches no memory. */
	port->verbs->ibv_destroy_qp(port->qp);
	port->qp = NULL;
	for (uint32_t i = 0; i < WF_SRD_SENDS; i++) {
		if (dev->sends[i] != WF_SRD_FREE)
			complete(dev, (uint16_t)dev->sends[i], WF_NIC_OP_SEND,
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
