/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_rma(3): every call. They differ in how they name the same things, so each
 * fills in one description; the lock is taken in one place, because a second op
 * table would gain nothing compared with the copying itself.
 */
#include "prov/rma.h"

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "prov/alias.h"
#include "prov/domain.h"
#include "prov/provider.h"
#include "prov/xfer.h"

/* The local and the remote side must be as long. An atomic read has no local
 * operand. */
static int check(const struct wf_prov_ep *ep, const struct wf_prov_remote *op,
		 const struct wf_tx *tx)
{
	size_t local = wf_op_iov_len(op->iov, op->iov_count);

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (tx->len > WF_PROV_MAX_MSG_SIZE ||
	    (local != tx->len && (tx->kind != WF_TX_ATOMIC || op->iov_count)))
		return -FI_EINVAL;
	if (tx->inject && tx->len > ep->inject_size)
		return -FI_EMSGSIZE;
	if (tx->wants_comp && !wf_op_compq_room(wf_core_ep_txq(&ep->core)))
		return -FI_EAGAIN;
	return 0;
}

ssize_t wf_prov_rma_submit(struct wf_prov_ep *ep,
			   const struct wf_prov_remote *op)
{
	struct wf_tx tx;
	ssize_t ret;

	if (op->iov_count > WF_PROV_IOV_LIMIT ||
	    op->remote->seg_count > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	wf_op_tx_init(&tx, op->kind);
	tx.context = op->context;
	tx.comp_flags = op->comp_flags;
	tx.data = op->data;
	tx.wants_comp = !op->quiet && wf_prov_ep_reports_tx(ep, op->flags);
	/* Says of a source that it may be used again: a read has none. */
	tx.inject = (op->flags & FI_INJECT) && op->kind != WF_TX_READ;
	tx.fence = op->flags & FI_FENCE;
	tx.more = op->flags & FI_MORE;
	tx.has_data = op->flags & FI_REMOTE_CQ_DATA;
	tx.delivery = op->flags & FI_DELIVERY_COMPLETE;
	tx.remote = op->remote;
	tx.iov_count = (uint32_t)op->iov_count;
	for (size_t i = 0; i < op->iov_count; i++)
		tx.iov[i] = op->iov[i];
	tx.described = op->desc && ep->domain->described;
	for (size_t i = 0; tx.described && i < op->iov_count; i++)
		tx.desc[i] = op->desc[i];
	tx.len = wf_op_remote_len(op->remote);
	wf_core_enter(&ep->core.common);
	tx.cntr = wf_prov_ep_cntr(ep, op->event); /* may be bound late */
	ret = check(ep, op, &tx);
	if (!ret)
		ret = wf_core_submit(&ep->core.common, op->addr, &tx);
	wf_core_leave(&ep->core.common);
	return ret;
}

/* -- one buffer ------------------------------------------------------------ */

static void init_one(struct wf_remote *remote, size_t len, uint64_t addr,
		     uint64_t key)
{
	wf_op_remote_init(remote);
	remote->seg_count = 1;
	remote->segs[0] = (struct wf_remote_seg){
		.addr = addr,
		.len = len,
		.key = key,
	};
}

static ssize_t submit_one(struct fid_ep *fid, bool write, const void *buf,
			  size_t len, void *desc, uint64_t data, fi_addr_t dst,
			  uint64_t addr, uint64_t key, uint64_t flags,
			  void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct wf_remote remote;
	const struct wf_prov_remote op = {
		.iov = &iov,
		.desc = desc ? &desc : NULL,
		.iov_count = 1,
		.addr = dst,
		.data = data,
		.flags = flags,
		.context = context,
		.comp_flags = FI_RMA | (write ? FI_WRITE : FI_READ),
		.event = write ? WF_PROV_EVENT_WRITE : WF_PROV_EVENT_READ,
		.kind = write ? WF_TX_WRITE : WF_TX_READ,
		.remote = &remote,
	};

	init_one(&remote, len, addr, key);
	return wf_prov_rma_submit(wf_prov_alias_ep(fid), &op);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	return submit_one(fid, false, buf, len, desc, 0, src, addr, key,
			  wf_prov_alias_tx_flags(fid), context);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, fi_addr_t dst, uint64_t addr, uint64_t key,
			 void *context)
{
	return submit_one(fid, true, buf, len, desc, 0, dst, addr, key,
			  wf_prov_alias_tx_flags(fid), context);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dst,
			     uint64_t addr, uint64_t key, void *context)
{
	return submit_one(fid, true, buf, len, desc, data, dst, addr, key,
			  wf_prov_alias_tx_flags(fid) | FI_REMOTE_CQ_DATA,
			  context);
}

/* -- injected: no completion ----------------------------------------------- */

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len,
		      uint64_t data, fi_addr_t dst, uint64_t addr, uint64_t key,
		      uint64_t flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct wf_remote remote;
	const struct wf_prov_remote op = {
		.iov = &iov,
		.iov_count = 1,
		.addr = dst,
		.data = data,
		.flags = flags | FI_INJECT,
		.quiet = true,
		.comp_flags = FI_RMA | FI_WRITE,
		.event = WF_PROV_EVENT_WRITE,
		.kind = WF_TX_WRITE,
		.remote = &remote,
	};

	init_one(&remote, len, addr, key);
	return wf_prov_rma_submit(wf_prov_alias_ep(fid), &op);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t dst, uint64_t addr, uint64_t key)
{
	return inject(fid, buf, len, 0, dst, addr, key, 0);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dst, uint64_t addr,
			      uint64_t key)
{
	return inject(fid, buf, len, data, dst, addr, key, FI_REMOTE_CQ_DATA);
}

