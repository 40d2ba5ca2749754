/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider object that libfabric loads, and the limits it states.
 */
#ifndef WF_PROV_PROVIDER_H
#define WF_PROV_PROVIDER_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define WF_PROV_NAME "weft"
#define WF_PROV_FABRIC_NAME "weft"
#define WF_PROV_VERSION FI_VERSION(0, 1)

#define WF_PROV_IOV_LIMIT 4
#define WF_PROV_MAX_MSG_SIZE ((size_t)1 << 40)
#define WF_PROV_MIN_QUEUE 16
#define WF_PROV_MAX_QUEUE 65536
#define WF_PROV_MAX_INJECT 4096

extern struct fi_provider wf_prov_provider;

#define WF_FI_WARN(subsys, ...) FI_WARN(&wf_prov_provider, subsys, __VA_ARGS__)
#define WF_FI_INFO(subsys, ...) FI_INFO(&wf_prov_provider, subsys, __VA_ARGS__)

#endif
