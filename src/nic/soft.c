/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and completions of devices in software.
 */
#include "nic/soft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/wqe.h"
#include "os/poll.h"
#include "queue/wake.h"

/* -- completions ------------------------------------------------------------ */

struct wf_nic_stuck *wf_nic_soft_places(const struct wf_nic_qp *qp)
{
	return calloc(qp->sq_ids.count + qp->rq_ids.count,
		      sizeof(struct wf_nic_stuck));
}

/* Where the completion of a request waits: first those of sends, then of
 * receives. */
static struct wf_nic_stuck *place_of(struct wf_nic_qp *qp,
				     struct wf_nic_stuck *places,
				     const struct wf_nic_cqe *cqe)
{
	if (wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_SQ)
		return &places[wf_queue_ids_index(&qp->sq_ids, cqe->req_id)];
	return &places[qp->sq_ids.count +
		       wf_queue_ids_index(&qp->rq_ids, cqe->req_id)];
}

static void unstick(struct wf_nic_stuck *stuck)
{
	wf_base_list_unlink(&stuck->link);
	stuck->cq = NULL;
}

void wf_nic_soft_wake(struct wf_nic_soft *soft)
{
	if (soft->user_fd >= 0 && wf_queue_wake_needed(&soft->user_asleep))
		wf_os_eventfd_write(soft->user_fd, 1);
}

void wf_nic_soft_complete(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			  struct wf_nic_stuck *places,
			  const struct wf_nic_cqe *cqe)
{
	bool sent = wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_SQ;
	struct wf_nic_cq *cq = sent ? qp->send_cq : qp->recv_cq;
	struct wf_nic_stuck *stuck;

	/* Keep the order: behind those that already wait. */
	if (wf_base_list_empty(&soft->stuck) && !wf_nic_cq_push(cq, cqe)) {
		soft->news = true;
		if (!soft->tells)
			wf_nic_soft_tell(soft);
		return;
	}
	stuck = place_of(qp, places, cqe);
	if (stuck->cq) {
		wf_warn("queue pair %u: two requests with one id", qp->num);
		return;
	}
	wf_nic_count(&soft->nic.counters->cq_full, 1);
	stuck->cq = cq;
	stuck->cqe = *cqe;
	wf_base_list_add_tail(&soft->stuck, &stuck->link);
}

void wf_nic_soft_unstick(struct wf_nic_soft *soft)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &soft->stuck) {
		struct wf_nic_stuck *stuck =
			wf_container_of(pos, struct wf_nic_stuck, link);

		if (wf_nic_cq_push(stuck->cq, &stuck->cqe))
			continue;
		unstick(stuck);
		wf_nic_soft_wake(soft);
	}
}

void wf_nic_soft_drop(struct wf_nic_soft *soft, struct wf_nic_qp *qp)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &soft->stuck) {
		struct wf_nic_stuck *stuck =
			wf_container_of(pos, struct wf_nic_stuck, link);

		if (stuck->cqe.qpn == qp->num)
			unstick(stuck);
	}
}

void wf_nic_soft_done(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
		      struct wf_nic_stuck *places, uint16_t req_id,
		      enum wf_nic_opcode op, enum wf_nic_status status)
{
	const struct wf_nic_cqe cqe = {
		.req_id = req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_SQ, op, false),
		.qpn = qp->num,
	};

	wf_nic_count(&soft->nic.counters->tx_done, 1);
	if (status != WF_NIC_OK)
		wf_nic_count(&soft->nic.counters->tx_failed, 1);
	wf_nic_soft_complete(soft, qp, places, &cqe);
}

void wf_nic_soft_done_run(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			  struct wf_nic_stuck *places, uint16_t req_id,
			  enum wf_nic_status status, uint32_t count,
			  uint32_t good)
{
	const struct wf_nic_cqe cqe = {
		.req_id = req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_SQ, WF_NIC_OP_RUN, false),
		.qpn = qp->num,
		.length = (uint16_t)good,
	};

	wf_nic_count(&soft->nic.counters->tx_done, count);
	if (status != WF_NIC_OK)
		wf_nic_count(&soft->nic.counters->tx_failed, count - good);
	wf_nic_soft_complete(soft, qp, places, &cqe);
}

