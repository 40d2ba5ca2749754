/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain object. Decides whether objects below it lock; the objects
 * themselves live in their own files.
 */
#include "prov/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "prov/av.h"
#include "prov/cq.h"
#include "prov/ep.h"
#include "prov/eq.h"
#include "prov/fabric.h"
#include "prov/hints.h"
#include "prov/mr.h"
#include "prov/nosys.h"
#include "prov/provider.h"

static struct fi_ops fid_ops;

struct wf_prov_domain *wf_prov_domain_of(struct fid_domain *fid)
{
	return wf_container_of(fid, struct wf_prov_domain, fid);
}

bool wf_prov_domain_is_ours(const struct fid_domain *fid)
{
	return fid->fid.fclass == FI_CLASS_DOMAIN && fid->fid.ops == &fid_ops;
}

static int domain_close(struct fid *fid)
{
	struct wf_prov_domain *domain =
		wf_container_of(fid, struct wf_prov_domain, fid.fid);

	if (atomic_load(&domain->refs)) {
		WF_FI_WARN(FI_LOG_DOMAIN, "domain is in use\n");
		return -FI_EBUSY;
	}
	if (domain->eq)
		wf_prov_eq_unref(domain->eq);
	atomic_fetch_sub(&domain->fabric->refs, 1);
	free(domain);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wf_prov_domain *domain =
		wf_container_of(fid, struct wf_prov_domain, fid.fid);

	/* FI_REG_MR would promise that memory is registered in the
	 * background. */
	if (flags) {
		WF_FI_WARN(FI_LOG_DOMAIN, "bind: flags 0x%llx not supported\n",
			   (unsigned long long)flags);
		return flags == FI_REG_MR ? -FI_ENOSYS : -FI_EBADFLAGS;
	}
	if (bfid->fclass != FI_CLASS_EQ || domain->eq) {
		WF_FI_WARN(FI_LOG_DOMAIN, "bind: %s\n",
			   domain->eq ? "an event queue is bound already" :
					"only an event queue can be bound");
		return -FI_EINVAL;
	}
	domain->eq = wf_prov_eq_of(wf_container_of(bfid, struct fid_eq, fid));
	wf_prov_eq_ref(domain->eq);
	return 0;
}

static int domain_endpoint2(struct fid_domain *domain, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	if (flags)
		return -FI_ENOSYS;
	return wf_prov_ep_open(domain, info, ep, context);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = wf_prov_nosys_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = wf_prov_av_open,
	.cq_open = wf_prov_cq_open,
	.endpoint = wf_prov_ep_open,
	.scalable_ep = wf_prov_nosys_scalable_ep,
	.cntr_open = wf_prov_nosys_cntr_open,
	.poll_open = wf_prov_nosys_poll_open,
	.stx_ctx = wf_prov_nosys_stx_ctx,
	.srx_ctx = wf_prov_nosys_srx_ctx,
	.query_atomic = wf_prov_nosys_query_atomic,
	.query_collective = wf_prov_nosys_query_collective,
	.endpoint2 = domain_endpoint2,
};

/* DOMAIN and COMPLETION let the application serialize whatever shares a CQ.
 * Under FID and ENDPOINT two threads may still meet in one CQ. */
static bool needs_locks(enum fi_threading threading)
{
	return threading != FI_THREAD_DOMAIN &&
	       threading != FI_THREAD_COMPLETION;
}

int wf_prov_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context)
{
	struct wf_prov_fabric *fab = wf_prov_fabric_of(fabric);
	struct wf_prov_domain *dom;

	if (!info || !info->domain_attr) {
		WF_FI_WARN(FI_LOG_DOMAIN, "no domain attributes\n");
		return -FI_EINVAL;
	}
	if (wf_prov_hints_check_domain(fab->api_version, info) ||
	    wf_prov_hints_family(info->addr_format) < 0) {
		WF_FI_WARN(FI_LOG_DOMAIN,
			   "attributes are not those of fi_getinfo\n");
		return -FI_EINVAL;
	}
	dom = calloc(1, sizeof(*dom));
	if (!dom)
		return -FI_ENOMEM;
	dom->fid.fid.fclass = FI_CLASS_DOMAIN;
	dom->fid.fid.context = context;
	dom->fid.fid.ops = &fid_ops;
	dom->fid.ops = &domain_ops;
	dom->fid.mr = &wf_prov_mr_ops;
	pthread_mutex_init(&dom->mr_lock, NULL);
	wf_base_list_init(&dom->mrs);
	dom->fabric = fab;
	atomic_init(&dom->refs, 0);
	dom->threading = info->domain_attr->threading;
	if (dom->threading == FI_THREAD_UNSPEC)
		dom->threading = FI_THREAD_SAFE;
	dom->locked = needs_locks(dom->threading);
	dom->av_type = info->domain_attr->av_type;
	if (dom->av_type == FI_AV_UNSPEC)
		dom->av_type = FI_AV_TABLE;
	dom->addr_format = info->addr_format;
	atomic_fetch_add(&fab->refs, 1);
	*domain = &dom->fid;
	return 0;
}
