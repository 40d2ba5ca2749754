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

#include "prov/atomic.h"
#include "prov/av.h"
#include "prov/cntr.h"
#include "prov/cq.h"
#include "prov/ep.h"
#include "prov/eq.h"
#include "prov/fabric.h"
#include "prov/hints.h"
#include "prov/mr.h"
#include "prov/nosys.h"
#include "prov/poll.h"
#include "prov/provider.h"
#include "prov/shared.h"

static struct fi_ops fid_ops;

struct wf_prov_domain *wf_prov_domain_of(struct fid_domain *fid)
{
	return wf_container_of(fid, struct wf_prov_domain, fid);
}

bool wf_prov_domain_is_ours(const struct fid_domain *fid)
{
	return fid->fid.fclass == FI_CLASS_DOMAIN && fid->fid.ops == &fid_ops;
}

/* -- endpoints and counters of all of them --------------------------------- */

static struct wf_prov_cntr *cntr_at(struct wf_list *link)
{
	return wf_container_of(link, struct wf_prov_cntr, mr_link);
}

int wf_prov_domain_add_ep(struct wf_prov_domain *domain, struct wf_prov_ep *ep)
{
	struct wf_list *pos, *tmp;
	int err;

	wf_os_mutex_lock(&domain->lock);
	err = wf_prov_eps_add(&domain->eps, ep);
	wf_list_for_each (pos, tmp, &domain->mr_cntrs) {
		if (!err)
			err = wf_prov_eps_add(&cntr_at(pos)->eps, ep);
	}
	wf_os_mutex_unlock(&domain->lock);
	return err;
}

void wf_prov_domain_del_ep(struct wf_prov_domain *domain, struct wf_prov_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_os_mutex_lock(&domain->lock);
	wf_prov_eps_remove(&domain->eps, ep);
	wf_list_for_each (pos, tmp, &domain->mr_cntrs)
		wf_prov_eps_remove(&cntr_at(pos)->eps, ep);
	wf_os_mutex_unlock(&domain->lock);
}

int wf_prov_domain_add_cntr(struct wf_prov_domain *domain,
			    struct wf_prov_cntr *cntr)
{
	struct wf_list *pos, *tmp;
	int err = 0;

	wf_os_mutex_lock(&domain->lock);
	wf_list_for_each (pos, tmp, &domain->eps.list) {
		struct wf_prov_eps_link *link =
			wf_container_of(pos, struct wf_prov_eps_link, link);

		if (!err)
			err = wf_prov_eps_add(&cntr->eps, link->ep);
	}
	wf_base_list_del(&cntr->mr_link);
	wf_base_list_add_tail(&domain->mr_cntrs, &cntr->mr_link);
	wf_os_mutex_unlock(&domain->lock);
	return err;
}

void wf_prov_domain_del_cntr(struct wf_prov_domain *domain,
			     struct wf_prov_cntr *cntr)
{
	struct wf_list *pos, *tmp;

	wf_os_mutex_lock(&domain->lock);
	wf_base_list_del(&cntr->mr_link);
	wf_list_for_each (pos, tmp, &domain->eps.list)
		wf_prov_eps_remove(
			&cntr->eps,
			wf_container_of(pos, struct wf_prov_eps_link, link)
				->ep);
	wf_os_mutex_unlock(&domain->lock);
}

void wf_prov_domain_unregistered(struct wf_prov_domain *domain, uint64_t key)
{
	struct wf_list *pos, *tmp;

	wf_os_mutex_lock(&domain->lock);
	wf_list_for_each (pos, tmp, &domain->eps.list) {
		struct wf_prov_ep *ep =
			wf_container_of(pos, struct wf_prov_eps_link, link)->ep;

		wf_core_enter(&ep->core.common);
		wf_core_unregistered(&ep->core.common, key);
		wf_core_leave(&ep->core.common);
	}
	wf_os_mutex_unlock(&domain->lock);
}

