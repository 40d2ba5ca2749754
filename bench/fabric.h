/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that measure over libfabric's API share this: a provider for tagged
 * messages, and endpoints with an AV and one completion queue. A call that
 * fails ends the program with a line that names it.
 */
#ifndef WF_BENCH_FABRIC_H
#define WF_BENCH_FABRIC_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

static inline void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		fi_strerror((int)-ret));
	_Exit(1);
}

/* Opens @provider for a program that serializes its calls, with FI_TAGGED and
 * @caps. */
static inline void bench_find(const char *provider, uint64_t caps,
			      struct fi_info **info, struct fid_fabric **fabric)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		must("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_TAGGED | caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode = 0;
	hints->fabric_attr->prov_name = strdup(provider);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, info);
	if (ret == -FI_ENODATA && !getenv("FI_PROVIDER_PATH"))
		fprintf(stderr,
			"FI_PROVIDER_PATH=$PWD/build/src lets libfabric "
			"find weft\n");
	must("fi_getinfo", ret);
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric((*info)->fabric_attr, fabric, NULL));
}

/* @entries: of the completion queue; 0: as many as the provider likes. */
static inline void bench_domain(struct fid_fabric *fabric, struct fi_info *info,
				size_t entries, struct fid_domain **domain,
				struct fid_av **av, struct fid_cq **cq)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.size = entries,
	};

	must("fi_domain", fi_domain(fabric, info, domain, NULL));
	must("fi_av_open", fi_av_open(*domain, &av_attr, av, NULL));
	must("fi_cq_open", fi_cq_open(*domain, &cq_attr, cq, NULL));
}

static inline void bench_endpoint(struct fid_domain *domain,
				  struct fi_info *info, struct fid_av *av,
				  struct fid_cq *cq, struct fid_ep **ep)
{
	must("fi_endpoint", fi_endpoint(domain, info, ep, NULL));
	must("bind", fi_ep_bind(*ep, &av->fid, 0));
	must("bind", fi_ep_bind(*ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(*ep));
}

/* The name of @ep in @av. */
static inline fi_addr_t bench_insert(struct fid_av *av, struct fid_ep *ep)
{
	char name[256] = "";
	size_t len = sizeof(name);
	fi_addr_t addr;

	must("fi_getname", fi_getname(&ep->fid, name, &len));
	must("fi_av_insert", fi_av_insert(av, name, 1, &addr, 0, NULL));
	return addr;
}

#endif
