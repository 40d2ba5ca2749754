/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory registration, fi_mr(3). Local buffers need none: a registration
 * defines what peers may access, and the descriptor is accepted and ignored.
 * The registrations themselves are in op/reg.h.
 */
#ifndef WF_PROV_MR_H
#define WF_PROV_MR_H

#include <rdma/fi_domain.h>

/* Not const, because libfabric's pointers to tables are not. */
extern struct fi_ops_mr wf_prov_mr_ops;

#endif