/* -- life ------------------------------------------------------------------ */

/* A thread that does not exist here may have held it. */
static void in_child(struct wf_fork_watch *watch)
{
	struct wf_prov_domain *domain =
		wf_container_of(watch, struct wf_prov_domain, fork_watch);

	wf_base_lock_init(&domain->regs.lock, domain->regs.lock.real);
	wf_os_mutex_init(&domain->lock);
}

static int domain_close(struct fid *fid)
{
	struct wf_prov_domain *domain =
		wf_container_of(fid, struct wf_prov_domain, fid.fid);

	if (atomic_load(&domain->refs)) {
		WF_FI_WARN(FI_LOG_DOMAIN, "domain is in use\n");
		return -FI_EBUSY;
	}
	wf_base_fork_unwatch(&domain->fork_watch);
	wf_op_regs_close(&domain->regs);
	wf_os_mutex_destroy(&domain->lock);
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
	.cntr_open = wf_prov_cntr_open,
	.poll_open = wf_prov_poll_open,
	.stx_ctx = wf_prov_stx_open,
	.srx_ctx = wf_prov_srx_open,
	.query_atomic = wf_prov_atomic_query,
	.query_collective = wf_prov_nosys_query_collective,
	.endpoint2 = domain_endpoint2,
};

static bool is_attended(const struct fi_domain_attr *attr)
{
	return attr->data_progress == FI_PROGRESS_AUTO;
}

/* A thread of ours that drives endpoints needs locks under any model. Else only
 * FI_THREAD_DOMAIN lets the application serialize all that meets in an
 * endpoint. FI_THREAD_COMPLETION speaks of endpoints and what they report to,
 * but not of AVs and registrations: these enter the endpoints of other threads,
 * and a counter bound to memory makes progress for all of the domain. */
static bool needs_locks(const struct fi_domain_attr *attr)
{
	return attr->threading != FI_THREAD_DOMAIN || is_attended(attr);
}

int wf_prov_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context)
{
	struct wf_prov_fabric *fab = wf_prov_fabric_of(fabric);
	struct wf_prov_domain *dom;
	int mode, err;

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
	err = wf_op_regs_open(&dom->regs, needs_locks(info->domain_attr));
	if (err) {
		WF_FI_WARN(FI_LOG_DOMAIN, "no memory for registrations: %s\n",
			   fi_strerror(-err));
		free(dom);
		return err;
	}
	dom->fid.fid.fclass = FI_CLASS_DOMAIN;
	dom->fid.fid.context = context;
	dom->fid.fid.ops = &fid_ops;
	dom->fid.ops = &domain_ops;
	dom->fid.mr = &wf_prov_mr_ops;
	wf_os_mutex_init(&dom->lock);
	wf_prov_eps_init(&dom->eps, true);
	wf_base_list_init(&dom->mr_cntrs);
	dom->fabric = fab;
	atomic_init(&dom->refs, 0);
	dom->locked = needs_locks(info->domain_attr);
	dom->attended = is_attended(info->domain_attr);
	dom->av_type = info->domain_attr->av_type;
	if (dom->av_type == FI_AV_UNSPEC)
		dom->av_type = FI_AV_TABLE;
	dom->addr_format = info->addr_format;
	mode = info->domain_attr->mr_mode;
	dom->virtual_addrs = mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR);
	dom->own_keys = mode & (FI_MR_BASIC | FI_MR_PROV_KEY);
	dom->hard_keys = dom->addr_format == FI_ADDR_EFA &&
			 dom->virtual_addrs && dom->own_keys &&
			 !(info->caps & FI_RMA_EVENT);
	dom->described =
		dom->addr_format == FI_ADDR_EFA && (mode & FI_MR_LOCAL);
	dom->fork_watch.in_child = in_child;
	wf_base_fork_watch(&dom->fork_watch);
	atomic_fetch_add(&fab->refs, 1);
	*domain = &dom->fid;
	return 0;
}
