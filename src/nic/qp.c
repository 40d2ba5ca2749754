/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: rings, request ids, and the posts. A post stages one descriptor
 * and passes it to the ring; errors that only the device can detect (keys,
 * lengths, handles) are reported as completions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/ops.h"
#include "nic/wqe.h"

#define ID_BITS 16

/* The least power of two from @n on; @n is at most WF_QUEUE_ENTRIES_MAX. */
static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 4; /* 16-byte descriptors fill a line */

	while (p < n)
		p <<= 1;
	return p;
}

struct wf_nic_qp *wf_nic_qp_find(struct wf_nic *nic, uint16_t num)
{
	return wf_queue_ids_live(&nic->qpns, num) ?
		       nic->qps[wf_queue_ids_index(&nic->qpns, num)] :
		       NULL;
}

static int ring_init(struct wf_queue_sub *sub, struct wf_queue_work *work,
		     void *memory, _Atomic uint32_t *doorbell, uint32_t entries,
		     uint32_t stride, const struct wf_nic *nic)
{
	uint32_t max_batch = nic->caps.max_batch;
	const struct wf_queue_sub_attr attr = {
		.ring = memory,
		.doorbell = doorbell,
		.entries = entries,
		.stride = stride,
		.max_batch = max_batch < entries ? max_batch : entries,
		.copy = nic->ops->copy,
	};
	int ret = wf_queue_sub_init(sub, &attr);

	return ret ? ret : wf_queue_work_init(work, &attr);
}

/* The device's memory, or ours if it has none. */
static int get_rings(struct wf_nic_qp *qp, uint32_t sq, uint32_t rq,
		     struct wf_nic_rings *rings)
{
	size_t sq_bytes = sq * sizeof(struct wf_nic_tx_wqe);
	size_t rq_bytes = rq * sizeof(struct wf_nic_rx_desc);

	if (qp->nic->ops->qp_rings)
		return qp->nic->ops->qp_rings(qp->nic, qp, sq, rq, rings);
	qp->memory = aligned_alloc(WF_LINE, sq_bytes + rq_bytes);
	if (!qp->memory)
		return -ENOMEM;
	memset(qp->memory, 0, sq_bytes + rq_bytes);
	*rings = (struct wf_nic_rings){
		.sq = qp->memory,
		.rq = (char *)qp->memory + sq_bytes,
		.sq_doorbell = &qp->sq_doorbell,
		.rq_doorbell = &qp->rq_doorbell,
	};
	return 0;
}

static int queues_init(struct wf_nic_qp *qp, uint32_t sq, uint32_t rq)
{
	struct wf_nic_rings rings;
	int ret = get_rings(qp, sq, rq, &rings);

	if (ret)
		return ret;
	qp->sq_wr_ids = calloc(sq, sizeof(*qp->sq_wr_ids));
	qp->sq_unringed = calloc(sq, sizeof(*qp->sq_unringed));
	if (!qp->sq_wr_ids || !qp->sq_unringed)
		return -ENOMEM;
	ret = wf_queue_ids_init(&qp->sq_ids, sq, ID_BITS);
	if (!ret)
		ret = ring_init(&qp->sq, &qp->sq_work, rings.sq,
				rings.sq_doorbell, sq,
				sizeof(struct wf_nic_tx_wqe), qp->nic);
	if (ret || !rq)
		return ret;
	qp->rq_wr_ids = calloc(rq, sizeof(*qp->rq_wr_ids));
	qp->rq_from = calloc(rq, sizeof(*qp->rq_from));
	if (!qp->rq_wr_ids || !qp->rq_from)
		return -ENOMEM;
	ret = wf_queue_ids_init(&qp->rq_ids, rq, ID_BITS);
	if (ret)
		return ret;
	return ring_init(&qp->rq, &qp->rq_work, rings.rq, rings.rq_doorbell, rq,
			 sizeof(struct wf_nic_rx_desc), qp->nic);
}

static void queues_fini(struct wf_nic_qp *qp)
{
	wf_queue_ids_fini(&qp->rq_ids);
	wf_queue_ids_fini(&qp->sq_ids);
	free(qp->rq_from);
	free(qp->rq_wr_ids);
	free(qp->sq_unringed);
	free(qp->sq_wr_ids);
	free(qp->memory);
	free(qp);
}

