/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of ours that peers name by key.
 */
#include "op/serve.h"

#include <errno.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "op/iov.h"

static int find_locked(struct wf_regs *regs, const struct wf_served *at,
		       uint64_t access, struct wf_reg_target *target)
{
	struct wf_reg_view view = wf_op_regs_view(regs);
	const struct wf_reg_access want = {
		.addr = at->addr,
		.len = at->len,
		.key = at->key,
		.access = access,
	};

	*target = (struct wf_reg_target){ 0 };
	if (!want.len ||
	    !wf_op_reg_find_known(&view, &regs->served, &want, target))
		return 0;
	wf_info("refused an access to memory: key %#llx, %llu bytes",
		(unsigned long long)want.key, (unsigned long long)want.len);
	return -FI_EKEYREJECTED;
}

static void count_locked(struct wf_regs *regs, const struct wf_served *at,
			 const struct wf_reg_target *target, bool write)
{
	if ((target->flags & WF_REG_EVENTS) && at->last)
		wf_op_regs_count_locked(regs, target->slot, write);
}

int wf_op_serve_find(struct wf_regs *regs, const struct wf_served *at,
		     uint64_t access, struct wf_reg_target *target)
{
	int err;

	wf_base_lock_take(&regs->lock);
	err = find_locked(regs, at, access, target);
	wf_base_lock_drop(&regs->lock);
	return err;
}

int wf_op_serve_put(struct wf_regs *regs, const struct wf_served *at,
		    const void *from)
{
	struct wf_reg_target target;
	int err;

	wf_base_lock_take(&regs->lock);
	err = find_locked(regs, at, FI_REMOTE_WRITE, &target);
	if (!err) {
		if (target.seg_count)
			wf_op_iov_scatter(target.segs, target.seg_count, 0,
					  from, at->len);
		count_locked(regs, at, &target, true);
	}
	wf_base_lock_drop(&regs->lock);
	return err;
}

int wf_op_serve_get(struct wf_regs *regs, const struct wf_served *at, void *to)
{
	struct wf_reg_target target;
	int err;

	wf_base_lock_take(&regs->lock);
	err = find_locked(regs, at, FI_REMOTE_READ, &target);
	if (!err) {
		if (target.seg_count)
			wf_op_iov_gather(target.segs, target.seg_count, 0, to,
					 at->len);
		count_locked(regs, at, &target, false);
	}
	wf_base_lock_drop(&regs->lock);
	return err;
}

void wf_op_serve_note(struct wf_regs *regs, uint64_t key, bool write)
{
	struct wf_reg_view view = wf_op_regs_view(regs);
	struct wf_reg_target target;

	wf_base_lock_take(&regs->lock);
	if (!wf_op_reg_find_key(&view, key, &target) &&
	    (target.flags & WF_REG_EVENTS))
		wf_op_regs_count_locked(regs, target.slot, write);
	wf_base_lock_drop(&regs->lock);
}

int wf_op_serve_amo_bytes(const struct wf_served_amo *amo, uint64_t len)
{
	size_t size = wf_op_amo_size(amo->type);

	if (amo->kind > WF_OP_AMO_COMPARE || !size ||
	    len > WF_OP_SERVE_AMO_MAX || len % size ||
	    !wf_op_amo_valid(amo->op, amo->type,
			     (enum wf_op_amo_kind)amo->kind))
		return -EPROTO;
	if (amo->op == FI_ATOMIC_READ)
		return 0;
	return (int)(amo->kind == WF_OP_AMO_COMPARE ? 2 * len : len);
}

/* An element may span two segments of a registration: it is then assembled, and
 * is atomic only against accesses that do the same, which is more than an
 * application may ask for. */
static void run_locked(const struct wf_served *at,
		       const struct wf_served_amo *amo,
		       const struct wf_reg_target *target)
{
	enum wf_op_amo_kind kind = (enum wf_op_amo_kind)amo->kind;
	size_t count = at->len / wf_op_amo_size(amo->type);
	uint8_t whole[WF_OP_SERVE_AMO_MAX];

	if (target->seg_count == 1) {
		wf_op_amo_run(kind, amo->op, amo->type,
			      target->segs[0].iov_base, amo->operand,
			      amo->compare, amo->result, count);
		return;
	}
	wf_op_iov_gather(target->segs, target->seg_count, 0, whole, at->len);
	wf_op_amo_run(kind, amo->op, amo->type, whole, amo->operand,
		      amo->compare, amo->result, count);
	wf_op_iov_scatter(target->segs, target->seg_count, 0, whole, at->len);
}

int wf_op_serve_amo(struct wf_regs *regs, const struct wf_served *at,
		    const struct wf_served_amo *amo)
{
	bool writes = amo->op != FI_ATOMIC_READ;
	uint64_t access = writes ? FI_REMOTE_WRITE : 0;
	struct wf_reg_target target;
	int err;

	if (amo->kind != WF_OP_AMO_WRITE)
		access |= FI_REMOTE_READ;
	wf_base_lock_take(&regs->lock);
	err = find_locked(regs, at, access, &target);
	if (!err) {
		if (target.seg_count)
			run_locked(at, amo, &target);
		count_locked(regs, at, &target, writes);
	}
	wf_base_lock_drop(&regs->lock);
	return err;
}
