/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses as identities: IPv4 and IPv6, compared and hashed by
 * family, address, port and, if link-local, scope. An IPv4-mapped IPv6 address
 * is turned into plain IPv4, so that one peer never has two names. The place
 * that an address may state (place.h) is kept, and is no part of its identity
 * here.
 */
#ifndef WF_BASE_ADDR_H
#define WF_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/types.h"

/* "[" IPv6 "%" scope "]:" port, and the end of the string. */
#define WF_ADDR_STR_LEN 80

struct wf_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

/* Copies what matters of @sa and zeroes the rest. -EINVAL unless it is a whole
 * IPv4 or IPv6 address. */
int wf_base_addr_set(struct wf_addr *addr, const void *sa, size_t len);
socklen_t wf_base_addr_len(const struct wf_addr *addr);
bool wf_base_addr_equal(const struct wf_addr *a, const struct wf_addr *b);
uint64_t wf_base_addr_hash(const struct wf_addr *addr);
uint16_t wf_base_addr_port(const struct wf_addr *addr); /* host order */
void wf_base_addr_set_port(struct wf_addr *addr, uint16_t port);
bool wf_base_addr_is_any(const struct wf_addr *addr); /* 0.0.0.0 or :: */

/* Whether the address belongs to an interface of this network namespace.
 * Makes system calls. */
bool wf_base_addr_is_local(const struct wf_addr *addr);
/* The same for callers that can ask again: 1, 0, or -errno if there is no
 * descriptor or memory to find it out now. */
int wf_base_addr_find_local(const struct wf_addr *addr);

/* "1.2.3.4:5" or "[fe80::1%2]:5". Returns @buf. */
const char *wf_base_addr_str(const struct wf_addr *addr, char *buf, size_t len);

#endif
