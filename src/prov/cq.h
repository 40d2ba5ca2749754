/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues as libfabric sees them. Reading drives the progress of
 * every endpoint bound to the queue.
 */
#ifndef WF_PROV_CQ_H
#define WF_PROV_CQ_H

#include <stdatomic.h>

#include <rdma/fi_eq.h>

#include "base/fork.h"
#include "op/compq.h"
#include "prov/eps.h"
#include "prov/wait.h"

/* Where libfabric 1.20 and later keep fi_cq_err_entry.src_addr. */
#define WF_PROV_CQ_ERR_SRC_AT 80

struct wf_prov_domain;

struct wf_prov_cq {
	struct fid_cq fid;
	struct wf_prov_eps eps;
	uint32_t reads; /* a busy reader drives progress, too */
	struct wf_compq q;
	enum fi_cq_format format;
	struct wf_prov_domain *domain;
	atomic_int refs;
	atomic_bool signaled;
	struct wf_prov_wait wait;
	struct wf_fork_watch fork_watch;
};

int wf_prov_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		    struct fid_cq **cq, void *context);

#endif
