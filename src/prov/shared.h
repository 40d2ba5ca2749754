/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared contexts. A shared receive context is an endpoint that only receives:
 * its matcher takes the messages of all endpoints bound to it, under one lock.
 * A shared transmit context is a name: endpoints have nothing to share there.
 */
#ifndef WF_PROV_SHARED_H
#define WF_PROV_SHARED_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

struct wf_prov_domain;
struct wf_prov_stx;

int wf_prov_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **srx, void *context);
int wf_prov_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		     struct fid_stx **stx, void *context);

struct wf_prov_ep;

/* An endpoint of a shared receive context is enabled, is closed. The context
 * reports what belongs to no message (a cancelled receive) to the endpoint that
 * polled last, but never to one that has left. */
void wf_prov_srx_join_locked(struct wf_prov_ep *ep);
void wf_prov_srx_leave_locked(struct wf_prov_ep *ep);

/* Binds an endpoint. 0 or -FI_EINVAL. */
int wf_prov_stx_bind(struct fid *fid, const struct wf_prov_domain *domain,
		     struct wf_prov_stx **stx);
void wf_prov_stx_unref(struct wf_prov_stx *stx);

#endif
