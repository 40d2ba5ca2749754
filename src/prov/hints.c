/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts or refuses hints, and logs the reason at level info: with
 * FI_LOG_LEVEL=info users must see because of which attribute they do not get
 * the provider. Changes nothing.
 */
#include "prov/hints.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/addr.h"
#include "os/types.h"
#include "prov/caps.h"
#include "prov/domain.h"
#include "prov/fabric.h"
#include "prov/param.h"
#include "prov/provider.h"

#define REFUSE(...)                                                            \
	do {                                                                   \
		WF_FI_INFO(FI_LOG_CORE, "hints refused: " __VA_ARGS__);        \
		return -FI_ENODATA;                                            \
	} while (0)

static int check_bits(const char *name, uint64_t asked, uint64_t can,
		      enum fi_type type)
{
	uint64_t extra = asked & ~can;

	if (extra)
		REFUSE("%s: not supported: %s (0x%llx)\n", name,
		       fi_tostr(&extra, type), (unsigned long long)extra);
	return 0;
}

static int check_max(const char *name, size_t asked, size_t can)
{
	if (asked > can)
		REFUSE("%s: %zu is more than %zu\n", name, asked, can);
	return 0;
}

uint64_t wf_prov_hints_caps(uint32_t version)
{
	return FI_VERSION_GE(version, FI_VERSION(2, 0)) ?
		       WF_PROV_CAPS | WF_PROV_RX_CAPS_2X :
		       WF_PROV_CAPS;
}

int wf_prov_hints_family(uint32_t addr_format)
{
	switch (addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case WF_PROV_FORMAT_IP:
		return AF_UNSPEC;
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	case FI_ADDR_EFA:
		return WF_ADDR_EFA;
	default:
		return -1;
	}
}

/* "weft", "weft;ofi_x", "^tcp;shm": libfabric has evaluated these; the rest is
 * a list of other providers. */
static bool names_us(const char *prov_name)
{
	return prov_name[0] == '^' || strcasestr(prov_name, WF_PROV_NAME);
}

static int check_fabric(const struct fi_fabric_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->fabric && !wf_prov_fabric_is_ours(attr->fabric))
		REFUSE("fabric_attr->fabric belongs to another provider\n");
	if (attr->name && strcmp(attr->name, WF_PROV_FABRIC_NAME))
		REFUSE("fabric_attr->name: %s is not %s\n", attr->name,
		       WF_PROV_FABRIC_NAME);
	if (attr->prov_name && !names_us(attr->prov_name))
		REFUSE("fabric_attr->prov_name: %s is not %s\n",
		       attr->prov_name, WF_PROV_NAME);
	if (attr->prov_version > WF_PROV_VERSION)
		REFUSE("fabric_attr->prov_version: %u.%u is newer than %u.%u\n",
		       FI_MAJOR(attr->prov_version),
		       FI_MINOR(attr->prov_version), FI_MAJOR(WF_PROV_VERSION),
		       FI_MINOR(WF_PROV_VERSION));
	return 0;
}

/* We need nothing of an application's memory, so every mode will do. FI_MR_BASIC and FI_MR_SCALABLE
 * were values before API 1.5 and are bits since; a bit may not be mixed with
 * the newer ones. */
static int check_mr_mode(uint32_t version, int mode)
{
	int old = mode & (FI_MR_BASIC | FI_MR_SCALABLE);

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) ?
		    mode & ~FI_MR_BASIC && mode & ~FI_MR_SCALABLE :
		    old && mode != FI_MR_BASIC && mode != FI_MR_SCALABLE)
		REFUSE("domain_attr->mr_mode: 0x%x is not a mode of API %u.%u\n",
		       mode, FI_MAJOR(version), FI_MINOR(version));
	return 0;
}

/* Data moves inside calls of the application, or by a thread if it asks for
 * that (core/attend.h). Control operations are finished when their call
 * returns, which is as automatic as can be. */
