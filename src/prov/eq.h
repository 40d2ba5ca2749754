/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: asynchronous AV insertion reports here, and fi_eq_write() lets
 * an application pass events of its own.
 */
#ifndef WF_PROV_EQ_H
#define WF_PROV_EQ_H

#include <stdbool.h>

#include <rdma/fi_eq.h>

struct wf_prov_eq;

int wf_prov_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		    struct fid_eq **eq, void *context);
struct wf_prov_eq *wf_prov_eq_of(struct fid_eq *fid);
void wf_prov_eq_ref(struct wf_prov_eq *eq);
void wf_prov_eq_unref(struct wf_prov_eq *eq);
bool wf_prov_eq_empty(struct wf_prov_eq *eq);

/* Add an event or an error; the arguments are copied, including err_data. They
 * are never refused because the queue is full: its size limits only
 * fi_eq_write(). 0 or -FI_ENOMEM. */
int wf_prov_eq_post(struct wf_prov_eq *eq, uint32_t event, const void *buf,
		    size_t len, uint64_t flags);
int wf_prov_eq_post_err(struct wf_prov_eq *eq,
			const struct fi_eq_err_entry *err);

#endif
