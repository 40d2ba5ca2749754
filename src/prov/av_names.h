/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for AVs: ranges of nodes and services as fi_av_insertsym() counts them.
 */
#ifndef WF_PROV_AV_NAMES_H
#define WF_PROV_AV_NAMES_H

#include <stddef.h>

#include <rdma/fi_domain.h>

#include "base/addr.h"

struct wf_prov_av_names {
	struct wf_addr *nodes; /* the port is the first service's */
	int *errors;	       /* per node: 0 or FI_E* */
	size_t count;
};

/* Resolves @nodecnt nodes that count up from @node: "10.1.1.9", "10.1.1.10" or
 * "host09", "host10". Asks the network where they are names. A node that does
 * not resolve is an error of that node; others are returned: -FI_EINVAL,
 * -FI_ENOMEM. */
int wf_prov_av_names_init(struct wf_prov_av_names *names, const char *node,
			  size_t nodecnt, const char *service, size_t svccnt,
			  uint32_t addr_format);
void wf_prov_av_names_fini(struct wf_prov_av_names *names);

/* Service number @service of node number @node. 0 or -FI_E*. */
int wf_prov_av_names_get(const struct wf_prov_av_names *names, size_t node,
			 size_t service, struct wf_addr *addr);

#endif