/* -- sleeping --------------------------------------------------------------- */

static bool has_news(struct wf_nic_soft *soft, const struct wf_nic_cq *cq)
{
	return (cq && wf_queue_cq_ready(&cq->ring)) ||
	       wf_nic_has_placed(&soft->nic);
}

int wf_nic_soft_wait_begin(struct wf_nic_soft *soft, struct wf_nic_cq *cq,
			   uint64_t (*next)(struct wf_nic *nic),
			   uint64_t *deadline_ns)
{
	*deadline_ns = UINT64_MAX;
	/* Before the timers are looked at: a kick that comes after that wakes
	 * us, one that comes before has set them. */
	if (soft->user_fd >= 0)
		wf_queue_wake_arm(&soft->user_asleep);
	if (next) {
		wf_base_lock_take(&soft->nic.lock);
		*deadline_ns = next(&soft->nic);
		wf_base_lock_drop(&soft->nic.lock);
	}
	if (*deadline_ns && !has_news(soft, cq))
		return 0;
	wf_queue_wake_disarm(&soft->user_asleep);
	return -EAGAIN;
}

void wf_nic_soft_wait_end(struct wf_nic_soft *soft)
{
	uint64_t count;

	if (soft->user_fd < 0)
		return;
	wf_queue_wake_disarm(&soft->user_asleep);
	wf_os_eventfd_read(soft->user_fd, &count);
}

/* -- requests --------------------------------------------------------------- */

static enum wf_nic_status read_sges(struct wf_nic *nic,
				    const struct wf_nic_tx_wqe *wqe,
				    struct wf_nic_request *req)
{
	if (wqe->length > WF_NIC_SGE_MAX)
		return WF_NIC_UNSUPP_OP;
	req->sges = (uint8_t)wqe->length;
	for (unsigned i = 0; i < req->sges; i++) {
		const struct wf_nic_tx_sge *sge = &wqe->sgl[i];
		struct wf_nic_local *to = &req->sge[i];
		uint32_t most = nic->caps.max_msg;

		/* The first piece of a longer one is a message of its own. */
		if (i && nic->caps.max_placed && req->len)
			most = nic->caps.max_placed;
		to->addr = wf_nic_wqe_addr(sge->addr_lo, sge->addr_hi);
		to->len = sge->length;
		to->lkey = sge->lkey;
		if (sge->length > most - req->len)
			return WF_NIC_LOCAL_LEN;
		req->len += sge->length;
		if (sge->length &&
		    !wf_nic_mr_local(&nic->mrs, to->lkey, to->addr, to->len, 0))
			return WF_NIC_BAD_LKEY;
	}
	return WF_NIC_OK;
}

static enum wf_nic_status read_rdma(struct wf_nic *nic,
				    const struct wf_nic_tx_wqe *wqe,
				    struct wf_nic_request *req)
{
	const struct wf_nic_tx_remote *remote = &wqe->rdma.remote;
	const struct wf_nic_tx_sge *local = &wqe->rdma.local;
	bool reads = req->op == WF_NIC_OP_READ;

	if (wqe->length != 1 || (reads && req->has_imm))
		return WF_NIC_UNSUPP_OP;
	if (local->length != remote->length ||
	    local->length > nic->caps.max_rdma)
		return WF_NIC_LOCAL_LEN;
	req->sges = 1;
	req->sge[0].addr = wf_nic_wqe_addr(local->addr_lo, local->addr_hi);
	req->sge[0].len = local->length;
	req->sge[0].lkey = local->lkey;
	req->len = local->length;
	req->raddr = wf_nic_wqe_addr(remote->addr_lo, remote->addr_hi);
	req->rkey = remote->rkey;
	req->user_key = wqe->soft & WF_NIC_TX_USER_KEY;
	if (req->user_key && req->has_imm)
		return WF_NIC_UNSUPP_OP;
	if (req->len &&
	    !wf_nic_mr_local(&nic->mrs, local->lkey, req->sge[0].addr, req->len,
			     reads ? WF_NIC_LOCAL_WRITE : 0))
		return WF_NIC_BAD_LKEY;
	return WF_NIC_OK;
}

