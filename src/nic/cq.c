/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: entries of the device become completions of the user, if
 * their queue pair exists and their request id is outstanding.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/ops.h"
#include "nic/wqe.h"

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = WF_QUEUE_ENTRIES_MIN;

	while (p < n)
		p <<= 1;
	return p;
}

static int get_ring(struct wf_nic *nic, uint32_t entries, void **ring)
{
	size_t bytes = entries * sizeof(struct wf_nic_cqe);

	if (nic->ops->cq_ring)
		return nic->ops->cq_ring(nic, entries, ring);
	/* A multiple of a cache line, because there are at least two
	 * entries. */
	*ring = aligned_alloc(WF_LINE, bytes);
	if (!*ring)
		return -ENOMEM;
	memset(*ring, 0, bytes);
	return 0;
}

static void put_ring(struct wf_nic *nic, void *ring)
{
	if (nic->ops->cq_free)
		nic->ops->cq_free(nic, ring);
	else
		free(ring);
}

int wf_nic_cq_create(struct wf_nic *nic, uint32_t entries,
		     struct wf_nic_cq **out)
{
	struct wf_queue_cq_attr attr = {
		.stride = sizeof(struct wf_nic_cqe),
		.phase_word = 0,
		.phase_bit = WF_NIC_CQE_PHASE_BIT,
	};
	struct wf_nic_cq *cq;
	int ret;

	if (!entries || entries > WF_QUEUE_ENTRIES_MAX)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	attr.entries = power_of_two(entries);
	cq->nic = nic;
	ret = get_ring(nic, attr.entries, &cq->memory);
	if (ret)
		goto err_cq;
	attr.ring = cq->memory;
	attr.credit = &cq->credit;
	ret = wf_queue_cq_init(&cq->ring, &attr);
	if (!ret)
		ret = wf_queue_cqw_init(&cq->writer, &attr);
	if (ret)
		goto err_memory;
	*out = cq;
	return 0;

err_memory:
	put_ring(nic, cq->memory);
err_cq:
	free(cq);
	return ret;
}

bool wf_nic_cq_is_used(struct wf_nic_cq *cq)
{
	bool used;

	wf_base_lock_take(&cq->nic->lock);
	used = cq->users;
	wf_base_lock_drop(&cq->nic->lock);
	return used;
}

int wf_nic_cq_destroy(struct wf_nic_cq *cq)
{
	if (wf_nic_cq_is_used(cq))
		return -EBUSY;
	put_ring(cq->nic, cq->memory);
	free(cq);
	return 0;
}

int wf_nic_cq_push(struct wf_nic_cq *cq, const struct wf_nic_cqe *cqe)
{
	int ret = wf_queue_cqw_push(&cq->writer, cqe);

	if (wf_unlikely(cq->armed) && !ret) {
		cq->armed = false;
		cq->notify(cq->notify_arg);
	}
	return ret;
}

void wf_nic_cq_notify(struct wf_nic_cq *cq, void (*notify)(void *arg),
		      void *arg)
{
	wf_base_lock_take(&cq->nic->lock);
	cq->armed = false;
	cq->notify = notify;
	cq->notify_arg = arg;
	wf_base_lock_drop(&cq->nic->lock);
}

void wf_nic_cq_arm(struct wf_nic_cq *cq)
{
	wf_base_lock_take(&cq->nic->lock);
	cq->armed = cq->notify != NULL;
	wf_base_lock_drop(&cq->nic->lock);
}

void wf_nic_cq_export(struct wf_nic_cq *cq, struct wf_nic_ring *ring)
{
	wf_base_lock_take(&cq->nic->lock);
	cq->writer.credit = NULL;
	wf_base_lock_drop(&cq->nic->lock);
	*ring = (struct wf_nic_ring){
		.at = cq->memory,
		.stride = sizeof(struct wf_nic_cqe),
		.entries = cq->ring.mask + 1u,
		.doorbell = &cq->credit,
	};
}

void wf_nic_cq_watch(struct wf_nic_cq *cq)
{
	uint32_t bell = atomic_load_explicit(&cq->credit, memory_order_acquire);

	if (wf_likely(bell == cq->watched))
		return;
	cq->watched = bell;
	if (!(bell >> 31))
		return;
	wf_base_lock_take(&cq->nic->lock);
	/* Completions that came before the request was seen count, too. */
	if (cq->notify && cq->writer.written != (uint16_t)bell)
		cq->notify(cq->notify_arg);
	else
		cq->armed = cq->notify != NULL;
	wf_base_lock_drop(&cq->nic->lock);
}