static int join_locked(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	uint32_t num = wf_queue_ids_get(&nic->qpns);
	int ret;

	if (num == WF_QUEUE_ID_NONE)
		return -ENOSPC;
	qp->num = (uint16_t)num;
	nic->qps[wf_queue_ids_index(&nic->qpns, num)] = qp;
	ret = nic->ops->qp_create(nic, qp);
	if (ret)
		wf_queue_ids_put(&nic->qpns, num);
	else
		nic->had_qp = true;
	return ret;
}

int wf_nic_qp_create(struct wf_nic *nic, const struct wf_nic_qp_attr *attr,
		     struct wf_nic_qp **out)
{
	struct wf_nic_qp *qp;
	uint32_t sq, rq;
	int ret;

	if (!attr->send_cq || !attr->recv_cq ||
	    attr->sq_entries > nic->caps.max_queue ||
	    attr->rq_entries > nic->caps.max_queue)
		return -EINVAL;
	sq = power_of_two(attr->sq_entries);
	rq = attr->rq_entries ? power_of_two(attr->rq_entries) : 0;
	qp = aligned_alloc(64, (sizeof(*qp) + 63) & ~(size_t)63);
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	qp->nic = nic;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->qkey = attr->qkey;
	qp->rnr_retry = attr->rnr_retry;
	qp->unsolicited = attr->unsolicited;
	qp->hear = attr->hear;
	qp->hear_arg = attr->hear_arg;
	ret = queues_init(qp, sq, rq);
	if (ret)
		goto err;
	wf_base_lock_take(&nic->lock);
	ret = join_locked(nic, qp);
	if (!ret) {
		qp->send_cq->users++;
		qp->recv_cq->users++;
	}
	wf_base_lock_drop(&nic->lock);
	if (ret)
		goto err;
	*out = qp;
	return 0;

err:
	queues_fini(qp);
	return ret;
}

void wf_nic_qp_note_from(struct wf_nic_qp *qp, uint16_t req_id,
			 const struct wf_nic_addr *from)
{
	uint32_t at = wf_queue_ids_index(&qp->rq_ids, req_id);

	if (at < qp->rq_ids.count)
		qp->rq_from[at] = *from;
}

void wf_nic_qp_note_socket(struct wf_nic_qp *qp, uint16_t req_id,
			   const struct wf_addr *from)
{
	struct wf_nic_addr addr;

	wf_nic_addr_of_socket(&addr, from);
	wf_nic_qp_note_from(qp, req_id, &addr);
}

uint16_t wf_nic_qp_num(const struct wf_nic_qp *qp)
{
	return qp->num;
}

void wf_nic_qp_modify(struct wf_nic_qp *qp, uint32_t qkey, uint8_t rnr_retry)
{
	wf_base_lock_take(&qp->nic->lock);
	qp->qkey = qkey;
	qp->rnr_retry = rnr_retry;
	wf_base_lock_drop(&qp->nic->lock);
}

void wf_nic_qp_strangers(struct wf_nic_qp *qp, bool welcome)
{
	wf_base_lock_take(&qp->nic->lock);
	qp->no_strangers = !welcome;
	wf_base_lock_drop(&qp->nic->lock);
}

void wf_nic_qp_flush(struct wf_nic_qp *qp)
{
	struct wf_nic *nic = qp->nic;

	if (qp->flushed)
		return;
	wf_nic_qp_ring(qp);
	wf_base_lock_take(&nic->lock);
	qp->flushed = true;
	nic->ops->qp_flush(nic, qp);
	wf_base_lock_drop(&nic->lock);
}

void wf_nic_qp_destroy(struct wf_nic_qp *qp)
{
	struct wf_nic *nic = qp->nic;

	wf_nic_qp_flush(qp);
	wf_base_lock_take(&nic->lock);
	nic->ops->qp_destroy(nic, qp);
	/* The generation increases, so completions that are left in the queues,
	 * or packets on their way from a peer, no longer match. */
	wf_queue_ids_put(&nic->qpns, qp->num);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	wf_base_lock_drop(&nic->lock);
	queues_fini(qp);
}

void wf_nic_qp_ring(struct wf_nic_qp *qp)
{
	bool told = wf_queue_sub_pending(&qp->sq) || qp->unkicked;

	qp->unkicked = false;

	wf_queue_sub_ring(&qp->sq);
	if (qp->rq.ring)
		wf_queue_sub_ring(&qp->rq);
	if (told && qp->nic->ops->kick)
		qp->nic->ops->kick(qp->nic, qp);
}

