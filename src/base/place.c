/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places: how they are determined, and where an address keeps one.
 */
#include "base/place.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "os/file.h"
#include "os/net.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define PLACE_BITS 48

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdu;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 33;
}

uint64_t wf_base_place_own(void)
{
	uint64_t hash, space;
	char boot[64];

	if (wf_os_read_text(BOOT_ID, boot, sizeof(boot)) <= 0 ||
	    wf_os_netns(&space))
		return 0;
	hash = wf_base_hash(boot, strlen(boot));
	/* Never 0. The kernel numbers namespaces consecutively: the lower bits
	 * of two that exist at the same time differ. */
	return (mix(hash) >> 40 | 1) << 24 | (space & 0xffffff);
}

/* The place with its check number, as an address has it. */
static uint64_t pack(uint64_t place)
{
	return place ? mix(place) << PLACE_BITS | place : 0;
}

static uint64_t unpack(uint64_t packed)
{
	uint64_t place = packed & ((1ull << PLACE_BITS) - 1);

	return packed == pack(place) ? place : 0;
}

uint64_t wf_base_place_in(const struct sockaddr_in *in)
{
	uint64_t packed;

	static_assert(sizeof(in->sin_zero) == sizeof(packed), "as large");
	memcpy(&packed, in->sin_zero, sizeof(packed));
	return unpack(packed);
}

uint64_t wf_base_place_in6(const struct sockaddr_in6 *in6)
{
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		return 0;
	return unpack((uint64_t)in6->sin6_flowinfo << 32 | in6->sin6_scope_id);
}

uint64_t wf_base_place_of(const struct wf_addr *addr)
{
	if (wf_base_addr_is_efa(addr))
		return 0;
	return addr->sa.sa_family == AF_INET ? wf_base_place_in(&addr->in) :
					       wf_base_place_in6(&addr->in6);
}

void wf_base_place_put(struct wf_addr *addr, uint64_t place)
{
	uint64_t packed = pack(place);

	if (wf_base_addr_is_efa(addr))
		return;
	if (addr->sa.sa_family == AF_INET) {
		memcpy(addr->in.sin_zero, &packed, sizeof(packed));
	} else if (!IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr)) {
		addr->in6.sin6_flowinfo = (uint32_t)(packed >> 32);
		addr->in6.sin6_scope_id = (uint32_t)packed;
	}
}
