/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matches fi_getinfo()'s hints against what weft supports. Addresses and names
 * of interfaces are checked elsewhere.
 */
#ifndef WF_PROV_HINTS_H
#define WF_PROV_HINTS_H

#include <stdint.h>

#include <rdma/fabric.h>

/* All of them: 0, or -FI_ENODATA with the reason logged at level info. Members
 * of @hints may be NULL. @version is the API the application speaks. */
int wf_prov_hints_check(uint32_t version, const struct fi_info *hints);

/* Only what belongs to a domain, for fi_domain(). */
int wf_prov_hints_check_domain(uint32_t version, const struct fi_info *hints);

/* Returns what applications of this API version may ask for. */
uint64_t wf_prov_hints_caps(uint32_t version);

/* AF_UNSPEC, AF_INET, AF_INET6 or WF_ADDR_EFA; -1 for a format that is none of ours. */
int wf_prov_hints_family(uint32_t addr_format);

#endif
