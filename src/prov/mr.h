/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory registration, fi_mr(3). For local buffers weft needs none: a
 * registration is what peers may touch, and the descriptor is accepted and not
 * looked at. The registrations themselves are in op/reg.h.
 */
#ifndef WF_PROV_MR_H
#define WF_PROV_MR_H

#include <rdma/fi_domain.h>

/* Not const, because libfabric's pointers to tables are not. */
extern struct fi_ops_mr wf_prov_mr_ops;

#endif
