/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory registration.
 */
#include "prov/mr.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "nic/open.h"
#include "os/file.h"
#include "os/memory.h"
#include "prov/caps.h"
#include "prov/cntr.h"
#include "prov/domain.h"
#include "prov/nosys.h"
#include "prov/param.h"
#include "prov/provider.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | REMOTE)

/* To find the file behind memory takes some microseconds: not worth it for
 * less. */
#define SHARE_MIN 4096

#define NOT_HARD ((uint64_t)1 << 32)

struct mr {
	struct fid_mr fid;
	struct wf_prov_domain *domain;
	struct wf_prov_cntr *reads; /* bound, or NULL */
	struct wf_prov_cntr *writes;
	int memfd; /* behind the memory, for peers that map it; or -1 */
	struct wf_nic_key *hard; /* of the device, or NULL */
};

static struct fi_ops mr_fid_ops;

static struct mr *mr_of(struct fid *fid)
{
	return wf_container_of(fid, struct mr, fid.fid);
}

static void close_hard(struct mr *mr)
{
	if (mr->hard)
		wf_nic_key_close(mr->hard);
	mr->hard = NULL;
	mr->fid.mem_desc = mr;
}

static int mr_close(struct fid *fid)
{
	struct mr *mr = mr_of(fid);
	struct wf_prov_domain *dom = mr->domain;

	wf_op_regs_del(&dom->regs, mr->fid.key);
	wf_prov_domain_unregistered(dom, mr->fid.key);
	if (mr->memfd >= 0)
		wf_os_close(mr->memfd);
	close_hard(mr);
	if (mr->reads)
		atomic_fetch_sub(&mr->reads->refs, 1);
	if (mr->writes)
		atomic_fetch_sub(&mr->writes->refs, 1);
	atomic_fetch_sub(&dom->refs, 1);
	free(mr);
	return 0;
}

/* Counters of remote accesses to this memory. */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct mr *mr = mr_of(fid);
	struct wf_prov_cntr *cntr;
	struct wf_reg_watch watch = { 0 };
	int err;

	/* An endpoint may be bound where a provider asks for it
	 * (FI_MR_ENDPOINT); ours are reached by all of the domain. */
	if (bfid->fclass == FI_CLASS_EP)
		return 0;
	if (bfid->fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	if (!flags || (flags & ~REMOTE))
		return -FI_EBADFLAGS;
	cntr = wf_prov_cntr_of(bfid);
	if (((flags & FI_REMOTE_READ) && mr->reads) ||
	    ((flags & FI_REMOTE_WRITE) && mr->writes) ||
	    cntr->domain != mr->domain)
		return -FI_EINVAL;
	if (flags & FI_REMOTE_READ)
		watch.reads = &cntr->count;
	if (flags & FI_REMOTE_WRITE)
		watch.writes = &cntr->count;
	err = wf_prov_domain_add_cntr(mr->domain, cntr);
	if (!err)
		err = wf_op_regs_watch(&mr->domain->regs, mr->fid.key, &watch);
	if (err)
		return err;
	if (watch.reads) {
		mr->reads = cntr;
		atomic_fetch_add(&cntr->refs, 1);
	}
	if (watch.writes) {
		mr->writes = cntr;
		atomic_fetch_add(&cntr->refs, 1);
	}
	return 0;
}

/* Memory is ready when it is registered, and does not change. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static int check_attr(const struct fi_mr_attr *attr, uint64_t flags)
{
	const char *why = NULL;
	size_t sum = 0;

	if (!attr->iov_count || attr->iov_count > WF_PROV_MR_IOV_LIMIT ||
	    !attr->mr_iov)
		why = "between 1 and 4 buffers are needed";
	else if (attr->access & ~ACCESS)
		why = "unknown access bits";
	else if (attr->offset)
		why = "the offset must be 0";
	else if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM))
		why = "unknown flags";
	for (size_t i = 0; !why && i < attr->iov_count; i++) {
		const struct iovec *iov = &attr->mr_iov[i];

		/* All memory (NULL, SIZE_MAX) is as much as can be. */
		if (iov->iov_len > SIZE_MAX - sum ||
		    iov->iov_len > SIZE_MAX - (uintptr_t)iov->iov_base)
			why = "a buffer reaches beyond all memory";
		sum += iov->iov_len;
	}
	if (!why)
		return 0;
	WF_FI_WARN(FI_LOG_MR, "registration refused: %s\n", why);
	return -FI_EINVAL;
}

/* Told from the hardware's, which have 32 bits. */
static uint64_t soft_key(struct wf_prov_domain *dom)
{
	uint64_t key = wf_op_regs_new_key(&dom->regs);

	return dom->hard_keys ? key | NOT_HARD : key;
}

/* The access that the device gets. Memory to send from is registered for reads by
 * peers, because wf_nic_mr_use() asks for that, although no peer gets the key. */