static enum wf_nic_status decode(struct wf_nic *nic,
				 const struct wf_nic_tx_wqe *wqe,
				 struct wf_nic_request *req)
{
	const uint8_t once = WF_NIC_TX_FIRST | WF_NIC_TX_LAST;
	unsigned code = wqe->ctrl1 & WF_NIC_TX_OP_MASK;
	bool inlined = wqe->ctrl1 & WF_NIC_TX_INLINE;

	if (!(wqe->ctrl1 & WF_NIC_TX_META) || (wqe->ctrl2 & once) != once ||
	    code > WF_NIC_OP_WRITE || (inlined && code != WF_NIC_OP_SEND))
		return WF_NIC_UNSUPP_OP;
	req->op = (uint8_t)code;
	req->has_imm = wqe->ctrl1 & WF_NIC_TX_HAS_IMM;
	req->imm = wqe->imm;
	req->dst_qpn = wqe->dest_qpn;
	req->ah = wqe->ah;
	req->qkey = wqe->qkey;
	if (code != WF_NIC_OP_SEND)
		return read_rdma(nic, wqe, req);
	if (!inlined)
		return read_sges(nic, wqe, req);
	if (wqe->length > WF_NIC_INLINE_MAX)
		return WF_NIC_LOCAL_LEN;
	req->inlined = true;
	req->len = wqe->length;
	memcpy(req->data, wqe->inline_data, sizeof(req->data));
	return WF_NIC_OK;
}

enum wf_nic_status wf_nic_soft_take(struct wf_nic_soft *soft,
				    struct wf_nic_qp *qp,
				    struct wf_nic_request *req)
{
	unsigned phase = wf_queue_work_phase(&qp->sq_work);
	enum wf_nic_status status;
	struct wf_nic_tx_wqe wqe;

	wf_queue_work_take(&qp->sq_work, &wqe);
	/* Not the bytes behind it, which are filled in as needed. */
	memset(req, 0, offsetof(struct wf_nic_request, sge));
	req->req_id = wqe.req_id;
	wf_nic_count(&soft->nic.counters->tx_msgs, 1);
	status = (wqe.ctrl2 & WF_NIC_TX_PHASE) != phase ?
			 WF_NIC_UNSUPP_OP :
			 decode(&soft->nic, &wqe, req);
	if (status == WF_NIC_OK && !wf_nic_ah_find(&soft->nic, req->ah))
		status = WF_NIC_BAD_AH;
	return status;
}

unsigned int wf_nic_soft_next_op(const struct wf_nic_qp *qp)
{
	struct wf_queue_work look = qp->sq_work;
	struct wf_nic_tx_wqe wqe;

	wf_queue_work_take(&look, &wqe);
	return wqe.ctrl1 & WF_NIC_TX_OP_MASK;
}

/* -- taking a queue pair down ----------------------------------------------- */

void wf_nic_soft_flush_recv(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			    struct wf_nic_stuck *places,
			    const struct wf_nic_rx_desc *desc)
{
	const struct wf_nic_cqe cqe = {
		.req_id = desc->req_id,
		.status = WF_NIC_FLUSHED,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_SEND, false),
		.qpn = qp->num,
		.ah = WF_NIC_AH_UNKNOWN,
	};

	wf_nic_soft_complete(soft, qp, places, &cqe);
}

void wf_nic_soft_flush(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
		       struct wf_nic_stuck *places)
{
	int ready = wf_queue_work_poll(&qp->sq_work);

	for (; ready > 0; ready--) {
		struct wf_nic_tx_wqe wqe;

		wf_queue_work_take(&qp->sq_work, &wqe);
		wf_nic_soft_done(soft, qp, places, wqe.req_id, WF_NIC_OP_SEND,
				 WF_NIC_FLUSHED);
	}
	ready = qp->rq.ring ? wf_queue_work_poll(&qp->rq_work) : 0;
	for (; ready > 0; ready--) {
		struct wf_nic_rx_desc desc;

		wf_queue_work_take(&qp->rq_work, &desc);
		wf_nic_soft_flush_recv(soft, qp, places, &desc);
	}
}
