/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3): every call. The plain and vector forms are the message form
 * with fewer arguments.
 */
#include "prov/atomic.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "op/amo.h"
#include "prov/alias.h"
#include "prov/domain.h"
#include "prov/fabric.h"
#include "prov/provider.h"
#include "prov/rma.h"
#include "shm/word.h"

/* Bytes of one operation: what a return holds (shm/ring_defs.h). */
#define BYTES_MAX WF_SHM_RETURN_MAX

/* The vectors of a call beside its operands. */
struct sides {
	const struct fi_ioc *result;
	size_t result_count;
	const struct fi_ioc *compare;
	size_t compare_count;
};

static int check_op(const struct wf_prov_ep *ep, unsigned int datatype,
		    unsigned int op, enum wf_op_amo_kind kind)
{
	uint32_t api = ep->domain->fabric->api_version;

	return wf_op_amo_known(op, datatype, api) &&
			       wf_op_amo_valid(op, datatype, kind) ?
		       0 :
		       -FI_EOPNOTSUPP;
}

/* Elements to bytes. 0, -FI_EINVAL, or -FI_EMSGSIZE for too many of them. */
static int to_iov(const struct fi_ioc *ioc, size_t count, size_t size,
		  struct iovec *iov, size_t *len)
{
	*len = 0;
	if (count > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count > BYTES_MAX / size)
			return -FI_EMSGSIZE;
		iov[i].iov_base = ioc[i].addr;
		iov[i].iov_len = ioc[i].count * size;
		*len += iov[i].iov_len;
	}
	return 0;
}

static int fill_segs(struct wf_remote *remote, const struct fi_msg_atomic *msg,
		     size_t size, size_t *len)
{
	*len = 0;
	if (!msg->rma_iov_count || msg->rma_iov_count > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		if (!msg->rma_iov[i].count)
			return -FI_EINVAL;
		if (msg->rma_iov[i].count > BYTES_MAX / size)
			return -FI_EMSGSIZE;
		remote->segs[i] = (struct wf_remote_seg){
			.addr = msg->rma_iov[i].addr,
			.len = msg->rma_iov[i].count * size,
			.key = msg->rma_iov[i].key,
		};
		*len += remote->segs[i].len;
	}
	remote->seg_count = (uint32_t)msg->rma_iov_count;
	return *len > BYTES_MAX ? -FI_EMSGSIZE : 0;
}

static ssize_t submit(struct fid_ep *fid, enum wf_op_amo_kind kind,
		      const struct fi_msg_atomic *msg,
		      const struct sides *sides, uint64_t flags, bool quiet)
{
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	bool reads = msg->op == FI_ATOMIC_READ;
	size_t size, len, operands, results, compares;
	struct iovec iov[WF_PROV_IOV_LIMIT];
	struct wf_remote remote;
	const struct wf_prov_remote op = {
		.iov = iov,
		.iov_count = reads ? 0 : msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.flags = flags & ~FI_REMOTE_CQ_DATA,
		.context = msg->context,
		.quiet = quiet,
		.comp_flags = FI_ATOMIC |
			      (kind == WF_OP_AMO_WRITE ? FI_WRITE : FI_READ),
		.event = kind == WF_OP_AMO_WRITE ? WF_PROV_EVENT_WRITE :
						   WF_PROV_EVENT_READ,
		.kind = WF_TX_ATOMIC,
		.remote = &remote,
	};
	int err;

	if (check_op(ep, msg->datatype, msg->op, kind))
		return -FI_EOPNOTSUPP;
	wf_op_remote_init(&remote);
	remote.amo_kind = (uint8_t)kind;
	remote.amo_op = (uint8_t)msg->op;
	remote.amo_type = (uint8_t)msg->datatype;
	remote.result_count = (uint32_t)sides->result_count;
	remote.compare_count = (uint32_t)sides->compare_count;
	size = wf_op_amo_size(msg->datatype);
	err = fill_segs(&remote, msg, size, &len);
	if (!err)
		err = to_iov(msg->msg_iov, op.iov_count, size, iov, &operands);
	if (!err)
		err = to_iov(sides->result, sides->result_count, size,
			     remote.result, &results);
	if (!err)
		err = to_iov(sides->compare, sides->compare_count, size,
			     remote.compare, &compares);
	if (err)
		return err;
	if ((!reads && operands != len) ||
	    (kind != WF_OP_AMO_WRITE && results != len) ||
	    (kind == WF_OP_AMO_COMPARE && compares != len))
		return -FI_EINVAL;
	return wf_prov_rma_submit(ep, &op);
}