static unsigned int hard_access(const struct wf_prov_domain *dom,
				uint64_t access)
{
	unsigned int to = 0;

	if (dom->hard_keys && (access & FI_REMOTE_READ))
		to |= WF_NIC_REMOTE_READ;
	if (dom->hard_keys && (access & FI_REMOTE_WRITE))
		to |= WF_NIC_REMOTE_WRITE;
	if (dom->described && (access & (FI_SEND | FI_WRITE)))
		to |= WF_NIC_REMOTE_READ;
	if (dom->described && (access & (FI_RECV | FI_READ)))
		to |= WF_NIC_LOCAL_WRITE;
	return to;
}

/* For peers that access the memory by the hardware, without asking us, and for
 * operations of ours that name it. Where that fails, or accesses are by offset,
 * weft's endpoints still reach the memory. */
static void open_hard(struct mr *mr, const struct fi_mr_attr *attr,
		      uint32_t *rkey)
{
	unsigned int access = hard_access(mr->domain, attr->access);
	const struct iovec *iov = attr->mr_iov;
	int err;

	if (attr->iov_count != 1 || !access)
		return;
	err = wf_nic_key_open(WF_PROV_NIC_EFA, iov->iov_base, iov->iov_len,
			      access, &mr->hard, rkey);
	if (err)
		WF_FI_INFO(FI_LOG_MR,
			   "the EFA device does not register memory: %s\n",
			   fi_strerror(-err));
	else if (wf_nic_key_desc(mr->hard))
		mr->fid.mem_desc = wf_nic_key_desc(mr->hard);
}

/* Of several addresses in one registration, peers that use virtual addresses
 * reach each by its own. */
static int add(struct mr *mr, const struct fi_mr_attr *attr)
{
	struct wf_prov_domain *dom = mr->domain;
	uint32_t flags = dom->virtual_addrs ? 0 : WF_REG_OFFSETS;
	uint32_t rkey;
	int err;

	open_hard(mr, attr, &rkey);
	if (!dom->own_keys)
		mr->fid.key = attr->requested_key;
	else if (mr->hard && dom->hard_keys && (attr->access & REMOTE))
		mr->fid.key = rkey;
	else
		mr->fid.key = soft_key(dom);
	err = wf_op_regs_add(&dom->regs, mr->fid.key, attr->access & REMOTE,
			     flags, attr->mr_iov, attr->iov_count);
	/* The hardware has chosen one that we had given out. */
	if (err == -EEXIST && dom->own_keys && mr->hard) {
		close_hard(mr);
		mr->fid.key = soft_key(dom);
		err = wf_op_regs_add(&dom->regs, mr->fid.key,
				     attr->access & REMOTE, flags, attr->mr_iov,
				     attr->iov_count);
	}
	switch (err) {
	case 0:
		return 0;
	case -EEXIST:
		WF_FI_WARN(FI_LOG_MR, "key %#llx is in use\n",
			   (unsigned long long)mr->fid.key);
		return -FI_ENOKEY;
	case -ENOSPC:
		WF_FI_WARN(FI_LOG_MR, "too many registrations\n");
		return -FI_ENOSPC;
	default:
		return -FI_ENOMEM;
	}
}

/* Memory in a memfd can be mapped by peers of the node, if it cannot shrink under
 * them. */
static void share(struct mr *mr, const struct fi_mr_attr *attr)
{
	const struct iovec *iov = attr->mr_iov;
	struct wf_os_mapping mapping;
	int seals;

	if (attr->iov_count != 1 || !(attr->access & REMOTE) ||
	    iov->iov_len < SHARE_MIN ||
	    wf_os_memfd_behind(iov->iov_base, iov->iov_len, &mapping))
		return;
	seals = wf_os_seals(mapping.fd);
	if (seals < 0 || !(seals & WF_OS_SEAL_SHRINK)) {
		wf_os_close(mapping.fd);
		return;
	}
	mr->memfd = mapping.fd;
	wf_op_regs_share(&mr->domain->regs, mr->fid.key,
			 &(struct wf_reg_file){
				 .fd = (uint32_t)mapping.fd,
				 .offset = mapping.offset,
				 .inode = mapping.inode,
			 });
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **mr_fid)
{
	struct mr *mr;
	int err;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr)
		return -FI_EINVAL;
	err = check_attr(attr, flags);
	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain =
		wf_prov_domain_of(wf_container_of(fid, struct fid_domain, fid));
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->memfd = -1;
	err = add(mr, attr);
	if (err) {
		close_hard(mr);
		free(mr);
		return err;
	}
	share(mr, attr);
	atomic_fetch_add(&mr->domain->refs, 1);
	*mr_fid = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		   uint64_t access, uint64_t offset, uint64_t requested_key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t requested_key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr,
		       context);
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

struct fi_ops_mr wf_prov_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
