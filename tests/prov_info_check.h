/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions about the results of fi_getinfo().
 */
#ifndef WEFT_TESTS_PROV_INFO_CHECK_H
#define WEFT_TESTS_PROV_INFO_CHECK_H

#include "prov_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>

/* TEST-NET-3: no interface has it. */
#define NODE_ONLY_DOCUMENTED "203.0.113.7"

static inline struct fi_info *get_info(uint32_t version, const char *node,
				       const char *service, uint64_t flags,
				       const struct fi_info *hints, int want)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(version, node, service, flags, hints, &info);

	CHECK(ret == want, "fi_getinfo(%s, %s, 0x%llx): %s, want %s",
	      node ? node : "-", service ? service : "-",
	      (unsigned long long)flags, fi_strerror(-ret), fi_strerror(-want));
	return ret ? NULL : info;
}

static inline bool is_addr(const void *addr, const char *ip, unsigned int port)
{
	const struct sockaddr_in *in = addr;
	struct in_addr want;

	inet_pton(AF_INET, ip, &want);
	return addr && in->sin_family == AF_INET &&
	       in->sin_addr.s_addr == want.s_addr &&
	       ntohs(in->sin_port) == port;
}

static inline bool is_loopback(const struct fi_info *info)
{
	const struct sockaddr_in *in = info->src_addr;
	const struct sockaddr_in6 *in6 = info->src_addr;

	if (in->sin_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static inline void put_src(struct fi_info *h, const char *ip, uint16_t port)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, ip, &in->sin_addr);
	h->src_addr = in;
	h->src_addrlen = sizeof(*in);
}

static inline bool domain_lo_ok(const struct fi_info *i)
{
	return !strcmp(i->domain_attr->name, "lo") && is_loopback(i);
}

#endif
