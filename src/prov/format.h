/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as applications have them, by their format: socket addresses, or
 * FI_ADDR_EFA for endpoints on an EFA device.
 */
#ifndef WF_PROV_FORMAT_H
#define WF_PROV_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_EFA. */
uint32_t wf_prov_format_of(const struct wf_addr *addr);

/* Bytes of @addr in its format; writes the first @room of them. */
size_t wf_prov_format_put(const struct wf_addr *addr, void *to, size_t room);

/* -EINVAL: it is not an address of @format (any other than FI_ADDR_EFA: of a
 * socket). */
int wf_prov_format_get(uint32_t format, const void *from, size_t len,
		       struct wf_addr *addr);

/* fi_av_straddr(): "fi_sockaddr_in://1.2.3.4:5", as libfabric prints it. NULL
 * for what is no address of @format. */
const char *wf_prov_format_str(uint32_t format, const void *addr, char *buf,
			       size_t *len);

#endif