static int check_progress(const struct fi_domain_attr *attr)
{
	if ((int)attr->control_progress < FI_PROGRESS_UNSPEC ||
	    (int)attr->control_progress > WF_PROV_PROGRESS_UNIFIED)
		REFUSE("domain_attr->control_progress: %d is unknown\n",
		       (int)attr->control_progress);
	switch ((int)attr->data_progress) {
	case FI_PROGRESS_UNSPEC:
	case FI_PROGRESS_AUTO:
	case FI_PROGRESS_MANUAL:
	case WF_PROV_PROGRESS_UNIFIED:
		return 0;
	default:
		REFUSE("domain_attr->data_progress: %d is unknown\n",
		       (int)attr->data_progress);
	}
}

static int check_domain_models(const struct fi_domain_attr *attr)
{
	switch (attr->threading) {
	case FI_THREAD_UNSPEC:
	case FI_THREAD_SAFE:
	case FI_THREAD_FID:
	case FI_THREAD_DOMAIN:
	case FI_THREAD_COMPLETION:
	case FI_THREAD_ENDPOINT:
		break;
	default:
		REFUSE("domain_attr->threading: %d is unknown\n",
		       (int)attr->threading);
	}
	switch (attr->resource_mgmt) {
	case FI_RM_UNSPEC:
	case FI_RM_DISABLED:
	case FI_RM_ENABLED:
		break;
	default:
		REFUSE("domain_attr->resource_mgmt: %d is unknown\n",
		       (int)attr->resource_mgmt);
	}
	switch (attr->av_type) {
	case FI_AV_UNSPEC:
	case FI_AV_MAP:
	case FI_AV_TABLE:
		break;
	default:
		REFUSE("domain_attr->av_type: %d is unknown\n",
		       (int)attr->av_type);
	}
	return check_progress(attr);
}

int wf_prov_hints_check_domain(uint32_t version, const struct fi_info *hints)
{
	const struct fi_domain_attr *attr = hints->domain_attr;

	if (!attr)
		return 0;
	if (attr->domain && !wf_prov_domain_is_ours(attr->domain))
		REFUSE("domain_attr->domain belongs to another provider\n");
	if (check_domain_models(attr) ||
	    check_mr_mode(version, attr->mr_mode) ||
	    check_max("domain_attr->mr_key_size", attr->mr_key_size,
		      WF_PROV_MR_KEY_SIZE) ||
	    check_max("domain_attr->cq_data_size", attr->cq_data_size,
		      WF_PROV_CQ_DATA_SIZE))
		return -FI_ENODATA;
	/* Members that came with API 1.5: an older application's structure
	 * ends before them. */
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return 0;
	if (check_max("domain_attr->cntr_cnt", attr->cntr_cnt,
		      WF_PROV_CNTR_CNT) ||
	    check_max("domain_attr->mr_iov_limit", attr->mr_iov_limit,
		      WF_PROV_MR_IOV_LIMIT) ||
	    check_max("domain_attr->mr_cnt", attr->mr_cnt, WF_PROV_MR_CNT) ||
	    check_max("domain_attr->max_err_data", attr->max_err_data, 0) ||
	    check_max("domain_attr->auth_key_size", attr->auth_key_size, 0))
		return -FI_ENODATA;
	return check_bits("domain_attr->caps", attr->caps, WF_PROV_DOMAIN_CAPS,
			  FI_TYPE_CAPS);
}

static int check_context_count(const char *name, size_t asked)
{
	if (asked == FI_SHARED_CONTEXT)
		return 0;
	return check_max(name, asked, 1);
}