static struct wf_nic_ring ring_of(const struct wf_queue_sub *sub)
{
	return (struct wf_nic_ring){
		.at = sub->ring,
		.stride = 1u << sub->shift,
		.entries = sub->ring ? sub->mask + 1 : 0,
		.max_batch = sub->batch,
		.doorbell = sub->doorbell,
	};
}

void wf_nic_qp_export(struct wf_nic_qp *qp, struct wf_nic_ring *sq,
		      struct wf_nic_ring *rq)
{
	*sq = ring_of(&qp->sq);
	*rq = ring_of(&qp->rq);
}

bool wf_nic_qp_watch(struct wf_nic_qp *qp)
{
	uint32_t bell =
		atomic_load_explicit(qp->sq.doorbell, memory_order_acquire);

	if (wf_likely(bell == qp->watched))
		return false;
	qp->watched = bell;
	if (qp->nic->ops->kick)
		qp->nic->ops->kick(qp->nic, qp);
	return true;
}

uint32_t wf_nic_qp_send_room(const struct wf_nic_qp *qp)
{
	return qp->sq_ids.count - qp->sq_ids.in_use;
}

uint32_t wf_nic_qp_recv_room(const struct wf_nic_qp *qp)
{
	return qp->rq.ring ? qp->rq.mask + 1 - wf_queue_sub_used(&qp->rq) : 0;
}

/* -- posts ------------------------------------------------------------------ */

static int get_id(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		  bool unringed, uint32_t *id)
{
	uint32_t at;

	if (wf_unlikely(qp->flushed))
		return -ESHUTDOWN;
	*id = wf_queue_ids_get(&qp->sq_ids);
	if (wf_unlikely(*id == WF_QUEUE_ID_NONE)) {
		/* Requests that were posted with MORE must not wait for
		 * ever. */
		wf_nic_qp_ring(qp);
		return -EAGAIN;
	}
	at = wf_queue_ids_index(&qp->sq_ids, *id);
	qp->sq_wr_ids[at] = wr->wr_id;
	qp->sq_unringed[at] = unringed;
	return 0;
}

/* A request id and the common half of the descriptor. */
static int stage(struct wf_nic_qp *qp, struct wf_nic_tx_wqe *wqe,
		 const struct wf_nic_wr *wr, unsigned op, uint16_t length)
{
	bool imm = wr->flags & WF_NIC_WR_IMM;
	uint32_t id;
	int ret = get_id(qp, wr, false, &id);

	if (wf_unlikely(ret))
		return ret;
	wf_nic_wqe_meta(
		wqe,
		&(struct wf_nic_wqe_head){
			.req_id = (uint16_t)id,
			.ctrl1 = (uint8_t)(op | (imm ? WF_NIC_TX_HAS_IMM : 0)),
			.phase = wf_queue_sub_phase(&qp->sq),
			.dest_qpn = wr->qpn,
			.length = length,
			.ah = wr->ah,
			.imm = imm ? wr->imm : 0,
			.qkey = wr->qkey });
	return 0;
}

/* There are as many ids as ring entries, so the ring has room. */
static int post(struct wf_nic_qp *qp, const struct wf_nic_tx_wqe *wqe,
		uint32_t flags)
{
	uint32_t rings = qp->sq.rings;
	int ret = wf_queue_sub_post64(&qp->sq, wqe, flags & WF_NIC_WR_MORE);

	if (qp->sq.rings != rings && qp->nic->ops->kick)
		qp->nic->ops->kick(qp->nic, qp);
	return ret;
}

/* Without a descriptor. More than 0: enum wf_nic_run. -ENOMEM: it is to go by the ring. */
static int hand_over(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_sge *sge, int count, uint32_t *id)
{
	int ret;

	/* Behind what was posted with MORE. */
	if (wf_unlikely(wf_queue_sub_pending(&qp->sq)))
		return -ENOMEM;
	ret = get_id(qp, wr, true, id);
	if (wf_unlikely(ret))
		return ret;
	ret = qp->nic->ops->send(qp->nic, qp, (uint16_t)*id, wr, sge, count);
	if (wf_unlikely(ret < 0))
		wf_queue_ids_put(&qp->sq_ids, *id);
	else if (wr->flags & WF_NIC_WR_MORE)
		qp->unkicked = true;
	return ret;
}

