/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats of addresses.
 */
#include "prov/format.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

uint32_t wf_prov_format_of(const struct wf_addr *addr)
{
	if (wf_base_addr_is_efa(addr))
		return FI_ADDR_EFA;
	return addr->sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

size_t wf_prov_format_put(const struct wf_addr *addr, void *to, size_t room)
{
	size_t len = wf_base_addr_len(addr);
	uint8_t raw[WF_ADDR_EFA_RAW];
	const void *from = addr;

	if (wf_base_addr_is_efa(addr)) {
		wf_base_addr_get_raw(addr, raw);
		len = sizeof(raw);
		from = raw;
	}
	if (room)
		memcpy(to, from, room < len ? room : len);
	return len;
}

int wf_prov_format_get(uint32_t format, const void *from, size_t len,
		       struct wf_addr *addr)
{
	int err;

	if (format == FI_ADDR_EFA)
		return wf_base_addr_set_raw(addr, from, len);
	err = wf_base_addr_set(addr, from, len);
	return !err && wf_base_addr_is_efa(addr) ? -EINVAL : err;
}

/* Printed as it is, not as the identity that an AV would store. */
const char *wf_prov_format_str(uint32_t format, const void *addr, char *buf,
			       size_t *len)
{
	char ip[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	struct wf_addr efa;
	sa_family_t family;
	int need;

	if (!addr || !len)
		return NULL;
	memcpy(&family, addr, sizeof(family)); /* may not be aligned */
	if (format == FI_ADDR_EFA) {
		if (wf_base_addr_set_raw(&efa, addr, WF_ADDR_EFA_RAW))
			return NULL;
		inet_ntop(AF_INET6, efa.efa.gid, ip, sizeof(ip));
		need = snprintf(buf, *len, "fi_addr_efa://[%s]:%u:%u", ip,
				efa.efa.qpn, efa.efa.qkey);
	} else if (family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip));
		need = snprintf(buf, *len, "fi_sockaddr_in://%s:%u", ip,
				ntohs(in.sin_port));
	} else if (family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip));
		need = snprintf(buf, *len, "fi_sockaddr_in6://[%s]:%u", ip,
				ntohs(in6.sin6_port));
	} else {
		return NULL;
	}
	*len = (size_t)need + 1;
	return buf;
}
