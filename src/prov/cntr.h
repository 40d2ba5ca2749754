/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters as libfabric sees them. Reading one drives the progress of the
 * endpoints that count there.
 */
#ifndef WF_PROV_CNTR_H
#define WF_PROV_CNTR_H

#include <stdatomic.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/fork.h"
#include "op/cntr.h"
#include "prov/eps.h"
#include "prov/wait.h"

struct wf_prov_domain;

struct wf_prov_cntr {
	struct fid_cntr fid;
	struct wf_cntr count;
	_Atomic uint64_t seen; /* sum of both at the last read */
	struct wf_prov_eps eps;
	struct wf_list mr_link; /* in domain->mr_cntrs */
	struct wf_prov_wait wait;
	struct wf_prov_domain *domain;
	atomic_int refs;
	struct wf_fork_watch fork_watch;
};

int wf_prov_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		      struct fid_cntr **cntr, void *context);

static inline struct wf_prov_cntr *wf_prov_cntr_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_cntr, fid.fid);
}

#endif
