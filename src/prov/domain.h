/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain object: the parent of endpoints, AVs and CQs, and the place where
 * the threading model is decided.
 */
#ifndef WF_PROV_DOMAIN_H
#define WF_PROV_DOMAIN_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>

#include "base/fork.h"
#include "op/reg.h"
#include "os/thread.h"
#include "prov/eps.h"

struct wf_prov_cntr;
struct wf_prov_ep;
struct wf_prov_eq;
struct wf_prov_fabric;

struct wf_prov_domain {
	struct fid_domain fid;
	struct wf_prov_fabric *fabric;
	atomic_int refs;
	bool locked;   /* objects below take real locks: all models except
			* FI_THREAD_DOMAIN */
	bool attended; /* FI_PROGRESS_AUTO for data: a thread drives endpoints
			* (core/attend.h) */
	enum fi_av_type av_type; /* default for AVs opened with UNSPEC */
	uint32_t addr_format;	 /* FI_SOCKADDR_IN or _IN6 */
	struct wf_prov_eq *eq;	 /* bound, or NULL; holds a reference */
	bool virtual_addrs;	 /* FI_MR_VIRT_ADDR; else offsets */
	bool own_keys;		 /* FI_MR_PROV_KEY; else the user's */
	/* Keys may be those of an EFA device, by which peers access memory
	 * without us: not if the application wants to know of accesses. */
	bool hard_keys;
	/* FI_MR_LOCAL: the EFA device knows memory that the application has
	 * registered, and operations name it (desc). */
	bool described;
	struct wf_regs regs; /* registrations (mr.c) */
	struct wf_fork_watch fork_watch;
	/* Counters of remote accesses to registrations depend on every
	 * endpoint. */
	struct wf_os_mutex lock;
	struct wf_prov_eps eps;	 /* enabled */
	struct wf_list mr_cntrs; /* wf_prov_cntr */
};

int wf_prov_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context);
struct wf_prov_domain *wf_prov_domain_of(struct fid_domain *fid);

/* An endpoint was enabled, or is being closed. 0 or -ENOMEM. */
int wf_prov_domain_add_ep(struct wf_prov_domain *domain, struct wf_prov_ep *ep);
void wf_prov_domain_del_ep(struct wf_prov_domain *domain,
			   struct wf_prov_ep *ep);

/* @cntr counts accesses to a registration from now on; or is being closed. */
int wf_prov_domain_add_cntr(struct wf_prov_domain *domain,
			    struct wf_prov_cntr *cntr);
void wf_prov_domain_del_cntr(struct wf_prov_domain *domain,
			     struct wf_prov_cntr *cntr);

/* The registration with @key is gone: devices stop to use its memory. */
void wf_prov_domain_unregistered(struct wf_prov_domain *domain, uint64_t key);

/* Whether the object was opened by this provider. */
bool wf_prov_domain_is_ours(const struct fid_domain *fid);

#endif
