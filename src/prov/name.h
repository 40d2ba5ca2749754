/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's address: the socket that owns it, or the port of a device
 * without sockets, and fi_getname().
 */
#ifndef WF_PROV_NAME_H
#define WF_PROV_NAME_H

#include <rdma/fi_cm.h>

struct wf_prov_ep;

/* Binds the endpoint's socket to @sa, or to an address of the default
 * interface when NULL. 0, -FI_EADDRINUSE or another -FI_E*. */
int wf_prov_name_bind(struct wf_prov_ep *ep, const void *sa, size_t len,
		      uint32_t addr_format);
void wf_prov_name_unbind(struct wf_prov_ep *ep);
/* In a forked child. Async-signal-safe. */
void wf_prov_name_forked(struct wf_prov_ep *ep);

extern struct fi_ops_cm wf_prov_name_ops;

#endif