/* -- one element of 8 bytes -------------------------------------------------- */

static uint64_t load_word(const void *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

/* The short way to a peer on this node. False: nothing was done, and the general
 * way says why. @kind and @quiet are constants: always inlined, so that nothing
 * is passed on the stack. */
static inline __attribute__((always_inline)) bool
put_word(struct fid_ep *fid, enum wf_op_amo_kind kind, const void *buf,
	 const void *compare, void *result, size_t count, fi_addr_t dst,
	 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
	 uint64_t flags, bool quiet, void *context)
{
	const bool writes = kind == WF_OP_AMO_WRITE;
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	struct wf_shm_out *out;
	struct wf_shm_word word;
	bool done;

	if (count != 1 || wf_op_amo_size(datatype) != sizeof(uint64_t) ||
	    check_op(ep, datatype, op, kind) || (flags & FI_FENCE) ||
	    (writes && (flags & FI_DELIVERY_COMPLETE)) ||
	    ((flags & FI_INJECT) && ep->inject_size < sizeof(uint64_t)))
		return false;
	word = (struct wf_shm_word){
		.addr = addr,
		.key = key,
		.operand = op == FI_ATOMIC_READ ? 0 : load_word(buf),
		.compare = kind == WF_OP_AMO_COMPARE ? load_word(compare) : 0,
		.result = result,
		.context = context,
		.comp_flags = FI_ATOMIC | (writes ? FI_WRITE : FI_READ),
		.kind = (uint8_t)kind,
		.op = (uint8_t)op,
		.type = (uint8_t)datatype,
		.wants_comp = !quiet && wf_prov_ep_reports_tx(ep, flags),
	};
	wf_core_enter(&ep->core.common);
	word.cntr = wf_prov_ep_cntr(ep, writes ? WF_PROV_EVENT_WRITE :
						 WF_PROV_EVENT_READ);
	out = wf_core_ep_out(&ep->core, dst);
	done = out &&
	       (!word.wants_comp ||
		wf_op_compq_room(wf_core_ep_txq(&ep->core))) &&
	       wf_shm_word_put(out, &word);
	wf_core_leave(&ep->core.common);
	return done;
}

/* -- one remote place, one element or more --------------------------------- */

static ssize_t submit_vector(struct fid_ep *fid, enum wf_op_amo_kind kind,
			     const struct fi_ioc *iov, size_t count,
			     const struct sides *sides, fi_addr_t dst,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op,
			     uint64_t flags, bool quiet, void *context)
{
	const struct fi_ioc *counted =
		op == FI_ATOMIC_READ ? sides->result : iov;
	size_t parts = op == FI_ATOMIC_READ ? sides->result_count : count;
	struct fi_rma_ioc remote = { .addr = addr, .key = key };
	const struct fi_msg_atomic msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = dst,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.datatype = datatype,
		.op = op,
		.context = context,
	};

	if (parts > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	for (size_t i = 0; i < parts; i++)
		remote.count += counted[i].count;
	return submit(fid, kind, &msg, sides, flags, quiet);
}

static ssize_t amo_writev(struct fid_ep *fid, const struct fi_ioc *iov,
			  void **desc, size_t count, fi_addr_t dst,
			  uint64_t addr, uint64_t key,
			  enum fi_datatype datatype, enum fi_op op,
			  void *context)
{
	const struct sides none = { 0 };

	(void)desc;
	return submit_vector(fid, WF_OP_AMO_WRITE, iov, count, &none, dst, addr,
			     key, datatype, op, wf_prov_alias_tx_flags(fid),
			     false, context);
}

static ssize_t amo_write(struct fid_ep *fid, const void *buf, size_t count,
			 void *desc, fi_addr_t dst, uint64_t addr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op,
			 void *context)
{
	const struct fi_ioc iov = { (void *)(uintptr_t)buf, count };

	if (put_word(fid, WF_OP_AMO_WRITE, buf, NULL, NULL, count, dst, addr,
		     key, datatype, op, wf_prov_alias_tx_flags(fid), false,
		     context))
		return 0;
	return amo_writev(fid, &iov, &desc, 1, dst, addr, key, datatype, op,
			  context);
}

static ssize_t amo_inject(struct fid_ep *fid, const void *buf, size_t count,
			  fi_addr_t dst, uint64_t addr, uint64_t key,
			  enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc iov = { (void *)(uintptr_t)buf, count };
	const struct sides none = { 0 };

	if (put_word(fid, WF_OP_AMO_WRITE, buf, NULL, NULL, count, dst, addr,
		     key, datatype, op, FI_INJECT, true, NULL))
		return 0;
	return submit_vector(fid, WF_OP_AMO_WRITE, &iov, 1, &none, dst, addr,
			     key, datatype, op, FI_INJECT, true, NULL);
}

static ssize_t amo_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			    uint64_t flags)
{
	const struct sides none = { 0 };

	return submit(fid, WF_OP_AMO_WRITE, msg, &none, flags, false);
}