/* Finds the request that an entry completes, and frees its id. */
static bool claim(struct wf_nic_qp *qp, const struct wf_nic_cqe *cqe,
		  struct wf_nic_wc *wc)
{
	bool recv = wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_RQ;
	struct wf_queue_ids *ids = recv ? &qp->rq_ids : &qp->sq_ids;
	uint64_t *wr_ids = recv ? qp->rq_wr_ids : qp->sq_wr_ids;

	if (!ids->slots || !wf_queue_ids_live(ids, cqe->req_id))
		return false;
	wc->wr_id = wr_ids[wf_queue_ids_index(ids, cqe->req_id)];
	/* Copied: the next receive with this id may be posted at once. */
	if (recv && cqe->ah == WF_NIC_AH_UNKNOWN)
		wc->from = qp->rq_from[wf_queue_ids_index(ids, cqe->req_id)];
	wf_queue_ids_put(ids, cqe->req_id);
	if (recv)
		wf_queue_sub_done(&qp->rq, 1);
	else if (!qp->sq_unringed[wf_queue_ids_index(ids, cqe->req_id)])
		wf_queue_sub_done(&qp->sq, 1);
	return true;
}

static bool decode(struct wf_nic_cq *cq, const struct wf_nic_cqe *cqe,
		   struct wf_nic_wc *wc)
{
	bool recv = wf_nic_cqe_qtype(cqe) == WF_NIC_CQE_RQ;
	struct wf_nic_qp *qp = wf_nic_qp_find(cq->nic, cqe->qpn);

	if (!qp)
		return false;
	if (recv && wf_unlikely(cqe->flags & WF_NIC_CQE_UNSOLICITED))
		*wc = (struct wf_nic_wc){ .wr_id = 0 };
	else if (!claim(qp, cqe, wc))
		return false;
	wc->len = cqe->length;
	if (wf_unlikely(wf_nic_cqe_op(cqe) == WF_NIC_OP_WRITE))
		wc->len |= (uint32_t)cqe->length_hi << 16;
	wc->imm = cqe->imm;
	wc->qpn = cqe->qpn;
	wc->src_qpn = cqe->src_qpn;
	wc->ah = cqe->ah;
	wc->status = cqe->status;
	wc->op = (uint8_t)wf_nic_cqe_op(cqe);
	wc->flags =
		(recv ? WF_NIC_WC_RECV : 0) |
		(cqe->flags & WF_NIC_CQE_HAS_IMM ? WF_NIC_WC_IMM : 0) |
		(cqe->flags & WF_NIC_CQE_UNSOLICITED ? WF_NIC_WC_UNSOLICITED :
						       0);
	if (wf_unlikely(wf_nic_cqe_op(cqe) == WF_NIC_OP_ASK)) {
		wc->flags |= WF_NIC_WC_ASKS;
		wc->more = cqe->more;
	} else if (wf_nic_cqe_op(cqe) == WF_NIC_OP_RUN) {
		wc->flags |= WF_NIC_WC_RUN;
	}
	return true;
}

int wf_nic_cq_poll(struct wf_nic_cq *cq, struct wf_nic_wc *wc, int n)
{
	struct wf_nic_cqe cqe;
	int done = 0;

	if (wf_unlikely(cq->nic->ops->cq_poll))
		return cq->nic->ops->cq_poll(cq, wc, n);
	while (done < n && wf_queue_cq_take(&cq->ring, &cqe)) {
		if (decode(cq, &cqe, &wc[done]))
			done++;
		else
			wf_nic_count(&cq->nic->counters->stale_completions, 1);
	}
	return done;
}

const char *wf_nic_status_str(enum wf_nic_status status)
{
	static const char *const text[WF_NIC_STATUSES] = {
		[WF_NIC_OK] = "success",
		[WF_NIC_FLUSHED] = "flushed, the queue pair was closed",
		[WF_NIC_QP_INTERNAL] = "internal error of the device",
		[WF_NIC_UNSUPP_OP] = "operation not supported",
		[WF_NIC_BAD_AH] = "no such address handle",
		[WF_NIC_BAD_LKEY] = "local memory is not registered for this",
		[WF_NIC_LOCAL_LEN] = "longer than the device can send",
		[WF_NIC_REM_ADDR] = "remote key, bounds or access",
		[WF_NIC_ABORT] = "aborted by the peer",
		[WF_NIC_BAD_QPN] = "the peer has no such queue pair",
		[WF_NIC_RNR] = "the peer posts no receives",
		[WF_NIC_REM_LEN] = "the peer's receive is too short",
		[WF_NIC_BAD_STATUS] = "the peer's answer makes no sense",
		[WF_NIC_UNRESP] = "the peer does not answer",
		[WF_NIC_UNKNOWN_PEER] = "unknown peer",
		[WF_NIC_UNREACH] = "the peer cannot be reached",
	};

	return (unsigned)status < WF_NIC_STATUSES ? text[status] : "unknown";
}
