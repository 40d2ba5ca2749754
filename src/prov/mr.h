/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory registration for messages. weft needs none (mr_mode 0): a
 * registration only has a key that is unique in its domain and a descriptor
 * that transfers accept and do not look at. Remote access comes with RMA.
 */
#ifndef WF_PROV_MR_H
#define WF_PROV_MR_H

#include <rdma/fi_domain.h>

/* Not const, because libfabric's pointers to tables are not. */
extern struct fi_ops_mr wf_prov_mr_ops;

#endif
