/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: binding, enabling, options, names; and the way from an endpoint
 * to its transports. One lock per endpoint covers its receive queue and all
 * its transports.
 */
#ifndef WF_PROV_EP_H
#define WF_PROV_EP_H

#include <stdbool.h>

#include <rdma/fi_endpoint.h>

#include "base/addr.h"
#include "base/fork.h"
#include "base/lock.h"
#include "match/rxq.h"
#include "prov/av.h"
#include "prov/cq.h"
#include "shm/ep.h"

struct wf_prov_domain;
struct wf_prov_eq;

struct wf_prov_ep {
	struct fid_ep fid;
	struct wf_lock lock;
	bool enabled;
	bool directed;	   /* FI_DIRECTED_RECV was asked for */
	bool tx_selective; /* completions only for FI_COMPLETION */
	bool rx_selective;
	uint64_t tx_flags; /* defaults of calls without flags */
	uint64_t rx_flags;
	size_t inject_size;
	struct wf_shm_ep shm;
	struct wf_rxq rxq;
	struct wf_list claimed; /* wf_ux, by FI_CLAIM, not yet received */

	struct wf_prov_domain *domain;
	struct wf_prov_av *av;
	struct wf_prov_av_user av_user;
	struct wf_prov_cq *tx_cq;
	struct wf_prov_cq *rx_cq;
	struct wf_prov_cq_link tx_link;
	struct wf_prov_cq_link rx_link;
	struct wf_prov_eq *eq;
	struct wf_fork_watch fork_watch;
	uint64_t caps;
	size_t tx_size;
	int udp_fd;	     /* owns our address */
	struct wf_addr addr; /* as peers know it */
	bool any_addr;	     /* bound to every address of the node */
};

int wf_prov_ep_open(struct fid_domain *domain, struct fi_info *info,
		    struct fid_ep **ep, void *context);

static inline struct wf_prov_ep *wf_prov_ep_of(struct fid_ep *fid)
{
	return wf_container_of(fid, struct wf_prov_ep, fid);
}

static inline void wf_prov_ep_progress(struct wf_prov_ep *ep)
{
	wf_base_lock_take(&ep->lock);
	wf_shm_ep_progress(&ep->shm);
	wf_base_lock_drop(&ep->lock);
}

#endif
