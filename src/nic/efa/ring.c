/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to the hardware through its rings. src/queue stages descriptors and
 * copies them into the ring, the doorbell is a store, and completions are read
 * where the hardware writes them. We ask libibverbs once where the rings are,
 * and call it again only to destroy the queue pair. The send ring may be
 * write-combined device memory: it is never read.
 *
 * Completions are checked like packets of a peer: a completion counts only if
 * its request exists.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/dev.h"
#include "nic/wqe.h"

/* -- requests --------------------------------------------------------------- */

/* All pieces, behind each other. */
static void gather(const struct wf_nic_request *req, uint8_t *to)
{
	for (int i = 0; i < req->sges; i++) {
		const struct wf_nic_local *piece = &req->sge[i];

		if (!piece->len)
			continue;
		memcpy(to, (const void *)(uintptr_t)piece->addr, piece->len);
		to += piece->len;
	}
}

/* The half of a descriptor that says where the bytes are. Returns what its head
 * has to say of that. */
static uint16_t put_inline(const struct wf_nic_request *req,
			   struct wf_nic_tx_wqe *wqe)
{
	memset(wqe->inline_data, 0, sizeof(wqe->inline_data));
	if (req->inlined)
		memcpy(wqe->inline_data, req->data, req->len);
	else
		gather(req, wqe->inline_data);
	return (uint16_t)req->len;
}

static uint16_t put_pieces(struct wf_srd_dev *dev,
			   const struct wf_nic_request *req,
			   struct wf_nic_tx_wqe *wqe)
{
	struct ibv_sge sge[WF_NIC_SGE_MAX];
	int count = wf_srd_work_pieces(dev, req, sge);

	if (req->op != WF_NIC_OP_SEND) {
		wf_nic_wqe_remote(&wqe->rdma.remote, req->raddr, req->len,
				  req->rkey);
		wf_nic_wqe_sge(&wqe->rdma.local, sge[0].addr, sge[0].length,
			       sge[0].lkey);
		return 1;
	}
	for (int i = 0; i < WF_NIC_SGE_MAX; i++) {
		if (i < count)
			wf_nic_wqe_sge(&wqe->sgl[i], sge[i].addr, sge[i].length,
				       sge[i].lkey);
		else
			wf_nic_wqe_put(&wqe->sgl[i], 0, 0);
	}
	return (uint16_t)count;
}

/* The ring has a place for each request that our queue pair can have. */
static void post(struct wf_srd_dev *dev, const struct wf_srd_peer *peer,
		 const struct wf_nic_request *req, bool more)
{
	struct wf_queue_sub *sq = &dev->port->rings->sq;
	bool inlined = req->op == WF_NIC_OP_SEND &&
		       req->len <= dev->soft.nic.caps.inline_max;
	struct wf_nic_tx_wqe wqe WF_ALIGNED(64);
	uint16_t length =
		inlined ? put_inline(req, &wqe) : put_pieces(dev, req, &wqe);
	int err;

	/* The address of a peer names its queue pair. */
	wf_nic_wqe_meta(
		&wqe,
		&(struct wf_nic_wqe_head){
			.req_id = req->req_id,
			.ctrl1 = (uint8_t)(req->op |
					   (inlined ? WF_NIC_TX_INLINE : 0) |
					   (req->has_imm ? WF_NIC_TX_HAS_IMM :
							   0)),
			.phase = wf_queue_sub_phase(sq),
			.dest_qpn = peer->qpn,
			.length = length,
			.ah = peer->host->ahn,
			.imm = req->has_imm ? req->imm : 0,
			.qkey = peer->qkey });
	err = wf_queue_sub_post64(sq, &wqe, more);
	assert(!err);
	(void)err;
}

static void post_sends(struct wf_srd_dev *dev, int ready)
{
	while (ready--) {
		struct wf_nic_request req;

		if (wf_srd_work_take(dev, &req))
			post(dev, wf_nic_ah_find(&dev->soft.nic, req.ah)->dev,
			     &req, true);
	}
	wf_queue_sub_ring(&dev->port->rings->sq);
}