static ssize_t amo_readwritev(struct fid_ep *fid, const struct fi_ioc *iov,
			      void **desc, size_t count, struct fi_ioc *resultv,
			      void **result_desc, size_t result_count,
			      fi_addr_t dst, uint64_t addr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op,
			      void *context)
{
	const struct sides sides = {
		.result = resultv,
		.result_count = result_count,
	};

	(void)desc;
	(void)result_desc;
	return submit_vector(fid, WF_OP_AMO_FETCH, iov, count, &sides, dst,
			     addr, key, datatype, op,
			     wf_prov_alias_tx_flags(fid), false, context);
}

static ssize_t amo_readwrite(struct fid_ep *fid, const void *buf, size_t count,
			     void *desc, void *result, void *result_desc,
			     fi_addr_t dst, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op,
			     void *context)
{
	const struct fi_ioc iov = { (void *)(uintptr_t)buf, count };
	struct fi_ioc resultv = { result, count };

	if (put_word(fid, WF_OP_AMO_FETCH, buf, NULL, result, count, dst, addr,
		     key, datatype, op, wf_prov_alias_tx_flags(fid), false,
		     context))
		return 0;
	return amo_readwritev(fid, &iov, &desc, 1, &resultv, &result_desc, 1,
			      dst, addr, key, datatype, op, context);
}

static ssize_t amo_readwritemsg(struct fid_ep *fid,
				const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags)
{
	const struct sides sides = {
		.result = resultv,
		.result_count = result_count,
	};

	(void)result_desc;
	return submit(fid, WF_OP_AMO_FETCH, msg, &sides, flags, false);
}

static ssize_t
amo_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
	       size_t count, const struct fi_ioc *comparev, void **compare_desc,
	       size_t compare_count, struct fi_ioc *resultv, void **result_desc,
	       size_t result_count, fi_addr_t dst, uint64_t addr, uint64_t key,
	       enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct sides sides = {
		.result = resultv,
		.result_count = result_count,
		.compare = comparev,
		.compare_count = compare_count,
	};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return submit_vector(fid, WF_OP_AMO_COMPARE, iov, count, &sides, dst,
			     addr, key, datatype, op,
			     wf_prov_alias_tx_flags(fid), false, context);
}

