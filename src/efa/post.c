/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts. Between ibv_wr_start() and ibv_wr_complete() requests are staged in the
 * queue pair and nothing of the NIC is locked, because a program may poll in
 * between; then they go to the NIC together, with one doorbell.
 */
#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "efa/efa.h"

static struct wf_efa_qp *of_ex(struct ibv_qp_ex *ex)
{
	return (struct wf_efa_qp *)ex;
}

static struct wf_lock *ring_lock(struct ibv_cq *cq)
{
	return &wf_efa_cq_of(cq)->ring_lock;
}

/* -- staging ---------------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct wf_efa_qp *qp = of_ex(ex);

	wf_base_lock_take(&qp->sq_lock);
	qp->count = 0;
	qp->error = 0;
	if (!wf_efa_device_has(qp->nic)) {
		qp->error = EINVAL;
		return;
	}
	wf_base_lock_take(ring_lock(qp->qp.send_cq));
	qp->room = wf_nic_qp_send_room(qp->ring);
	wf_base_lock_drop(ring_lock(qp->qp.send_cq));
}

static void stage(struct wf_efa_qp *qp, enum wf_nic_opcode op, uint64_t wr_id,
		  unsigned int flags)
{
	struct wf_efa_staged *staged;

	if (qp->error)
		return;
	if ((qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_SQD) ||
	    !(qp->sig_all || flags & IBV_SEND_SIGNALED)) {
		/* Each request completes: the device has no others. */
		qp->error = EINVAL;
		return;
	}
	if (qp->count == qp->room) {
		qp->error = ENOMEM;
		return;
	}
	staged = &qp->staged[qp->count++];
	staged->wr = (struct wf_nic_wr){ .wr_id = wr_id };
	staged->op = (uint8_t)op;
	staged->sges = 0;
	staged->inlined = false;
	staged->inline_len = 0;
}

/* The request that is being described. NULL: there is none. */
static struct wf_efa_staged *current(struct wf_efa_qp *qp)
{
	if (qp->error)
		return NULL;
	if (!qp->count) {
		qp->error = EINVAL;
		return NULL;
	}
	return &qp->staged[qp->count - 1];
}

static void stage_imm(struct wf_efa_qp *qp, __be32 imm)
{
	struct wf_efa_staged *staged = current(qp);

	if (!staged)
		return;
	staged->wr.imm = be32toh(imm);
	staged->wr.flags |= WF_NIC_WR_IMM;
}

static void stage_remote(struct wf_efa_qp *qp, uint32_t rkey, uint64_t addr)
{
	struct wf_efa_staged *staged = current(qp);

	if (staged)
		staged->remote =
			(struct wf_nic_remote){ .addr = addr, .rkey = rkey };
}

static void stage_sges(struct wf_efa_qp *qp, const struct ibv_sge *sges,
		       size_t count)
{
	struct wf_efa_staged *staged = current(qp);
	size_t most;

	if (!staged)
		return;
	most = staged->op == WF_NIC_OP_SEND ? WF_NIC_SGE_MAX : 1;
	if (count > most) {
		qp->error = EINVAL;
		return;
	}
	for (size_t i = 0; i < count; i++)
		staged->sge[i] = (struct wf_nic_sge){
			.addr = (void *)(uintptr_t)sges[i].addr,
			.len = sges[i].length,
			.lkey = sges[i].lkey,
		};
	staged->sges = (uint8_t)count;
}

static void stage_bytes(struct wf_efa_qp *qp, const void *bytes, size_t len)
{
	struct wf_efa_staged *staged = current(qp);

	if (!staged)
		return;
	if (staged->op != WF_NIC_OP_SEND ||
	    len > WF_NIC_INLINE_MAX - (size_t)staged->inline_len) {
		qp->error = EINVAL;
		return;
	}
	if (len)
		memcpy(staged->data + staged->inline_len, bytes, len);
	staged->inline_len += (uint8_t)len;
	staged->inlined = true;
}

static void stage_addr(struct wf_efa_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		       uint32_t qkey)
{
	struct wf_efa_staged *staged = current(qp);

	if (!staged)
		return;
	staged->wr.ah = wf_efa_ah_of(ah)->num;
	staged->wr.qpn = (uint16_t)qpn;
	staged->wr.qkey = qkey;
}

/* -- to the NIC ------------------------------------------------------------- */

static int submit(struct wf_nic_qp *ring, struct wf_efa_staged *staged)
{
	static const struct wf_nic_sge nothing;
	const struct wf_nic_sge *sge = staged->sges ? staged->sge : &nothing;

	switch (staged->op) {
	case WF_NIC_OP_READ:
		return wf_nic_post_read(ring, &staged->wr, &staged->remote,
					sge);
	case WF_NIC_OP_WRITE:
		return wf_nic_post_write(ring, &staged->wr, &staged->remote,
					 sge);
	}
	if (staged->inlined)
		return wf_nic_post_inline(ring, &staged->wr, staged->data,
					  staged->inline_len);
	return wf_nic_post_send(ring, &staged->wr, staged->sge, staged->sges);
}

static int errno_of(int ret)
{
	/* A queue pair that was flushed is in a wrong state. */
	return ret == -EAGAIN ? ENOMEM : ret == -ESHUTDOWN ? EINVAL : -ret;
}