static void post_recvs(struct wf_srd_dev *dev, int ready)
{
	struct wf_queue_sub *rq = &dev->port->rings->rq;

	while (ready--) {
		struct wf_nic_rx_desc desc, hard;
		uint32_t lkey;
		int err;

		if (!wf_srd_work_take_recv(dev, &desc, &lkey))
			continue;
		wf_nic_rx_fill(&hard, desc.req_id,
			       wf_nic_wqe_addr(desc.addr_lo, desc.addr_hi),
			       desc.length, lkey);
		err = wf_queue_sub_post16(rq, &hard, true);
		assert(!err);
		(void)err;
	}
	wf_queue_sub_ring(rq);
}

/* -- messages that do not pass our ring ------------------------------------- */

static enum wf_nic_status fill(const struct wf_nic *nic,
			       struct wf_nic_request *req,
			       const struct wf_nic_sge *sge, int count)
{
	req->sges = (uint8_t)count;
	for (int i = 0; i < count; i++) {
		struct wf_nic_local *to = &req->sge[i];

		to->addr = (uintptr_t)sge[i].addr;
		to->len = sge[i].len;
		to->lkey = sge[i].lkey;
		if (to->len > nic->caps.max_msg - req->len)
			return WF_NIC_LOCAL_LEN;
		req->len += to->len;
		if (to->len &&
		    !wf_nic_mr_local(&nic->mrs, to->lkey, to->addr, to->len, 0))
			return WF_NIC_BAD_LKEY;
	}
	return WF_NIC_OK;
}

int wf_srd_ring_send(struct wf_nic *nic, struct wf_nic_qp *qp, uint16_t req_id,
		     const struct wf_nic_wr *wr, const struct wf_nic_sge *sge,
		     int count)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_nic_request req;
	enum wf_nic_status status;
	struct wf_nic_ah *ah;

	(void)qp;
	/* The fields that a send has. */
	req.op = WF_NIC_OP_SEND;
	req.inlined = false;
	req.has_imm = wr->flags & WF_NIC_WR_IMM;
	req.req_id = req_id;
	req.ah = wr->ah;
	req.imm = wr->imm;
	req.len = 0;
	wf_base_lock_take(&nic->lock);
	wf_nic_count(&nic->counters->tx_msgs, 1);
	status = fill(nic, &req, sge, count);
	ah = wf_nic_ah_find(nic, req.ah);
	if (wf_unlikely(!ah))
		status = WF_NIC_BAD_AH;
	if (wf_likely(status == WF_NIC_OK)) {
		wf_srd_work_note(dev, req_id, WF_NIC_OP_SEND);
		post(dev, ah->dev, &req, wr->flags & WF_NIC_WR_MORE);
	} else {
		wf_srd_work_accept(dev, &req, status);
	}
	wf_base_lock_drop(&nic->lock);
	return 0;
}

/* -- completions ------------------------------------------------------------ */

static bool finish(struct wf_srd_dev *dev, struct wf_nic_cqe *cqe)
{
	if (wf_unlikely(cqe->status >= WF_NIC_STATUSES))
		cqe->status = WF_NIC_QP_INTERNAL;
	if (wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_SQ) {
		if (!wf_srd_work_sent(dev, cqe->req_id,
				      (enum wf_nic_status)cqe->status))
			return false;
		wf_queue_sub_done(&dev->port->rings->sq, 1);
		return true;
	}
	if (wf_nic_cqe_qtype(cqe) != WF_NIC_CQE_RQ ||
	    cqe->flags & WF_NIC_CQE_UNSOLICITED ||
	    !wf_srd_work_received(dev, cqe,
				  cqe->ah == WF_NIC_AH_UNKNOWN ? cqe->source :
								 NULL))
		return false;
	wf_queue_sub_done(&dev->port->rings->rq, 1);
	return true;
}

static void write_doorbell(struct wf_srd_port *port, uint32_t arm)
{
	struct wf_srd_rings *rings = port->rings;
	uint32_t events = port->events & WF_EFADV_CQ_EVENTS;

	atomic_store_explicit(rings->cq_doorbell,
			      rings->cq.read |
				      events << WF_EFADV_CQ_EVENTS_SHIFT | arm,
			      memory_order_release);
}

