/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For unit tests: the provider, called without libfabric's loader, so that these
 * tests run under AddressSanitizer, too.
 */
#ifndef WF_PROV_UNLOADED_TEST_H
#define WF_PROV_UNLOADED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#define MUST(call) assert_int_equal((call), 0)

FI_EXT_INI; /* of init.c; no header declares it */

static struct fi_info *info;
static struct fid_fabric *fabric;

/* For a program that serializes its calls. */
static inline int unloaded_open(uint64_t caps, size_t rx_ctx_cnt)
{
	struct fi_provider *provider;
	struct fi_info *hints = fi_allocinfo();

	setenv("FI_WEFT_IFACE", "lo", 0);
	provider = fi_prov_ini();
	if (!provider || !hints)
		return -1;
	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->rx_ctx_cnt = rx_ctx_cnt;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	if (provider->getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info))
		return -1;
	fi_freeinfo(hints);
	return provider->fabric(info->fabric_attr, &fabric, NULL);
}

static inline int unloaded_close(void **state)
{
	(void)state;
	fi_freeinfo(info);
	return fi_close(&fabric->fid);
}

#endif