static ssize_t amo_compwrite(struct fid_ep *fid, const void *buf, size_t count,
			     void *desc, const void *compare,
			     void *compare_desc, void *result,
			     void *result_desc, fi_addr_t dst, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype,
			     enum fi_op op, void *context)
{
	const struct fi_ioc iov = { (void *)(uintptr_t)buf, count };
	const struct fi_ioc comparev = { (void *)(uintptr_t)compare, count };
	struct fi_ioc resultv = { result, count };

	if (put_word(fid, WF_OP_AMO_COMPARE, buf, compare, result, count, dst,
		     addr, key, datatype, op, wf_prov_alias_tx_flags(fid),
		     false, context))
		return 0;
	return amo_compwritev(fid, &iov, &desc, 1, &comparev, &compare_desc, 1,
			      &resultv, &result_desc, 1, dst, addr, key,
			      datatype, op, context);
}

static ssize_t amo_compwritemsg(struct fid_ep *fid,
				const struct fi_msg_atomic *msg,
				const struct fi_ioc *comparev,
				void **compare_desc, size_t compare_count,
				struct fi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags)
{
	const struct sides sides = {
		.result = resultv,
		.result_count = result_count,
		.compare = comparev,
		.compare_count = compare_count,
	};

	(void)compare_desc;
	(void)result_desc;
	return submit(fid, WF_OP_AMO_COMPARE, msg, &sides, flags, false);
}

/* -- what can be done ------------------------------------------------------ */

static int valid(const struct wf_prov_ep *ep, enum fi_datatype datatype,
		 enum fi_op op, enum wf_op_amo_kind kind, size_t *count)
{
	int err = check_op(ep, datatype, op, kind);

	if (!err)
		*count = BYTES_MAX / wf_op_amo_size(datatype);
	return err;
}

static int amo_writevalid(struct fid_ep *fid, enum fi_datatype datatype,
			  enum fi_op op, size_t *count)
{
	return valid(wf_prov_alias_ep(fid), datatype, op, WF_OP_AMO_WRITE,
		     count);
}

static int amo_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype,
			      enum fi_op op, size_t *count)
{
	return valid(wf_prov_alias_ep(fid), datatype, op, WF_OP_AMO_FETCH,
		     count);
}

static int amo_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype,
			      enum fi_op op, size_t *count)
{
	return valid(wf_prov_alias_ep(fid), datatype, op, WF_OP_AMO_COMPARE,
		     count);
}

int wf_prov_atomic_query(struct fid_domain *domain, enum fi_datatype datatype,
			 enum fi_op op, struct fi_atomic_attr *attr,
			 uint64_t flags)
{
	uint32_t api = wf_prov_domain_of(domain)->fabric->api_version;
	enum wf_op_amo_kind kind = WF_OP_AMO_WRITE;

	if (flags & FI_FETCH_ATOMIC)
		kind = WF_OP_AMO_FETCH;
	if (flags & FI_COMPARE_ATOMIC)
		kind = WF_OP_AMO_COMPARE;
	/* FI_TAGGED atomics are nothing we have. */
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (!wf_op_amo_known(op, datatype, api) ||
	    !wf_op_amo_valid(op, datatype, kind))
		return -FI_EOPNOTSUPP;
	attr->size = wf_op_amo_size(datatype);
	attr->count = BYTES_MAX / attr->size;
	return 0;
}

struct fi_ops_atomic wf_prov_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = amo_write,
	.writev = amo_writev,
	.writemsg = amo_writemsg,
	.inject = amo_inject,
	.readwrite = amo_readwrite,
	.readwritev = amo_readwritev,
	.readwritemsg = amo_readwritemsg,
	.compwrite = amo_compwrite,
	.compwritev = amo_compwritev,
	.compwritemsg = amo_compwritemsg,
	.writevalid = amo_writevalid,
	.readwritevalid = amo_readwritevalid,
	.compwritevalid = amo_compwritevalid,
};
