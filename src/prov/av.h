/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors. An fi_addr_t is an index for both AV types. The AV has a
 * lock of its own, because under FI_THREAD_COMPLETION two threads may use one
 * AV through different endpoints; it is below the endpoint's lock and never
 * held while a user is called back.
 */
#ifndef WF_PROV_AV_H
#define WF_PROV_AV_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_domain.h>

#include "base/addr.h"
#include "base/list.h"

struct wf_prov_av;
struct wf_prov_domain;

/* An endpoint bound to the AV. Called with no AV lock held. */
struct wf_prov_av_user {
	struct wf_list link;
	void (*inserted)(struct wf_prov_av_user *user, fi_addr_t fi_addr,
			 const struct wf_addr *addr);
	void (*removed)(struct wf_prov_av_user *user, fi_addr_t fi_addr);
};

int wf_prov_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		    struct fid_av **av, void *context);

/* The AV behind a fid_av of ours. */
struct wf_prov_av *wf_prov_av_of(struct fid_av *fid);

/* 0, or -FI_EINVAL when @fi_addr is not in the AV. Safe under the endpoint's
 * lock. */
int wf_prov_av_get(struct wf_prov_av *av, fi_addr_t fi_addr,
		   struct wf_addr *addr);

/* FI_ADDR_NOTAVAIL when unknown. Safe under the endpoint's lock. */
fi_addr_t wf_prov_av_find(struct wf_prov_av *av, const struct wf_addr *addr);

/* NULL, or for an AV that another process changes: how often it did. Users of
 * such an AV are not called; they look at this count. */
const _Atomic uint64_t *wf_prov_av_changes(const struct wf_prov_av *av);

/* Adds or removes a user; each user holds a reference on the AV. Not under the
 * endpoint's lock. */
void wf_prov_av_attach(struct wf_prov_av *av, struct wf_prov_av_user *user);
void wf_prov_av_detach(struct wf_prov_av *av, struct wf_prov_av_user *user);

#endif
