/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain object: the parent of endpoints, AVs and CQs, and the place where
 * the threading model is decided.
 */
#ifndef WF_PROV_DOMAIN_H
#define WF_PROV_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>

#include "base/list.h"

struct wf_prov_eq;
struct wf_prov_fabric;

struct wf_prov_domain {
	struct fid_domain fid;
	struct wf_prov_fabric *fabric;
	atomic_int refs;
	enum fi_threading threading;
	bool locked; /* objects below take real locks: all models except
		      * FI_THREAD_DOMAIN and FI_THREAD_COMPLETION */
	enum fi_av_type av_type; /* default for AVs opened with UNSPEC */
	uint32_t addr_format;	 /* FI_SOCKADDR_IN or _IN6 */
	struct wf_prov_eq *eq;	 /* bound, or NULL; holds a reference */
	pthread_mutex_t mr_lock;
	struct wf_list mrs; /* registrations (mr.c) */
};

int wf_prov_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context);
struct wf_prov_domain *wf_prov_domain_of(struct fid_domain *fid);

/* Whether the object was opened by this provider. */
bool wf_prov_domain_is_ours(const struct fid_domain *fid);

#endif
