/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses as identities: IPv4 and IPv6, compared and hashed by
 * family, address, port and, if link-local, scope. An IPv4-mapped IPv6 address
 * is turned into plain IPv4, so that one peer never has two names. The place
 * that an address may state (place.h) is kept, and is no part of its identity
 * here.
 *
 * An address can also be a queue pair of an EFA device. Its family is one that
 * no socket has, so that the kernel refuses it.
 */
#ifndef WF_BASE_ADDR_H
#define WF_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/types.h"

/* "[" IPv6 "%" scope "]:" port, and the end of the string. */
#define WF_ADDR_STR_LEN 80

#define WF_ADDR_EFA 0x0efa /* a family of our own */

struct wf_addr_efa {
	sa_family_t family;
	uint16_t qpn;
	uint32_t qkey;
	uint8_t gid[16];
};

struct wf_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct wf_addr_efa efa;
	};
};

/* Copies what matters of @sa and zeroes the rest. -EINVAL unless it is a whole
 * IPv4 or IPv6 address, or a struct wf_addr_efa. */
int wf_base_addr_set(struct wf_addr *addr, const void *sa, size_t len);

static inline bool wf_base_addr_is_efa(const struct wf_addr *addr)
{
	return addr->sa.sa_family == WF_ADDR_EFA;
}

/* FI_ADDR_EFA, as applications have it and as libfabric's efa sends it: the
 * GID, 16 bits of QPN, 16 unused, 32 of qkey, 64 unused; little-endian. */
#define WF_ADDR_EFA_RAW 32
/* -EINVAL: it is shorter, or has no GID. */
int wf_base_addr_set_raw(struct wf_addr *addr, const void *raw, size_t len);
void wf_base_addr_get_raw(const struct wf_addr *addr,
			  uint8_t raw[WF_ADDR_EFA_RAW]);

socklen_t wf_base_addr_len(const struct wf_addr *addr);
bool wf_base_addr_equal(const struct wf_addr *a, const struct wf_addr *b);
uint64_t wf_base_addr_hash(const struct wf_addr *addr);
uint16_t wf_base_addr_port(const struct wf_addr *addr); /* host order */
void wf_base_addr_set_port(struct wf_addr *addr, uint16_t port);
bool wf_base_addr_is_any(const struct wf_addr *addr); /* 0.0.0.0 or :: */
/* ::, to which a socket of ours is bound for IPv4 as well. */
bool wf_base_addr_is_dual(const struct wf_addr *addr);
/* Whether it names one endpoint: not any address, and with a port. */
bool wf_base_addr_is_whole(const struct wf_addr *addr);

/* Whether the address belongs to an interface of this network namespace. A
 * queue pair never does (shm/name.h says who has its name). Makes system
 * calls. */
bool wf_base_addr_is_local(const struct wf_addr *addr);
/* The same for callers that can ask again: 1, 0, or -errno if there is no
 * descriptor or memory to find it out now. */
int wf_base_addr_find_local(const struct wf_addr *addr);

/* "1.2.3.4:5", "[fe80::1%2]:5" or, of a queue pair, "efa-fe80::1-QPN-QKEY".
 * Returns @buf. */
const char *wf_base_addr_str(const struct wf_addr *addr, char *buf, size_t len);

#endif
