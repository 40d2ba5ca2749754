/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory registration for messages. Registrations stand in a list of their
 * domain, under a lock of its own: registering is not on the path of a message.
 */
#include "prov/mr.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "prov/domain.h"
#include "prov/nosys.h"
#include "prov/provider.h"

#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE)

struct mr {
	struct fid_mr fid;
	struct wf_list link;
	struct wf_prov_domain *domain;
};

static struct fi_ops mr_fid_ops;

static int mr_close(struct fid *fid)
{
	struct mr *mr = wf_container_of(fid, struct mr, fid.fid);
	struct wf_prov_domain *dom = mr->domain;

	pthread_mutex_lock(&dom->mr_lock);
	wf_base_list_del(&mr->link);
	pthread_mutex_unlock(&dom->mr_lock);
	atomic_fetch_sub(&dom->refs, 1);
	free(mr);
	return 0;
}

static bool key_in_use(const struct wf_prov_domain *dom, uint64_t key)
{
	const struct wf_list *pos;

	for (pos = dom->mrs.next; pos != &dom->mrs; pos = pos->next) {
		if (wf_container_of(pos, struct mr, link)->fid.key == key)
			return true;
	}
	return false;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **mr_fid)
{
	struct wf_prov_domain *dom;
	struct mr *mr;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || flags)
		return -FI_EINVAL;
	if (!attr->iov_count || attr->iov_count > WF_PROV_IOV_LIMIT ||
	    !attr->mr_iov)
		return -FI_EINVAL;
	if (!attr->access || (attr->access & ~ACCESS)) {
		WF_FI_WARN(FI_LOG_MR,
			   "access %#llx: remote access needs FI_RMA, which "
			   "this domain does not have\n",
			   (unsigned long long)attr->access);
		return -FI_EINVAL;
	}
	dom = wf_prov_domain_of(wf_container_of(fid, struct fid_domain, fid));
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = dom;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->fid.key = attr->requested_key;
	pthread_mutex_lock(&dom->mr_lock);
	if (key_in_use(dom, mr->fid.key)) {
		pthread_mutex_unlock(&dom->mr_lock);
		free(mr);
		return -FI_ENOKEY;
	}
	wf_base_list_add_tail(&dom->mrs, &mr->link);
	pthread_mutex_unlock(&dom->mr_lock);
	atomic_fetch_add(&dom->refs, 1);
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
	.bind = wf_prov_nosys_bind,
	.control = wf_prov_nosys_control,
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
