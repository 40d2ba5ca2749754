/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header says where an endpoint is: the machine, identified by its boot,
 * and the network namespace on it. Socket addresses are unique in a network
 * namespace only, and each has 127.0.0.1; with its place an address names one
 * endpoint.
 *
 * An endpoint that can be reached from other namespaces states its place in its
 * address, in bytes that sockets do not use: sin_zero, or the flow label and the
 * scope of an IPv6 address that is not link-local. A check number keeps out what
 * an application left there.
 */
#ifndef WF_BASE_PLACE_H
#define WF_BASE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* The place of the calling thread; 0: it cannot be found out. Makes system
 * calls. */
uint64_t wf_base_place_own(void);

/* The place that an address states; 0: none. */
uint64_t wf_base_place_of(const struct wf_addr *addr);
uint64_t wf_base_place_in(const struct sockaddr_in *in);
uint64_t wf_base_place_in6(const struct sockaddr_in6 *in6);

/* Has @addr state @place, or none (0). A link-local address and a queue pair of
 * an EFA device state none: their other bytes are all in use. */
void wf_base_place_put(struct wf_addr *addr, uint64_t place);

/* The two parts, 24 bits each. */
static inline uint32_t wf_base_place_host(uint64_t place)
{
	return (uint32_t)(place >> 24) & 0xffffff;
}

static inline uint32_t wf_base_place_space(uint64_t place)
{
	return (uint32_t)place & 0xffffff;
}

#endif
