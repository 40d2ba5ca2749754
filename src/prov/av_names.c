/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Increments nodes and services. Knows no AV.
 */
#include "prov/av_names.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/hints.h"
#include "prov/provider.h"
#include "prov/resolve.h"

/* A range is memory before it is addresses; more is a mistake. */
#define MAX_RANGE ((size_t)1 << 20)
#define MAX_NAME 256

/* 10.0.0.255 is followed by 10.0.1.0. False past the last address. */
static bool count_up(struct wf_addr *addr, size_t by)
{
	unsigned char *bytes = addr->in6.sin6_addr.s6_addr;
	size_t len = sizeof(addr->in6.sin6_addr.s6_addr);

	if (addr->sa.sa_family == AF_INET) {
		bytes = (unsigned char *)&addr->in.sin_addr;
		len = sizeof(addr->in.sin_addr);
	}
	while (len-- && by) {
		by += bytes[len];
		bytes[len] = (unsigned char)by;
		by >>= 8;
	}
	return !by;
}

/* "host09" + 1 = "host10". The number of digits is kept where it can be. */
static int name_up(const char *node, size_t by, char *name, size_t len)
{
	size_t digits = strlen(node);
	unsigned long long number;
	int width, ret;

	while (digits && isdigit((unsigned char)node[digits - 1]))
		digits--;
	width = (int)(strlen(node) - digits);
	if (!width || width > 15)
		return by ? -FI_EINVAL :
			    (snprintf(name, len, "%s", node) < (int)len ?
				     0 :
				     -FI_EINVAL);
	number = strtoull(node + digits, NULL, 10) + by;
	ret = snprintf(name, len, "%.*s%0*llu", (int)digits, node, width,
		       number);
	return ret < (int)len ? 0 : -FI_EINVAL;
}

static int resolve_one(const char *node, const char *service, int family,
		       struct wf_addr *addr)
{
	struct wf_prov_resolve query = {
		.node = node,
		.service = service,
		.family = family,
	};

	return wf_prov_resolve_name(&query, addr);
}

static int fill(struct wf_prov_av_names *names, const char *node,
		const char *service, int family)
{
	unsigned char ip[sizeof(struct in6_addr)];
	bool numeric = inet_pton(AF_INET, node, ip) == 1 ||
		       inet_pton(AF_INET6, node, ip) == 1;
	char name[MAX_NAME];

	for (size_t i = 0; i < names->count; i++) {
		int ret = 0;

		if (numeric && i) {
			names->nodes[i] = names->nodes[0];
			ret = names->errors[0] ? -names->errors[0] :
			      count_up(&names->nodes[i], i) ? 0 :
							      -FI_EINVAL;
		} else if (numeric) {
			/* Not narrowed to the AV's family: the number says
			 * which it is. */
			ret = resolve_one(node, service, AF_UNSPEC,
					  &names->nodes[i]);
		} else {
			ret = name_up(node, i, name, sizeof(name));
			if (ret)
				return ret;
			ret = resolve_one(name, service, family,
					  &names->nodes[i]);
		}
		names->errors[i] = -ret;
	}
	return 0;
}

int wf_prov_av_names_init(struct wf_prov_av_names *names, const char *node,
			  size_t nodecnt, const char *service, size_t svccnt,
			  uint32_t addr_format)
{
	int family = wf_prov_hints_family(addr_format);
	int ret = -FI_EINVAL;

	if (addr_format == FI_ADDR_EFA) {
		WF_FI_WARN(FI_LOG_AV, "insert: no name stands for an address "
				      "of an EFA device\n");
		return -FI_ENOSYS;
	}
	if (!node || !service || nodecnt > MAX_RANGE || svccnt > MAX_RANGE ||
	    nodecnt * svccnt > MAX_RANGE ||
	    (svccnt > 1 && !isdigit((unsigned char)service[0]))) {
		WF_FI_WARN(FI_LOG_AV,
			   "insert: not a range of nodes and services\n");
		return -FI_EINVAL;
	}
	names->count = nodecnt;
	names->nodes = calloc(nodecnt ? nodecnt : 1, sizeof(*names->nodes));
	names->errors = calloc(nodecnt ? nodecnt : 1, sizeof(*names->errors));
	if (!names->nodes || !names->errors) {
		ret = -FI_ENOMEM;
		goto err_free;
	}
	ret = fill(names, node, service, family < 0 ? AF_UNSPEC : family);
	if (!ret)
		return 0;
	WF_FI_WARN(FI_LOG_AV, "insert: node %s cannot be counted up\n", node);
err_free:
	wf_prov_av_names_fini(names);
	return ret;
}

void wf_prov_av_names_fini(struct wf_prov_av_names *names)
{
	free(names->nodes);
	free(names->errors);
}

int wf_prov_av_names_get(const struct wf_prov_av_names *names, size_t node,
			 size_t service, struct wf_addr *addr)
{
	size_t port;

	if (names->errors[node])
		return -names->errors[node];
	*addr = names->nodes[node];
	port = wf_base_addr_port(addr) + service;
	if (port > UINT16_MAX)
		return -FI_EINVAL;
	wf_base_addr_set_port(addr, (uint16_t)port);
	return 0;
}
