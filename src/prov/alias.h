/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aliases: another handle of an endpoint, with default flags of its own. The
 * calls on the fast path are instantiated once more for them (OPS() in msg.c
 * and tagged.c); the others find out here which handle they were given.
 */
#ifndef WF_PROV_ALIAS_H
#define WF_PROV_ALIAS_H

#include "prov/ep.h"

struct wf_prov_alias {
	struct fid_ep fid;
	struct wf_prov_ep *ep;
	uint64_t tx_flags;
	uint64_t rx_flags;
};

/* fi_control(FI_ALIAS). */
int wf_prov_alias_open(struct wf_prov_ep *ep, const struct fi_alias *arg);

extern struct fi_ops_ep wf_prov_alias_ops;

static inline struct wf_prov_alias *wf_prov_alias_of(struct fid_ep *fid)
{
	return wf_container_of(fid, struct wf_prov_alias, fid);
}

static inline bool wf_prov_alias_is(const struct fid_ep *fid)
{
	return fid->ops == &wf_prov_alias_ops;
}

/* For calls that may be given either. */
static inline struct wf_prov_ep *wf_prov_alias_ep(struct fid_ep *fid)
{
	return wf_prov_alias_is(fid) ? wf_prov_alias_of(fid)->ep :
				       wf_prov_ep_of(fid);
}

static inline uint64_t wf_prov_alias_tx_flags(struct fid_ep *fid)
{
	return wf_prov_alias_is(fid) ? wf_prov_alias_of(fid)->tx_flags :
				       wf_prov_ep_of(fid)->tx_flags;
}

static inline uint64_t wf_prov_alias_rx_flags(struct fid_ep *fid)
{
	return wf_prov_alias_is(fid) ? wf_prov_alias_of(fid)->rx_flags :
				       wf_prov_ep_of(fid)->rx_flags;
}

#endif
