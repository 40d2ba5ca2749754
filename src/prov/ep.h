/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: binding, enabling, options, names. The core (core/ep.h) moves
 * data, and its lock also covers the receive queue; endpoints that share a
 * receive context share its lock.
 */
#ifndef WF_PROV_EP_H
#define WF_PROV_EP_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_endpoint.h>

#include "base/addr.h"
#include "base/fork.h"
#include "core/attend.h"
#include "core/ep.h"
#include "match/rxq.h"
#include "prov/av.h"
#include "prov/cntr.h"
#include "prov/cq.h"
#include "prov/eps.h"

struct wf_nic_port;
struct wf_prov_domain;
struct wf_prov_eq;
struct wf_prov_stx;

/* Events that a counter can be bound for. */
enum wf_prov_event {
	WF_PROV_EVENT_SEND,
	WF_PROV_EVENT_RECV,
	WF_PROV_EVENT_READ,
	WF_PROV_EVENT_WRITE,
	WF_PROV_EVENT_REMOTE_READ,
	WF_PROV_EVENT_REMOTE_WRITE,
	WF_PROV_EVENTS,
};

struct wf_prov_ep {
	struct fid_ep fid;
	bool enabled;
	bool receives; /* enabled, and no shared context does it for us */
	bool directed; /* FI_DIRECTED_RECV was asked for */
	bool is_srx;   /* a shared receive context: it receives only */
	/* A call makes a completion if (flags | always) & mask is not 0.
	 * always has FI_COMPLETION unless completions are selective, the mask
	 * has it if a queue is bound. */
	uint64_t tx_always;
	uint64_t tx_mask;
	uint64_t rx_always;
	uint64_t rx_mask;
	uint64_t tx_flags; /* defaults of calls without flags */
	uint64_t rx_flags;
	struct wf_cntr *sends; /* counts them; NULL: none */
	size_t inject_size;
	struct wf_core_ep core;	     /* open while enabled */
	struct wf_attended attended; /* under automatic progress */
	uint64_t order;		     /* FI_ORDER_* of its messages */
	struct wf_rxq rxq;
	struct wf_compq *rx_compq; /* of rx_cq, or none */
	struct wf_list claimed;	   /* wf_ux, by FI_CLAIM, not yet received */

	struct wf_prov_domain *domain;
	struct wf_prov_av *av;
	struct wf_prov_av_user av_user;
	struct wf_prov_cq *tx_cq;
	struct wf_prov_cq *rx_cq;
	struct wf_prov_cntr *cntrs[WF_PROV_EVENTS];
	struct wf_prov_eps_link links[2 + WF_PROV_EVENTS];
	struct wf_prov_eq *eq;
	struct wf_prov_ep *srx;	 /* receives for us; NULL: nobody does */
	struct wf_list srx_link; /* in its ->users while enabled */
	struct wf_list users;	 /* of a shared receive context */
	struct wf_prov_stx *stx;
	atomic_int refs; /* aliases; endpoints of a shared context */
	struct wf_fork_watch fork_watch;
	uint64_t caps;
	size_t tx_size;
	int nic_fd; /* the device's socket, which owns our address */
	/* A device without sockets: this port owns the address, and nic_fd
	 * belongs to it. Else NULL. */
	struct wf_nic_port *nic_port;
	int held_fd; /* holds the same port of the other protocol (TCP, UDP) */
	int name_fd; /* holds our name in shared memory until it is enabled */
	struct wf_addr addr;	 /* as peers know it */
	struct wf_shm_home home; /* what other namespaces know of it */
	bool any_addr;		 /* bound to every address of the node */
};

/* Options and cancelling: of endpoints and shared receive contexts. */
extern struct fi_ops_ep wf_prov_ep_ops;

int wf_prov_ep_open(struct fid_domain *domain, struct fi_info *info,
		    struct fid_ep **ep, void *context);

static inline struct wf_prov_ep *wf_prov_ep_of(struct fid_ep *fid)
{
	return wf_container_of(fid, struct wf_prov_ep, fid);
}

static inline bool wf_prov_ep_reports_tx(const struct wf_prov_ep *ep,
					 uint64_t flags)
{
	return (flags | ep->tx_always) & ep->tx_mask;
}

static inline bool wf_prov_ep_reports_rx(const struct wf_prov_ep *ep,
					 uint64_t flags)
{
	return (flags | ep->rx_always) & ep->rx_mask;
}

static inline struct wf_cntr *wf_prov_ep_cntr(const struct wf_prov_ep *ep,
					      enum wf_prov_event event)
{
	return ep->cntrs[event] ? &ep->cntrs[event]->count : NULL;
}

/* Messages that arrive are reported to this endpoint, although a shared context
 * receives them. Lock held. */
static inline void wf_prov_ep_turn(struct wf_prov_ep *ep)
{
	ep->srx->rxq.compq = ep->rx_compq;
	ep->srx->rxq.reports_all = ep->rx_always & ep->rx_mask;
	ep->srx->rxq.cntr = wf_prov_ep_cntr(ep, WF_PROV_EVENT_RECV);
}

/* Whether the caller should rest when it holds no lock: see
 * wf_core_take_rest(). */
static inline enum wf_core_rest wf_prov_ep_progress(struct wf_prov_ep *ep,
						    uint32_t *row)
{
	enum wf_core_rest rest;

	wf_core_enter(&ep->core.common);
	if (wf_unlikely(ep->srx))
		wf_prov_ep_turn(ep);
	wf_core_ep_progress(&ep->core);
	rest = wf_core_take_rest(&ep->core.common, row);
	wf_core_leave(&ep->core.common);
	return rest;
}

/* Flags that may be defaults of an endpoint or of one of its aliases; 0,
 * -FI_EINVAL or -FI_EBADFLAGS. */
int wf_prov_ep_flags(uint64_t *tx_flags, uint64_t *rx_flags, uint64_t *flags,
		     bool set);

#endif
