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

	/* Sizes are powers of two (op/amo.c). */
	if (amo->kind > WF_OP_AMO_COMPARE || !size ||
	    len > WF_OP_SERVE_AMO_MAX || (len & (size - 1)) ||
	    !wf_op_amo_valid(amo->op, amo->type,
			     (enum wf_op_amo_kind)amo->kind))
		return -EPROTO;
	if (amo->op == FI_ATOMIC_READ)
		return 0;
	return (int)(amo->kind == WF_OP_AMO_COMPARE ? 2 * len : len);
}

static bool is_write(const struct wf_served_amo *amo)
{
	return amo->op != FI_ATOMIC_READ;
}

static void run_at(const struct wf_served *at, const struct wf_served_amo *amo,
		   void *target)
{
	size_t size = wf_op_amo_size(amo->type);

	wf_op_amo_run((enum wf_op_amo_kind)amo->kind, amo->op, amo->type,
		      target, amo->operand, amo->compare, amo->result,
		      at->len >> __builtin_ctzl(size));
}

/* An element may span two segments of a registration: it is then assembled, and
 * is atomic only against accesses that do the same, which is more than an
 * application may ask for. */
static void run_split_locked(const struct wf_served *at,
			     const struct wf_served_amo *amo,
			     const struct wf_reg_target *target)
{
	uint8_t whole[WF_OP_SERVE_AMO_MAX];

	wf_op_iov_gather(target->segs, target->seg_count, 0, whole, at->len);
	run_at(at, amo, whole);
	wf_op_iov_scatter(target->segs, target->seg_count, 0, whole, at->len);
}

/* Not the registration that was served last, or an access that it refuses. */
static __attribute__((noinline)) int
serve_new_locked(struct wf_regs *regs, const struct wf_served *at,
		 const struct wf_served_amo *amo, uint64_t access)
{
	struct wf_reg_target target;
	int err = find_locked(regs, at, access, &target);

	if (err)
		return err;
	if (target.seg_count == 1)
		run_at(at, amo, target.segs[0].iov_base);
	else if (target.seg_count)
		run_split_locked(at, amo, &target);
	count_locked(regs, at, &target, is_write(amo));
	return 0;
}

int wf_op_serve_amo(struct wf_regs *regs, const struct wf_served *at,
		    const struct wf_served_amo *amo)
{
	const struct wf_reg_known *known = &regs->served;
	struct wf_reg_view view = wf_op_regs_view(regs);
	const struct wf_reg_access want = {
		.addr = at->addr,
		.len = at->len,
		.key = at->key,
		.access = (is_write(amo) ? FI_REMOTE_WRITE : 0) |
			  (amo->kind != WF_OP_AMO_WRITE ? FI_REMOTE_READ : 0),
	};
	int err = 0;

	wf_base_lock_take(&regs->lock);
	if (wf_likely(wf_op_reg_is_known(&view, known, &want))) {
		run_at(at, amo,
		       (void *)(uintptr_t)(known->base +
					   (want.addr - known->addr)));
		if ((known->flags & WF_REG_EVENTS) && at->last)
			wf_op_regs_count_locked(regs, known->slot,
						is_write(amo));
	} else {
		err = serve_new_locked(regs, at, amo, want.access);
	}
	wf_base_lock_drop(&regs->lock);
	return err;
}
