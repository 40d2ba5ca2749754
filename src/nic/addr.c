/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of NICs: compared, hashed, and made from socket addresses.
 */
#include "nic/addr.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/place.h"

static_assert(sizeof(struct wf_addr) <= WF_NIC_ADDR_MAX, "socket addresses");

bool wf_nic_addr_equal(const struct wf_nic_addr *a, const struct wf_nic_addr *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

uint64_t wf_nic_addr_hash(const struct wf_nic_addr *addr)
{
	return wf_base_hash(addr->bytes, addr->len);
}

void wf_nic_addr_of_socket(struct wf_nic_addr *addr, const struct wf_addr *from)
{
	struct wf_addr plain;

	/* Zeroes all that is no part of its identity. */
	addr->len = 0;
	if (wf_base_addr_set(&plain, from, wf_base_addr_len(from)))
		return;
	wf_base_place_put(&plain, 0);
	addr->len = (uint16_t)wf_base_addr_len(&plain);
	memcpy(addr->bytes, &plain, addr->len);
}

int wf_nic_addr_to_socket(const struct wf_nic_addr *addr, struct wf_addr *to)
{
	return wf_base_addr_set(to, addr->bytes, addr->len);
}
