/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which transport reaches an address: shared memory where the address belongs
 * to this node, packets everywhere else. Found out at the first operation, kept
 * by fi_addr_t. The endpoint's lock is held throughout.
 */
#ifndef WF_PROV_ROUTE_H
#define WF_PROV_ROUTE_H

#include "prov/ep.h"

/* What the transports of an endpoint need to know of each other: before and
 * after shared memory is opened with @attr. */
void wf_prov_route_init(struct wf_prov_ep *ep, struct wf_shm_ep_attr *attr);
void wf_prov_route_open(struct wf_prov_ep *ep,
			const struct wf_shm_ep_attr *attr);

/* Sends @tx by the transport for @dst. */
int wf_prov_route_send(struct wf_prov_ep *ep, fi_addr_t dst,
		       const struct wf_tx *tx);

/* @addr is in the AV: if it is on another host, the device is opened now. From
 * then on it answers peers that connect, even while this process computes and
 * does not call us; they would give up at the connect time-out. */
void wf_prov_route_expect(struct wf_prov_ep *ep, const struct wf_addr *addr);

/* The AV changed there. */
void wf_prov_route_forget(struct wf_prov_ep *ep, fi_addr_t dst);

#endif
