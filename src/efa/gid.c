/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as GIDs. A process of the software device is an IPv4 address and a
 * UDP port; its GID is link-local (fe80::/10, as EFA's are) and holds both, so
 * that whoever has a GID needs nobody to resolve it:
 *
 *   0: fe 80 | 2: 0 0 0 0 | 6: port | 8: 0 0 ff fe | 12: IPv4 address
 */
#include <arpa/inet.h>
#include <string.h>

#include "efa/efa.h"

static const uint8_t prefix[6] = { 0xfe, 0x80 };
static const uint8_t middle[4] = { 0, 0, 0xff, 0xfe };

void wf_efa_gid_of(const struct wf_addr *addr, union ibv_gid *gid)
{
	memcpy(gid->raw, prefix, sizeof(prefix));
	memcpy(gid->raw + 6, &addr->in.sin_port, 2);
	memcpy(gid->raw + 8, middle, sizeof(middle));
	memcpy(gid->raw + 12, &addr->in.sin_addr, 4);
}

int wf_efa_gid_addr(const union ibv_gid *gid, struct wf_addr *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (memcmp(gid->raw, prefix, sizeof(prefix)) ||
	    memcmp(gid->raw + 8, middle, sizeof(middle)))
		return -EINVAL;
	memcpy(&in.sin_port, gid->raw + 6, 2);
	memcpy(&in.sin_addr, gid->raw + 12, 4);
	if (!in.sin_port || !in.sin_addr.s_addr)
		return -EINVAL;
	return wf_base_addr_set(addr, &in, sizeof(in));
}
