/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll sets: which of several queues and counters have something to read.
 * libfabric 2.x has none any more.
 */
#ifndef WF_PROV_POLL_H
#define WF_PROV_POLL_H

#include <rdma/fi_domain.h>

int wf_prov_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		      struct fid_poll **poll);

#endif