static int check_ep(uint32_t version, const struct fi_ep_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->type != FI_EP_UNSPEC && attr->type != FI_EP_RDM)
		REFUSE("ep_attr->type: %s is not FI_EP_RDM\n",
		       fi_tostr(&attr->type, FI_TYPE_EP_TYPE));
	if (attr->protocol != FI_PROTO_UNSPEC &&
	    attr->protocol != WF_PROV_PROTOCOL)
		REFUSE("ep_attr->protocol: 0x%x is not 0x%x\n", attr->protocol,
		       WF_PROV_PROTOCOL);
	if (check_max("ep_attr->protocol_version", attr->protocol_version,
		      WF_PROV_PROTOCOL_VERSION) ||
	    check_max("ep_attr->max_msg_size", attr->max_msg_size,
		      WF_PROV_MAX_MSG_SIZE) ||
	    check_context_count("ep_attr->tx_ctx_cnt", attr->tx_ctx_cnt) ||
	    check_context_count("ep_attr->rx_ctx_cnt", attr->rx_ctx_cnt))
		return -FI_ENODATA;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return 0;
	return check_max("ep_attr->auth_key_size", attr->auth_key_size, 0);
}

static int check_tx(uint64_t caps, const struct fi_tx_attr *attr)
{
	if (!attr)
		return 0;
	/* Applications copy all of their capabilities to both sides. */
	if (check_bits("tx_attr->caps", attr->caps, caps, FI_TYPE_CAPS) ||
	    check_bits("tx_attr->op_flags", attr->op_flags, WF_PROV_TX_OP_FLAGS,
		       FI_TYPE_OP_FLAGS) ||
	    check_bits("tx_attr->msg_order", attr->msg_order, WF_PROV_MSG_ORDER,
		       FI_TYPE_MSG_ORDER) ||
	    check_bits("tx_attr->comp_order", attr->comp_order,
		       WF_PROV_COMP_ORDER, FI_TYPE_MSG_ORDER) ||
	    check_max("tx_attr->inject_size", attr->inject_size,
		      wf_prov_param.inject_size) ||
	    check_max("tx_attr->size", attr->size, WF_PROV_MAX_QUEUE) ||
	    check_max("tx_attr->iov_limit", attr->iov_limit, WF_PROV_IOV_LIMIT))
		return -FI_ENODATA;
	return check_max("tx_attr->rma_iov_limit", attr->rma_iov_limit,
			 WF_PROV_IOV_LIMIT);
}

static int check_rx(uint64_t caps, const struct fi_rx_attr *attr)
{
	if (!attr)
		return 0;
	if (check_bits("rx_attr->caps", attr->caps, caps, FI_TYPE_CAPS) ||
	    check_bits("rx_attr->op_flags", attr->op_flags, WF_PROV_RX_OP_FLAGS,
		       FI_TYPE_OP_FLAGS) ||
	    check_bits("rx_attr->msg_order", attr->msg_order, WF_PROV_MSG_ORDER,
		       FI_TYPE_MSG_ORDER) ||
	    check_bits("rx_attr->comp_order", attr->comp_order,
		       WF_PROV_COMP_ORDER, FI_TYPE_MSG_ORDER) ||
	    check_max("rx_attr->size", attr->size, WF_PROV_MAX_QUEUE))
		return -FI_ENODATA;
	return check_max("rx_attr->iov_limit", attr->iov_limit,
			 WF_PROV_IOV_LIMIT);
}

int wf_prov_hints_check(uint32_t version, const struct fi_info *hints)
{
	uint64_t caps = wf_prov_hints_caps(version);

	if (!hints)
		return 0;
	/* First, because utility providers probe for other types all day. */
	if (check_ep(version, hints->ep_attr) ||
	    check_bits("caps", hints->caps, caps, FI_TYPE_CAPS))
		return -FI_ENODATA;
	if (wf_prov_hints_family(hints->addr_format) < 0)
		REFUSE("addr_format: %s is none of ours\n",
		       fi_tostr(&hints->addr_format, FI_TYPE_ADDR_FORMAT));
	if (check_fabric(hints->fabric_attr) ||
	    wf_prov_hints_check_domain(version, hints) ||
	    check_tx(caps, hints->tx_attr))
		return -FI_ENODATA;
	return check_rx(caps, hints->rx_attr);
}