/* Under sq_lock. */
static int submit_all(struct wf_efa_qp *qp)
{
	int ret = 0;

	wf_base_lock_take(ring_lock(qp->qp.send_cq));
	for (uint32_t i = 0; i < qp->count && !ret; i++) {
		if (i + 1 < qp->count)
			qp->staged[i].wr.flags |= WF_NIC_WR_MORE;
		ret = submit(qp->ring, &qp->staged[i]);
	}
	/* Room was counted before, so only a flush stops it in the middle. */
	if (ret)
		wf_nic_qp_ring(qp->ring);
	wf_base_lock_drop(ring_lock(qp->qp.send_cq));
	return errno_of(ret);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct wf_efa_qp *qp = of_ex(ex);
	int ret = qp->error;

	if (!ret && qp->count)
		ret = submit_all(qp);
	wf_base_lock_drop(&qp->sq_lock);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	wf_base_lock_drop(&of_ex(ex)->sq_lock);
}

/* -- ibv_wr_*() ------------------------------------------------------------- */

static void wr_send(struct ibv_qp_ex *ex)
{
	stage(of_ex(ex), WF_NIC_OP_SEND, ex->wr_id, ex->wr_flags);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	wr_send(ex);
	stage_imm(of_ex(ex), imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	stage(of_ex(ex), WF_NIC_OP_READ, ex->wr_id, ex->wr_flags);
	stage_remote(of_ex(ex), rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	stage(of_ex(ex), WF_NIC_OP_WRITE, ex->wr_id, ex->wr_flags);
	stage_remote(of_ex(ex), rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	wr_rdma_write(ex, rkey, addr);
	stage_imm(of_ex(ex), imm);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	stage_addr(of_ex(ex), ah, qpn, qkey);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr,
				     .length = length,
				     .lkey = lkey };

	stage_sges(of_ex(ex), &sge, 1);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count,
			    const struct ibv_sge *sges)
{
	stage_sges(of_ex(ex), sges, count);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	stage_bytes(of_ex(ex), addr, len);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count,
				    const struct ibv_data_buf *bufs)
{
	for (size_t i = 0; i < count; i++)
		stage_bytes(of_ex(ex), bufs[i].addr, bufs[i].length);
}

void wf_efa_post_fill(struct ibv_qp_ex *ex, uint64_t ops)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
}

/* -- ibv_post_send() and ibv_post_recv() ------------------------------------ */

static void stage_wr(struct wf_efa_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
		/* libefa's offers RDMA by ibv_wr_*() alone. */
		qp->error = EINVAL;
		return;
	}
	stage(qp, WF_NIC_OP_SEND, wr->wr_id, wr->send_flags);
	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		stage_imm(qp, wr->imm_data);
	stage_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
		   wr->wr.ud.remote_qkey);
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		stage_sges(qp, wr->sg_list, (size_t)wr->num_sge);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++)
		stage_bytes(qp, (const void *)(uintptr_t)wr->sg_list[i].addr,
			    wr->sg_list[i].length);
}

/* Requests before the one that is refused are posted. */
static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct wf_efa_qp *qp = wf_efa_qp_of(base);
	struct ibv_send_wr *first = wr;
	uint32_t good = 0;
	int error, ret = 0;

	wr_start(&qp->ex);
	while (wr && !qp->error) {
		good = qp->count;
		stage_wr(qp, wr);
		if (!qp->error)
			wr = wr->next;
	}
	error = qp->error;
	if (error) {
		*bad = wr;
		qp->count = good;
	}
	if (qp->count)
		ret = submit_all(qp);
	if (ret && !error) {
		*bad = first;
		error = ret;
	}
	wf_base_lock_drop(&qp->sq_lock);
	return error;
}

/* Under the ring_lock of recv_cq. */
static int post_one(struct wf_efa_qp *qp, const struct ibv_recv_wr *wr)
{
	struct wf_nic_sge sge = { .len = 0 };
	struct wf_efa_receive *receive = NULL;
	uint64_t wr_id = wr->wr_id;
	int ret;

	if (wr->num_sge < 0 || wr->num_sge > 1)
		return EINVAL;
	if (wr->num_sge) {
		sge.addr = (void *)(uintptr_t)wr->sg_list[0].addr;
		sge.len = wr->sg_list[0].length;
		sge.lkey = wr->sg_list[0].lkey;
	}
	if (qp->ud) {
		if (sge.len < WF_EFA_GRH)
			return EINVAL;
		if (qp->receive_free == WF_EFA_QUEUE_MAX)
			return ENOMEM;
		wr_id = qp->receive_free;
		receive = &qp->receives[wr_id];
		receive->wr_id = wr->wr_id;
		receive->at = sge.addr;
		sge.addr = receive->at + WF_EFA_GRH;
		sge.len -= WF_EFA_GRH;
	}
	/* The length in a descriptor has 16 bits, and no message is longer. */
	if (sge.len > UINT16_MAX)
		sge.len = UINT16_MAX;
	/* Each with its doorbell, a store: none waits for one that is refused. */
	ret = wf_nic_post_recv(qp->ring, wr_id, &sge, false);
	if (!ret && receive)
		qp->receive_free = receive->next;
	return errno_of(ret);
}

static int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct wf_efa_qp *qp = wf_efa_qp_of(base);
	int ret = 0;

	if (base->state == IBV_QPS_RESET || base->state == IBV_QPS_ERR ||
	    !wf_efa_device_has(qp->nic)) {
		*bad = wr;
		return EINVAL;
	}
	wf_base_lock_take(ring_lock(base->recv_cq));
	for (; wr && !ret; wr = wr->next) {
		ret = post_one(qp, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	wf_base_lock_drop(ring_lock(base->recv_cq));
	return ret;
}

void wf_efa_post_table(struct verbs_context *verbs)
{
	verbs->context.ops.post_send = post_send;
	verbs->context.ops.post_recv = post_recv;
}