/* -- vectors --------------------------------------------------------------- */

/* Empty ones are left out: a piece of no bytes has no place among those that
 * come back. One remains when all are empty. */
static void fill_segs(struct wf_remote *remote, const struct fi_rma_iov *iov,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!iov[i].len && (remote->seg_count || i + 1 < count))
			continue;
		remote->segs[remote->seg_count++] = (struct wf_remote_seg){
			.addr = iov[i].addr,
			.len = iov[i].len,
			.key = iov[i].key,
		};
	}
}

static ssize_t submit_msg(struct fid_ep *fid, bool write,
			  const struct fi_msg_rma *msg, uint64_t flags)
{
	struct wf_remote remote;
	const struct wf_prov_remote op = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
		.comp_flags = FI_RMA | (write ? FI_WRITE : FI_READ),
		.event = write ? WF_PROV_EVENT_WRITE : WF_PROV_EVENT_READ,
		.kind = write ? WF_TX_WRITE : WF_TX_READ,
		.remote = &remote,
	};

	if (msg->rma_iov_count > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	wf_op_remote_init(&remote);
	fill_segs(&remote, msg->rma_iov, msg->rma_iov_count);
	return wf_prov_rma_submit(wf_prov_alias_ep(fid), &op);
}

static ssize_t submit_vector(struct fid_ep *fid, bool write,
			     const struct iovec *iov, void **desc, size_t count,
			     fi_addr_t dst, uint64_t addr, uint64_t key,
			     void *context)
{
	const struct fi_rma_iov remote = {
		.addr = addr,
		.len = wf_op_iov_len(iov, count),
		.key = key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = dst,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = context,
	};

	return submit_msg(fid, write, &msg, wf_prov_alias_tx_flags(fid));
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	return submit_vector(fid, false, iov, desc, count, src, addr, key,
			     context);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dst,
			  uint64_t addr, uint64_t key, void *context)
{
	return submit_vector(fid, true, iov, desc, count, dst, addr, key,
			     context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	return submit_msg(fid, false, msg, flags);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	return submit_msg(fid, true, msg, flags);
}

struct fi_ops_rma wf_prov_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
