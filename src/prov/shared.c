/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared contexts.
 */
#include "prov/shared.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/domain.h"
#include "prov/ep.h"
#include "prov/msg.h"
#include "prov/nosys.h"
#include "prov/peek.h"
#include "prov/provider.h"

/* -- receiving ------------------------------------------------------------- */

static struct fi_ops srx_fid_ops;
static struct fi_ops_cm srx_cm_ops;

static struct wf_prov_ep *srx_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_ep, fid.fid);
}

static int srx_close(struct fid *fid)
{
	struct wf_prov_ep *srx = srx_of(fid);

	if (atomic_load(&srx->refs)) {
		WF_FI_WARN(FI_LOG_EP_CTRL,
			   "endpoints use this receive context\n");
		return -FI_EBUSY;
	}
	wf_prov_peek_close(srx, NULL);
	wf_match_rxq_fini(&srx->rxq);
	atomic_fetch_sub(&srx->domain->refs, 1);
	free(srx);
	return 0;
}

void wf_prov_srx_join_locked(struct wf_prov_ep *ep)
{
	struct wf_prov_ep *srx = ep->srx;

	if (wf_base_list_empty(&srx->users))
		wf_prov_ep_turn(ep);
	wf_base_list_add_tail(&srx->users, &ep->srx_link);
}

void wf_prov_srx_leave_locked(struct wf_prov_ep *ep)
{
	struct wf_prov_ep *srx = ep->srx;
	struct wf_rxq *rxq = &srx->rxq;

	wf_match_rxq_forget(rxq, &ep->core.shm);
	wf_base_list_del(&ep->srx_link);
	if (!wf_base_list_empty(&srx->users)) {
		wf_prov_ep_turn(wf_container_of(srx->users.next,
						struct wf_prov_ep, srx_link));
		return;
	}
	rxq->compq = &wf_op_compq_none;
	rxq->cntr = NULL;
	rxq->reports_all = false;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	struct wf_prov_ep *srx = srx_of(fid);

	switch (command) {
	case FI_ENABLE:
		return 0;
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return wf_prov_ep_flags(&srx->tx_flags, &srx->rx_flags, arg,
					command == FI_SETOPSFLAG);
	default:
		return -FI_ENOSYS;
	}
}

int wf_prov_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **srx_fid, void *context)
{
	struct wf_prov_domain *dom = wf_prov_domain_of(domain);
	struct wf_prov_ep *srx;

	srx = aligned_alloc(WF_LINE, (sizeof(*srx) + WF_LINE - 1) &
					     ~(size_t)(WF_LINE - 1));
	if (!srx)
		return -FI_ENOMEM;
	memset(srx, 0, sizeof(*srx));
	srx->domain = dom;
	srx->is_srx = true;
	srx->receives = true;
	srx->nic_fd = -1;
	srx->held_fd = -1;
	srx->name_fd = -1;
	srx->rx_mask = FI_COMPLETION; /* more is for the endpoint to say */
	if (attr) {
		srx->rx_flags = attr->op_flags;
		srx->directed = attr->caps & FI_DIRECTED_RECV;
	}
	wf_core_init(&srx->core.common, dom->locked);
	wf_base_list_init(&srx->claimed);
	wf_match_rxq_init(&srx->rxq, &wf_op_compq_none);
	srx->rxq.plain = false; /* whom to tell is known when it is met */
	srx->rxq.shared = true;
	wf_base_list_init(&srx->users);
	srx->fid = (struct fid_ep){
		.fid = {
			.fclass = FI_CLASS_SRX_CTX,
			.context = context,
			.ops = &srx_fid_ops,
		},
		.ops = &wf_prov_ep_ops,
		.cm = &srx_cm_ops,
		.msg = dom->described ? &wf_prov_msg_ops_described : dom->locked ? &wf_prov_msg_ops_locked :
				     &wf_prov_msg_ops_unlocked,
		.tagged = dom->described ? &wf_prov_tagged_ops_described : dom->locked ? &wf_prov_tagged_ops_locked :
					&wf_prov_tagged_ops_unlocked,
		.rma = &wf_prov_nosys_rma,
		.atomic = &wf_prov_nosys_atomic,
		.collective = &wf_prov_nosys_collective,
	};
	atomic_fetch_add(&dom->refs, 1);
	*srx_fid = &srx->fid;
	return 0;
}

static int srx_getname(fid_t fid, void *addr, size_t *addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS; /* nothing is sent to a context by name */
}

static struct fi_ops_cm srx_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = wf_prov_nosys_setname,
	.getname = srx_getname,
	.getpeer = wf_prov_nosys_getpeer,
	.connect = wf_prov_nosys_connect,
	.listen = wf_prov_nosys_listen,
	.accept = wf_prov_nosys_accept,
	.reject = wf_prov_nosys_reject,
	.shutdown = wf_prov_nosys_shutdown,
	.join = wf_prov_nosys_join,
};

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = wf_prov_nosys_bind,
	.control = srx_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

/* -- transmitting ---------------------------------------------------------- */

/* Endpoints transmit by themselves, so they share only this structure. Sandia
 * OpenSHMEM closes the context before the endpoint that uses it: it is freed
 * with its last user. */
struct wf_prov_stx {
	struct fid_stx fid;
	struct wf_prov_domain *domain;
	atomic_int refs; /* endpoints, and the application until it closes it */
};

static struct wf_prov_stx *stx_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_stx, fid.fid);
}

int wf_prov_stx_bind(struct fid *fid, const struct wf_prov_domain *domain,
		     struct wf_prov_stx **stx)
{
	struct wf_prov_stx *bound = stx_of(fid);

	if (*stx || bound->domain != domain)
		return -FI_EINVAL;
	atomic_fetch_add(&bound->refs, 1);
	*stx = bound;
	return 0;
}

void wf_prov_stx_unref(struct wf_prov_stx *stx)
{
	if (atomic_fetch_sub(&stx->refs, 1) > 1)
		return;
	atomic_fetch_sub(&stx->domain->refs, 1);
	free(stx);
}

static int stx_close(struct fid *fid)
{
	wf_prov_stx_unref(stx_of(fid));
	return 0;
}

static struct fi_ops stx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = wf_prov_nosys_bind,
	.control = wf_prov_nosys_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

int wf_prov_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		     struct fid_stx **stx_fid, void *context)
{
	struct wf_prov_stx *stx = calloc(1, sizeof(*stx));

	(void)attr;
	if (!stx)
		return -FI_ENOMEM;
	stx->domain = wf_prov_domain_of(domain);
	atomic_init(&stx->refs, 1);
	stx->fid.fid = (struct fid){
		.fclass = FI_CLASS_STX_CTX,
		.context = context,
		.ops = &stx_fid_ops,
	};
	atomic_fetch_add(&stx->domain->refs, 1);
	*stx_fid = &stx->fid;
	return 0;
}
