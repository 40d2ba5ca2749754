/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to the hardware by calls of libibverbs: ibv_wr_*(), ibv_post_recv(),
 * ibv_start_poll(). The id of a request to libibverbs is ours.
 */
#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/dev.h"
#include "nic/wqe.h"

#define IS_RECV (1ull << 32)

/* -- requests --------------------------------------------------------------- */

/* Between wr_start and wr_complete. */
static void stage(struct wf_srd_dev *dev, const struct wf_nic_request *req)
{
	const struct wf_srd_peer *peer =
		wf_nic_ah_find(&dev->soft.nic, req->ah)->dev;
	struct ibv_qp_ex *wr = dev->port->wr;
	struct ibv_sge sge[WF_NIC_SGE_MAX];

	wr->wr_id = req->req_id;
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
		ibv_wr_set_sge_list(
			wr, (size_t)wf_srd_work_pieces(dev, req, sge), sge);
	/* The address of a peer names its queue pair. */
	ibv_wr_set_ud_addr(wr, peer->host->ah, peer->qpn, peer->qkey);
}

static void post_batch(struct wf_srd_dev *dev, int ready)
{
	uint16_t ids[WF_SRD_BATCH];
	int staged = 0, err;

	ibv_wr_start(dev->port->wr);
	for (int i = 0; i < ready; i++) {
		struct wf_nic_request req;

		if (!wf_srd_work_take(dev, &req))
			continue;
		stage(dev, &req);
		ids[staged++] = req.req_id;
	}
	err = ibv_wr_complete(dev->port->wr);
	if (wf_likely(!err))
		return;
	/* Those that libibverbs did not take end here. */
	wf_warn("efa: %d requests were not posted: %s", staged, strerror(err));
	for (int i = 0; i < staged; i++)
		wf_srd_work_refuse(dev, ids[i]);
}

static void post_sends(struct wf_srd_dev *dev, int ready)
{
	while (ready) {
		int count = ready < WF_SRD_BATCH ? ready : WF_SRD_BATCH;

		post_batch(dev, count);
		ready -= count;
	}
}

/* A list of receives: all of it, or what the hardware takes. */
static void post_list(struct wf_srd_dev *dev, struct ibv_recv_wr *first)
{
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_recv(dev->port->qp, first, &bad);

	if (!err)
		return;
	wf_warn("efa: receives were not posted: %s", strerror(err));
	for (; bad; bad = bad->next)
		wf_srd_work_refuse_recv(dev, (uint16_t)bad->wr_id);
}

static void post_recvs(struct wf_srd_dev *dev, int ready)
{
	struct ibv_recv_wr list[WF_SRD_BATCH];
	struct ibv_sge sges[WF_SRD_BATCH];
	int count = 0;

	while (ready--) {
		struct wf_nic_rx_desc desc;
		uint32_t lkey;

		if (!wf_srd_work_take_recv(dev, &desc, &lkey))
			continue;
		sges[count] = (struct ibv_sge){
			.addr = wf_nic_wqe_addr(desc.addr_lo, desc.addr_hi),
			.length = desc.length,
			.lkey = lkey,
		};
		list[count] = (struct ibv_recv_wr){
			.wr_id = desc.req_id | IS_RECV,
			.sg_list = &sges[count],
			.num_sge = 1,
		};
		if (count)
			list[count - 1].next = &list[count];
		if (++count == WF_SRD_BATCH) {
			post_list(dev, list);
			count = 0;
		}
	}
	if (count)
		post_list(dev, list);
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

static bool received(struct wf_srd_dev *dev, struct ibv_cq_ex *cq)
{
	struct wf_nic_cqe cqe = {
		.req_id = (uint16_t)cq->wr_id,
		.status = (uint8_t)status_of(cq),
	};
	union ibv_gid gid;
	bool has_gid;

	if (cqe.status != WF_NIC_OK)
		return wf_srd_work_received(dev, &cqe, NULL);
	cqe.ah = (uint16_t)ibv_wc_read_slid(cq);
	cqe.src_qpn = (uint16_t)ibv_wc_read_src_qp(cq);
	cqe.length = (uint16_t)ibv_wc_read_byte_len(cq);
	if (ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM) {
		cqe.flags = WF_NIC_CQE_HAS_IMM;
		cqe.imm = be32toh(ibv_wc_read_imm_data(cq));
	}
	has_gid = cqe.ah == WF_NIC_AH_UNKNOWN &&
		  !efadv_wc_read_sgid(dev->port->source, &gid);
	return wf_srd_work_received(dev, &cqe, has_gid ? gid.raw : NULL);
}

static int calls_poll(struct wf_srd_dev *dev)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct ibv_cq_ex *cq = dev->port->cq;
	int count = 0;

	if (ibv_start_poll(cq, &attr))
		return 0;
	do {
		bool known = cq->wr_id & IS_RECV ?
				     received(dev, cq) :
				     wf_srd_work_sent(dev, (uint16_t)cq->wr_id,
						      status_of(cq));

		if (wf_unlikely(!known))
			wf_nic_count(&dev->soft.nic.counters->stale_completions,
				     1);
	} while (++count < WF_SRD_BATCH && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return count;
}

static int arm(struct wf_srd_port *port)
{
	return ibv_req_notify_cq(ibv_cq_ex_to_cq(port->cq), 0);
}

const struct wf_srd_way wf_srd_by_calls = {
	.about = "by calls of libibverbs",
	.post_sends = post_sends,
	.post_recvs = post_recvs,
	.poll = calls_poll,
	.arm = arm,
};
