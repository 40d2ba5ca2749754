/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on remote memory at their target.
 */
#include "shm/serve.h"

#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "op/amo.h"
#include "op/iov.h"
#include "shm/ep.h"

/* Remote CQ data stands alone: no receive is taken for it. */
static void report_data(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	const struct wf_comp comp = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = req->total,
		.data = req->data,
		.src = in->src,
	};

	if (!in->rxq->compq->discards)
		wf_op_compq_push(in->rxq->compq, &comp);
}

/* The operation ends here, well or not. */
static void conclude(struct wf_shm_in *in, const struct wf_shm_request *req,
		     bool write)
{
	struct wf_shm_ep *ep = in->ep;
	bool failed = in->remote_status;

	in->remote_status = 0;
	if (failed)
		return;
	wf_op_cntr_add(write ? ep->remote_writes : ep->remote_reads, 1);
	if (write && (req->flags & WF_SHM_SLOT_DATA))
		report_data(in, req);
}

static void reply(struct wf_shm_in *in, const struct wf_shm_request *req,
		  uint64_t value)
{
	const struct wf_shm_kept_reply answer = {
		.op = req->rma.op,
		.kind = WF_SHM_REPLY_FINAL,
		.status = in->remote_status,
		.share = req->rma.buffer,
		.len = value,
	};

	if (req->flags & WF_SHM_SLOT_ACK)
		wf_shm_in_reply(in, &answer);
}

/* Finds what @req may touch. The lock is held while it is touched: whoever
 * takes the memory away waits. */
static bool find_locked(struct wf_shm_in *in, const struct wf_shm_request *req,
			uint64_t access, struct wf_reg_target *target)
{
	struct wf_reg_view view = wf_op_regs_view(in->ep->regs);
	const struct wf_reg_access want = {
		.addr = req->rma.addr,
		.len = req->rma.len,
		.key = req->rma.key,
		.access = access,
	};

	*target = (struct wf_reg_target){ 0 };
	if (!want.len)
		return true;
	if (!wf_op_reg_find(&view, &want, target))
		return true;
	if (!in->remote_status)
		wf_info("refused an access to memory: key %#llx, %u bytes",
			(unsigned long long)want.key, req->rma.len);
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_keys_rejected, 1);
	in->remote_status = FI_EKEYREJECTED;
	return false;
}

/* Counts at the registration, once for an operation. */
static void count_locked(struct wf_shm_in *in, const struct wf_shm_request *req,
			 const struct wf_reg_target *target, bool write)
{
	if ((target->flags & WF_REG_EVENTS) &&
	    (req->rma.flags & WF_SHM_RMA_LAST) && !in->remote_status)
		wf_op_regs_count_locked(in->ep->regs, target->slot, write);
}

int wf_shm_serve_write(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	struct wf_regs *regs = in->ep->regs;
	struct wf_reg_target target;

	/* Only the last piece is answered: one that asks before would be owed
	 * a reply for ever. */
	if (req->rma.len > req->bytes_len ||
	    ((req->flags & WF_SHM_SLOT_ACK) &&
	     !(req->rma.flags & WF_SHM_RMA_LAST)))
		return -EPROTO;
	wf_base_lock_take(&regs->lock);
	/* After a piece that was refused the others are, too. */
	if (!in->remote_status &&
	    find_locked(in, req, FI_REMOTE_WRITE, &target)) {
		if (target.seg_count)
			wf_op_iov_scatter(target.segs, target.seg_count, 0,
					  req->bytes, req->rma.len);
		count_locked(in, req, &target, true);
	}
	wf_base_lock_drop(&regs->lock);
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_served, 1);
	if (req->rma.flags & WF_SHM_RMA_LAST) {
		reply(in, req, 0);
		conclude(in, req, true);
	}
	return 0;
}

int wf_shm_serve_read(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	struct wf_regs *regs = in->ep->regs;
	struct wf_reg_target target;

	if (req->rma.len > WF_SHM_RETURN_MAX ||
	    req->rma.buffer >= WF_SHM_RETURNS ||
	    !(req->flags & WF_SHM_SLOT_ACK))
		return -EPROTO;
	wf_base_lock_take(&regs->lock);
	if (find_locked(in, req, FI_REMOTE_READ, &target)) {
		if (target.seg_count)
			wf_op_iov_gather(target.segs, target.seg_count, 0,
					 in->region.returns +
						 (size_t)req->rma.buffer *
							 WF_SHM_RETURN_MAX,
					 req->rma.len);
		count_locked(in, req, &target, false);
	}
	wf_base_lock_drop(&regs->lock);
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_served, 1);
	reply(in, req, 0);
	if (req->rma.flags & WF_SHM_RMA_LAST)
		conclude(in, req, false);
	return 0;
}