int wf_nic_post_send(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_sge *sge, int count)
{
	struct wf_nic_tx_wqe wqe WF_ALIGNED(64);
	uint32_t id;
	int ret;

	if (count < 0 || count > WF_NIC_SGE_MAX)
		return -EINVAL;
	if (qp->nic->caps.takes_sends) {
		ret = hand_over(qp, wr, sge, count, &id);
		if (wf_likely(ret != -ENOMEM))
			return ret > 0 ? 0 : ret;
		/* The ring has a place for it. */
	}
	ret = stage(qp, &wqe, wr, WF_NIC_OP_SEND, (uint16_t)count);
	if (ret)
		return ret;
	for (int i = 0; i < WF_NIC_SGE_MAX; i++) {
		if (i < count)
			wf_nic_wqe_sge(&wqe.sgl[i], (uintptr_t)sge[i].addr,
				       sge[i].len, sge[i].lkey);
		else
			wf_nic_wqe_put(&wqe.sgl[i], 0, 0);
	}
	return post(qp, &wqe, wr->flags);
}

int wf_nic_post_run(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		    const struct wf_nic_sge *sge, uint32_t *id)
{
	struct wf_nic_wr run = *wr;

	run.flags |= WF_NIC_WR_RUN;
	return hand_over(qp, &run, sge, 1, id);
}

bool wf_nic_extend_run(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		       uint32_t id, uint32_t len)
{
	/* Behind what was posted with MORE. */
	if (wf_unlikely(wf_queue_sub_pending(&qp->sq)) ||
	    !qp->nic->ops->extend(qp->nic, qp, (uint16_t)id, wr, len))
		return false;
	if (wr->flags & WF_NIC_WR_MORE)
		qp->unkicked = true;
	return true;
}

int wf_nic_post_inline(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		       const void *buf, size_t len)
{
	struct wf_nic_tx_wqe wqe WF_ALIGNED(64);
	int ret;

	if (len > WF_NIC_INLINE_MAX)
		return -EINVAL;
	ret = stage(qp, &wqe, wr, WF_NIC_OP_SEND | WF_NIC_TX_INLINE,
		    (uint16_t)len);
	if (ret)
		return ret;
	memset(wqe.inline_data, 0, sizeof(wqe.inline_data));
	if (len)
		memcpy(wqe.inline_data, buf, len);
	return post(qp, &wqe, wr->flags);
}

static int post_rdma(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_remote *remote,
		     const struct wf_nic_sge *sge, enum wf_nic_opcode op)
{
	struct wf_nic_tx_wqe wqe WF_ALIGNED(64);
	int ret;

	if (remote->user_key &&
	    (wr->flags & WF_NIC_WR_IMM || !qp->nic->caps.user_keys))
		return -EINVAL;
	ret = stage(qp, &wqe, wr, op, 1);
	if (ret)
		return ret;
	if (remote->user_key) {
		wqe.soft = WF_NIC_TX_USER_KEY;
		wqe.imm = remote->rkey_hi;
	}
	wf_nic_wqe_remote(&wqe.rdma.remote, remote->addr, sge->len,
			  remote->rkey);
	wf_nic_wqe_sge(&wqe.rdma.local, (uintptr_t)sge->addr, sge->len,
		       sge->lkey);
	return post(qp, &wqe, wr->flags);
}

int wf_nic_post_read(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_remote *from,
		     const struct wf_nic_sge *sge)
{
	if (wr->flags & WF_NIC_WR_IMM)
		return -EINVAL;
	return post_rdma(qp, wr, from, sge, WF_NIC_OP_READ);
}

int wf_nic_post_write(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		      const struct wf_nic_remote *to,
		      const struct wf_nic_sge *sge)
{
	return post_rdma(qp, wr, to, sge, WF_NIC_OP_WRITE);
}

int wf_nic_post_recv(struct wf_nic_qp *qp, uint64_t wr_id,
		     const struct wf_nic_sge *sge, bool more)
{
	struct wf_nic_rx_desc desc;
	uint32_t id;

	if (wf_unlikely(qp->flushed))
		return -ESHUTDOWN;
	if (!qp->rq.ring || sge->len > UINT16_MAX)
		return -EINVAL;
	id = wf_queue_ids_get(&qp->rq_ids);
	if (id == WF_QUEUE_ID_NONE) {
		wf_queue_sub_ring(&qp->rq);
		return -EAGAIN;
	}
	qp->rq_wr_ids[wf_queue_ids_index(&qp->rq_ids, id)] = wr_id;
	wf_nic_rx_fill(&desc, (uint16_t)id, (uintptr_t)sge->addr,
		       (uint16_t)sge->len, sge->lkey);
	return wf_queue_sub_post16(&qp->rq, &desc, more);
}
