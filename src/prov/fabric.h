/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric object: remembers the API version of the application.
 */
#ifndef WF_PROV_FABRIC_H
#define WF_PROV_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>

struct wf_prov_fabric {
	struct fid_fabric fid;
	uint32_t api_version;
	atomic_int refs; /* domains, event queues and wait objects */
};

int wf_prov_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
			void *context);
struct wf_prov_fabric *wf_prov_fabric_of(struct fid_fabric *fid);

/* Whether the object was opened by this provider. */
bool wf_prov_fabric_is_ours(const struct fid_fabric *fid);

#endif
