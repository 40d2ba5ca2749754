/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues as libfabric sees them. Reading drives the progress of
 * every endpoint bound to the queue.
 *
 * Order of locks: the queue's list of endpoints, an endpoint, the queue's ring.
 */
#ifndef WF_PROV_CQ_H
#define WF_PROV_CQ_H

#include <stdatomic.h>

#include <rdma/fi_eq.h>

#include "base/fork.h"
#include "base/list.h"
#include "base/lock.h"
#include "op/compq.h"

/* Where libfabric 1.20 and later keep fi_cq_err_entry.src_addr. */
#define WF_PROV_CQ_ERR_SRC_AT 80

struct wf_prov_domain;
struct wf_prov_ep;

struct wf_prov_cq {
	struct fid_cq fid;
	struct wf_prov_ep *only_ep; /* when there is just one */
	uint32_t reads;		    /* a busy reader drives progress, too */
	struct wf_compq q;
	enum fi_cq_format format;
	struct wf_lock ep_lock;
	struct wf_list eps; /* wf_prov_cq_link */
	struct wf_prov_domain *domain;
	atomic_int refs;
	atomic_bool signaled;
	enum fi_wait_obj wait_obj;
	struct wf_fork_watch fork_watch;
};

/* An endpoint's place in a queue's list. */
struct wf_prov_cq_link {
	struct wf_list link;
	struct wf_prov_ep *ep;
};

int wf_prov_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		    struct fid_cq **cq, void *context);

/* An endpoint that was enabled, or is being closed. */
void wf_prov_cq_attach(struct wf_prov_cq *cq, struct wf_prov_cq_link *link);
void wf_prov_cq_detach(struct wf_prov_cq *cq, struct wf_prov_cq_link *link);

/* Drives every endpoint of the queue. */
void wf_prov_cq_progress(struct wf_prov_cq *cq);

#endif
