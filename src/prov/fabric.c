/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric object. Counts the objects that were opened under it, and knows no
 * more of them.
 */
#include "prov/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "prov/cntr.h"
#include "prov/cq.h"
#include "prov/domain.h"
#include "prov/eq.h"
#include "prov/nosys.h"
#include "prov/provider.h"

static struct fi_ops fid_ops;

struct wf_prov_fabric *wf_prov_fabric_of(struct fid_fabric *fid)
{
	return wf_container_of(fid, struct wf_prov_fabric, fid);
}

bool wf_prov_fabric_is_ours(const struct fid_fabric *fid)
{
	return fid->fid.fclass == FI_CLASS_FABRIC && fid->fid.ops == &fid_ops;
}

static int fabric_close(struct fid *fid)
{
	struct wf_prov_fabric *fabric =
		wf_container_of(fid, struct wf_prov_fabric, fid.fid);

	if (atomic_load(&fabric->refs)) {
		WF_FI_WARN(FI_LOG_FABRIC, "fabric is in use\n");
		return -FI_EBUSY;
	}
	free(fabric);
	return 0;
}

/* Success means that the application may sleep on its descriptors. */
static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids,
			  int count)
{
	(void)fabric;
	for (int i = 0; i < count; i++) {
		struct wf_prov_wait *wait = NULL;
		int ret;

		switch (fids[i]->fclass) {
		case FI_CLASS_EQ:
			if (!wf_prov_eq_empty(wf_prov_eq_of(wf_container_of(
				    fids[i], struct fid_eq, fid))))
				return -FI_EAGAIN;
			break;
		case FI_CLASS_CQ:
			wait = &wf_container_of(fids[i], struct wf_prov_cq,
						fid.fid)
					->wait;
			break;
		case FI_CLASS_CNTR:
			wait = &wf_prov_cntr_of(fids[i])->wait;
			break;
		default:
			WF_FI_WARN(FI_LOG_FABRIC,
				   "object %d cannot be waited for\n", i);
			return -FI_EINVAL;
		}
		ret = wait ? wf_prov_wait_try(wait) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

static int fabric_domain2(struct fid_fabric *fabric, struct fi_info *info,
			  struct fid_domain **domain, uint64_t flags,
			  void *context)
{
	if (flags)
		return -FI_ENOSYS;
	return wf_prov_domain_open(fabric, info, domain, context);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = wf_prov_nosys_bind,
	.control = wf_prov_nosys_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = wf_prov_domain_open,
	.passive_ep = wf_prov_nosys_passive_ep,
	.eq_open = wf_prov_eq_open,
	.wait_open = wf_prov_nosys_wait_open,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

int wf_prov_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			void *context)
{
	struct wf_prov_fabric *fab;

	if (strcmp(attr->name, WF_PROV_FABRIC_NAME)) {
		WF_FI_INFO(FI_LOG_FABRIC, "no fabric is named %s\n",
			   attr->name);
		return -FI_EINVAL;
	}
	fab = calloc(1, sizeof(*fab));
	if (!fab)
		return -FI_ENOMEM;
	fab->fid.fid.fclass = FI_CLASS_FABRIC;
	fab->fid.fid.context = context;
	fab->fid.fid.ops = &fid_ops;
	fab->fid.ops = &fabric_ops;
	fab->fid.api_version = attr->api_version;
	fab->api_version = attr->api_version;
	atomic_init(&fab->refs, 0);
	*fabric = &fab->fid;
	return 0;
}