struct atomic {
	enum wf_op_amo_kind kind;
	size_t count;
	bool has_operand;
	bool writes;
};

static bool check_atomic(const struct wf_shm_request *req, struct atomic *amo)
{
	const struct wf_shm_rma *rma = &req->rma;
	size_t size = wf_op_amo_size(rma->amo_type);
	size_t bytes;

	if (rma->amo_kind > WF_OP_AMO_COMPARE || !size ||
	    rma->len > WF_SHM_RETURN_MAX || rma->len % size ||
	    !wf_op_amo_valid(rma->amo_op, rma->amo_type,
			     (enum wf_op_amo_kind)rma->amo_kind))
		return false;
	amo->kind = (enum wf_op_amo_kind)rma->amo_kind;
	amo->count = rma->len / size;
	amo->has_operand = rma->amo_op != FI_ATOMIC_READ;
	amo->writes = amo->has_operand;
	bytes = amo->has_operand ? rma->len : 0;
	if (amo->kind == WF_OP_AMO_COMPARE)
		bytes *= 2;
	return bytes <= req->bytes_len && (amo->kind == WF_OP_AMO_WRITE ||
					   ((req->flags & WF_SHM_SLOT_ACK) &&
					    (rma->len <= sizeof(uint64_t) ||
					     rma->buffer < WF_SHM_RETURNS)));
}

/* An element may lie across two segments of a registration: then it is put
 * together, and is atomic only against those who do the same, which is more
 * than an application may ask for. */
static void run_locked(const struct wf_shm_request *req,
		       const struct atomic *amo,
		       const struct wf_reg_target *target, uint8_t *result)
{
	const struct wf_shm_rma *rma = &req->rma;
	const uint8_t *compare = req->bytes + rma->len;
	uint8_t whole[WF_SHM_RETURN_MAX];

	if (target->seg_count == 1) {
		wf_op_amo_run(amo->kind, rma->amo_op, rma->amo_type,
			      target->segs[0].iov_base, req->bytes, compare,
			      result, amo->count);
		return;
	}
	wf_op_iov_gather(target->segs, target->seg_count, 0, whole, rma->len);
	wf_op_amo_run(amo->kind, rma->amo_op, rma->amo_type, whole, req->bytes,
		      compare, result, amo->count);
	wf_op_iov_scatter(target->segs, target->seg_count, 0, whole, rma->len);
}

int wf_shm_serve_atomic(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	const struct wf_shm_rma *rma = &req->rma;
	struct wf_regs *regs = in->ep->regs;
	struct wf_reg_target target;
	uint64_t value = 0;
	uint8_t *result = (uint8_t *)&value;
	struct atomic amo;
	uint64_t access;

	if (!check_atomic(req, &amo))
		return -EPROTO;
	access = amo.writes ? FI_REMOTE_WRITE : 0;
	if (amo.kind != WF_OP_AMO_WRITE)
		access |= FI_REMOTE_READ;
	if (rma->len > sizeof(value))
		result = in->region.returns +
			 (size_t)rma->buffer * WF_SHM_RETURN_MAX;
	wf_base_lock_take(&regs->lock);
	if (find_locked(in, req, access, &target)) {
		if (target.seg_count)
			run_locked(req, &amo, &target, result);
		count_locked(in, req, &target, amo.writes);
	}
	wf_base_lock_drop(&regs->lock);
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_served, 1);
	reply(in, req, value);
	/* fi_ep_bind(3): for an endpoint what fetches is a read; for a region
	 * (above) what modifies is a write. */
	if (rma->flags & WF_SHM_RMA_LAST)
		conclude(in, req, amo.kind == WF_OP_AMO_WRITE);
	return 0;
}

int wf_shm_serve_note(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	struct wf_reg_view view = wf_op_regs_view(in->ep->regs);
	bool write = req->rma.flags & WF_SHM_RMA_WRITE;
	struct wf_reg_target target;

	if (!(req->rma.flags & WF_SHM_RMA_LAST) ||
	    (req->flags & WF_SHM_SLOT_ACK))
		return -EPROTO;
	wf_base_lock_take(&in->ep->regs->lock);
	if (!wf_op_reg_find_key(&view, req->rma.key, &target))
		count_locked(in, req, &target, write);
	wf_base_lock_drop(&in->ep->regs->lock);
	conclude(in, req, write);
	return 0;
}
