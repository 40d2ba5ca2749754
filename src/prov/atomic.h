/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3).
 */
#ifndef WF_PROV_ATOMIC_H
#define WF_PROV_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

extern struct fi_ops_atomic wf_prov_atomic_ops;

int wf_prov_atomic_query(struct fid_domain *domain, enum fi_datatype datatype,
			 enum fi_op op, struct fi_atomic_attr *attr,
			 uint64_t flags);

#endif