static int ring_poll(struct wf_srd_dev *dev)
{
	struct wf_srd_rings *rings = dev->port->rings;
	struct wf_nic_cqe cqe;
	int count = 0;

	while (count < WF_SRD_BATCH && wf_queue_cq_take(&rings->cq, &cqe)) {
		count++;
		if (wf_unlikely(!finish(dev, &cqe)))
			wf_nic_count(&dev->soft.nic.counters->stale_completions,
				     1);
	}
	/* Like libefa, which tells the hardware after each poll. */
	if (count)
		write_doorbell(dev->port, 0);
	return count;
}

static int arm(struct wf_srd_port *port)
{
	write_doorbell(port, WF_EFADV_CQ_ARM);
	return 0;
}

/* -- finding them ----------------------------------------------------------- */

static int init_sub(struct wf_queue_sub *sub,
		    const struct wf_efadv_wq_attr *attr, size_t stride,
		    uint32_t least)
{
	uint32_t batch = attr->max_batch;
	const struct wf_queue_sub_attr ring = {
		.ring = attr->buffer,
		.doorbell = (_Atomic uint32_t *)attr->doorbell,
		.entries = attr->num_entries,
		.stride = attr->entry_size,
		.max_batch =
			batch < attr->num_entries ? batch : attr->num_entries,
		.copy = WF_QUEUE_COPY_BEST,
	};

	if (attr->entry_size != stride || attr->num_entries < least)
		return -EINVAL;
	return wf_queue_sub_init(sub, &ring);
}

static int init_cq(struct wf_srd_rings *rings,
		   const struct wf_efadv_cq_attr *attr)
{
	const struct wf_queue_cq_attr ring = {
		.ring = attr->buffer,
		.entries = attr->num_entries,
		.stride = attr->entry_size,
		.phase_word = 0,
		.phase_bit = WF_NIC_CQE_PHASE_BIT,
	};

	/* Without a doorbell no event can be requested. */
	if (attr->entry_size != sizeof(struct wf_nic_cqe) ||
	    attr->num_entries < WF_SRD_SENDS + WF_SRD_RECVS || !attr->doorbell)
		return -EINVAL;
	rings->cq_doorbell = (_Atomic uint32_t *)attr->doorbell;
	return wf_queue_cq_init(&rings->cq, &ring);
}

const char *wf_srd_ring_open(struct wf_srd_port *port)
{
	const struct wf_srd_verbs *verbs = port->verbs;
	struct wf_efadv_wq_attr sq = { .comp_mask = 0 };
	struct wf_efadv_wq_attr rq = { .comp_mask = 0 };
	struct wf_efadv_cq_attr cq = { .comp_mask = 0 };
	struct wf_srd_rings *rings;

	if (!verbs->efadv_query_qp_wqs || !verbs->efadv_query_cq)
		return "libefa is older than rdma-core 59";
	if (verbs->efadv_query_qp_wqs(port->qp, &sq, &rq, sizeof(sq)) ||
	    verbs->efadv_query_cq(ibv_cq_ex_to_cq(port->cq), &cq, sizeof(cq)))
		return "the device does not tell where its rings are";
	rings = aligned_alloc(WF_LINE, sizeof(*rings));
	if (!rings)
		return "there is no memory";
	memset(rings, 0, sizeof(*rings));
	if (init_sub(&rings->sq, &sq, sizeof(struct wf_nic_tx_wqe),
		     WF_SRD_SENDS) ||
	    init_sub(&rings->rq, &rq, sizeof(struct wf_nic_rx_desc),
		     WF_SRD_RECVS) ||
	    init_cq(rings, &cq)) {
		free(rings);
		return "its rings have a form that weft does not know";
	}
	port->rings = rings;
	return NULL;
}

void wf_srd_ring_close(struct wf_srd_port *port)
{
	free(port->rings);
	port->rings = NULL;
}

const struct wf_srd_way wf_srd_by_rings = {
	.about = "by the rings of the device",
	.post_sends = post_sends,
	.post_recvs = post_recvs,
	.poll = ring_poll,
	.arm = arm,
};
