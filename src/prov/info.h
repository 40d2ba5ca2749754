/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(): what weft supports, matched against the request.
 */
#ifndef WF_PROV_INFO_H
#define WF_PROV_INFO_H

#include <stdint.h>

#include <rdma/fabric.h>

int wf_prov_info_get(uint32_t version, const char *node, const char *service,
		     uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info);

#endif
