/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(): finds the requested addresses, and writes the answers.
 * libfabric creates its own structures (fi_allocinfo, fi_dupinfo), because
 * newer ones have members that we do not know.
 */
#include "prov/info.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/addr.h"
#include "nic/open.h"
#include "prov/caps.h"
#include "prov/format.h"
#include "prov/hints.h"
#include "prov/iface.h"
#include "prov/param.h"
#include "prov/provider.h"
#include "prov/resolve.h"

/* One call of fi_getinfo(). */
struct request {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	const struct fi_info *hints; /* may be NULL */
	int family;		     /* of addr_format; AF_UNSPEC = both */
	const char *must_iface;	     /* the hinted domain, or NULL */
	const char *want_iface;	     /* that, or FI_WEFT_IFACE, or NULL */
	struct wf_prov_iface *ifaces;
	size_t iface_count;
	bool has_src;
	bool has_dest;
	struct wf_addr src;
	struct wf_addr dest;
	bool may_efa;  /* an EFA device may be the answer ... */
	bool only_efa; /* ... and nothing else */
};

static const struct wf_prov_iface *find_iface(const struct request *req,
					      const char *name, int family)
{
	return wf_prov_iface_find(req->ifaces, req->iface_count, name, family);
}

/* Takes an address from the hints. */
static int take_hint(const struct request *req, const char *what,
		     const void *sa, size_t len, struct wf_addr *addr)
{
	if (wf_prov_format_get(req->hints->addr_format, sa, len, addr)) {
		WF_FI_INFO(FI_LOG_CORE,
			   "hints refused: %s: not a whole address\n", what);
		return -FI_ENODATA;
	}
	if (req->family != AF_UNSPEC && addr->sa.sa_family != req->family) {
		WF_FI_INFO(
			FI_LOG_CORE,
			"hints refused: %s: family differs from addr_format\n",
			what);
		return -FI_ENODATA;
	}
	return 0;
}

static int resolve(const struct request *req, bool passive,
		   struct wf_addr *addr)
{
	struct wf_prov_resolve query = {
		.node = req->node,
		.service = req->service,
		.family = req->family,
		.numeric = req->flags & FI_NUMERICHOST,
		.passive = passive,
	};
	int ret = wf_prov_resolve_name(&query, addr);

	if (ret)
		WF_FI_INFO(FI_LOG_CORE,
			   "node %s, service %s: no such address\n",
			   req->node ? req->node : "(none)",
			   req->service ? req->service : "(none)");
	return ret;
}

static int find_dest(struct request *req)
{
	const struct fi_info *hints = req->hints;
	int ret;

	if (!(req->flags & FI_SOURCE) && (req->node || req->service))
		ret = resolve(req, false, &req->dest);
	else if (hints && hints->dest_addr)
		ret = take_hint(req, "dest_addr", hints->dest_addr,
				hints->dest_addrlen, &req->dest);
	else
		return 0;
	req->has_dest = !ret;
	return ret;
}

/* A server that names only its port gets the wildcard, so that clients reach
 * it by any address of the node; unless an interface was asked for. */
static int find_named_src(struct request *req)
{
	const struct wf_prov_iface *iface = NULL;
	uint16_t port;
	int ret;

	ret = resolve(req, true, &req->src);
	if (ret || req->node || !req->want_iface)
		return ret;
	iface = find_iface(req, req->want_iface, req->family);
	if (!iface)
		return 0;
	port = wf_base_addr_port(&req->src);
	req->src = iface->addr;
	wf_base_addr_set_port(&req->src, port);
	return 0;
}

/* Towards a destination: the wanted interface, else as the kernel routes. */
static int find_routed_src(struct request *req)
{
	int family = req->dest.sa.sa_family;
	const struct wf_prov_iface *iface = NULL;

	if (req->want_iface)
		iface = find_iface(req, req->want_iface, family);
	if (!iface && !wf_prov_resolve_source(&req->dest, &req->src))
		return 0;
	if (!iface)
		iface = find_iface(req, NULL, family);
	if (!iface) {
		WF_FI_INFO(
			FI_LOG_CORE,
			"no interface has an address of the destination's family\n");
		return -FI_ENODATA;
	}
	req->src = iface->addr;
	return 0;
}

static int find_src(struct request *req)
{
	const struct fi_info *hints = req->hints;
	char str[WF_ADDR_STR_LEN];
	int ret;

	if (req->flags & FI_SOURCE && (req->node || req->service))
		ret = find_named_src(req);
	else if (hints && hints->src_addr)
		ret = take_hint(req, "src_addr", hints->src_addr,
				hints->src_addrlen, &req->src);
	else if (req->has_dest)
		ret = find_routed_src(req);
	else
		return 0;
	if (ret)
		return ret;
	if (req->has_dest && req->src.sa.sa_family != req->dest.sa.sa_family) {
		WF_FI_INFO(
			FI_LOG_CORE,
			"source and destination are of different families\n");
		return -FI_ENODATA;
	}
	if (!wf_base_addr_is_local(&req->src)) {
		WF_FI_INFO(FI_LOG_CORE, "source %s is not on this node\n",
			   wf_base_addr_str(&req->src, str, sizeof(str)));
		return -FI_ENODATA;
	}
	req->has_src = true;
	return 0;
}

/* The interface that gives the domain its name. */
static const struct wf_prov_iface *domain_iface(const struct request *req)
{
	const struct wf_prov_iface *iface = NULL;

	if (!wf_base_addr_is_any(&req->src))
		iface = wf_prov_iface_owner(req->ifaces, req->iface_count,
					    &req->src);
	if (!iface)
		iface = find_iface(req, req->want_iface, req->src.sa.sa_family);
	/* Up to here FI_WEFT_IFACE is a wish, not a must. */
	if (!iface && !req->must_iface)
		iface = find_iface(req, NULL, AF_UNSPEC);
	if (!iface ||
	    (req->must_iface && strcmp(iface->name, req->must_iface))) {
		WF_FI_INFO(
			FI_LOG_CORE,
			"hints refused: domain_attr->name: the source address is not on %s\n",
			req->must_iface ? req->must_iface : "any interface");
		return NULL;
	}
	return iface;
}

static uint64_t answer_caps(const struct request *req)
{
	uint64_t can = wf_prov_hints_caps(req->version);
	uint64_t asked = req->hints ? req->hints->caps : 0;
	uint64_t caps;

	if (!asked)
		return can & WF_PROV_CAPS;
	caps = asked | WF_PROV_FREE_CAPS;
	if (asked & WF_PROV_COMM_CAPS)
		caps &= ~WF_PROV_COMM_CAPS | asked;
	if (caps & WF_PROV_MSG_OPS && !(caps & WF_PROV_MSG_DIRECTIONS))
		caps |= WF_PROV_MSG_DIRECTIONS;
	if (caps & WF_PROV_RMA_OPS && !(caps & WF_PROV_RMA_DIRECTIONS))
		caps |= WF_PROV_RMA_DIRECTIONS;
	/* A multi-receive buffer takes untagged messages. */
	if (!(caps & FI_MSG) || !(caps & FI_RECV))
		caps &= ~FI_MULTI_RECV | asked;
	return caps;
}

#define DIRECTIONS (WF_PROV_MSG_DIRECTIONS | WF_PROV_RMA_DIRECTIONS)

static size_t or_default(size_t hint, size_t value)
{
	return hint ? hint : value;
}

static size_t queue_size(size_t hint, size_t value)
{
	size_t size = WF_PROV_MIN_QUEUE;

	while (size < or_default(hint, value))
		size *= 2;
	return size;
}

static void fill_tx(struct fi_tx_attr *attr, const struct fi_tx_attr *hint,
		    uint64_t caps)
{
	static const struct fi_tx_attr none;

	if (!hint)
		hint = &none;
	attr->caps = caps & WF_PROV_TX_CAPS;
	if (hint->caps)
		attr->caps &= hint->caps | DIRECTIONS;
	attr->op_flags = hint->op_flags;
	attr->msg_order = WF_PROV_FREE_ORDER | hint->msg_order;
	attr->comp_order = WF_PROV_COMP_ORDER;
	attr->inject_size =
		or_default(hint->inject_size, wf_prov_param.inject_size);
	attr->size = queue_size(hint->size, wf_prov_param.tx_size);
	attr->iov_limit = or_default(hint->iov_limit, WF_PROV_IOV_LIMIT);
	attr->rma_iov_limit =
		or_default(hint->rma_iov_limit, WF_PROV_IOV_LIMIT);
}

static void fill_rx(struct fi_rx_attr *attr, const struct fi_rx_attr *hint,
		    uint64_t caps)
{
	static const struct fi_rx_attr none;

	if (!hint)
		hint = &none;
	attr->caps = caps & (WF_PROV_RX_CAPS | WF_PROV_RX_CAPS_2X);
	if (hint->caps)
		attr->caps &= hint->caps | DIRECTIONS | WF_PROV_FREE_CAPS;
	attr->op_flags = hint->op_flags;
	attr->msg_order = WF_PROV_FREE_ORDER | hint->msg_order;
	attr->comp_order = WF_PROV_COMP_ORDER;
	/* True of any amount: unexpected messages are never dropped. */
	attr->total_buffered_recv = hint->total_buffered_recv;
	attr->size = queue_size(hint->size, wf_prov_param.rx_size);
	attr->iov_limit = or_default(hint->iov_limit, WF_PROV_IOV_LIMIT);
}

static void fill_ep(struct fi_ep_attr *attr, const struct fi_ep_attr *hint)
{
	attr->type = FI_EP_RDM;
	attr->protocol = WF_PROV_PROTOCOL;
	attr->protocol_version = WF_PROV_PROTOCOL_VERSION;
	attr->max_msg_size = WF_PROV_MAX_MSG_SIZE;
	/* All 64 bits are matched, so any layout that was asked for will do. */
	attr->mem_tag_format = hint && hint->mem_tag_format ?
				       hint->mem_tag_format :
				       WF_PROV_TAG_FORMAT;
	attr->max_order_raw_size = WF_PROV_MAX_MSG_SIZE;
	attr->max_order_war_size = WF_PROV_MAX_MSG_SIZE;
	attr->max_order_waw_size = WF_PROV_MAX_MSG_SIZE;
	attr->tx_ctx_cnt = hint && hint->tx_ctx_cnt == FI_SHARED_CONTEXT ?
				   FI_SHARED_CONTEXT :
				   1;
	attr->rx_ctx_cnt = hint && hint->rx_ctx_cnt == FI_SHARED_CONTEXT ?
				   FI_SHARED_CONTEXT :
				   1;
}

/* weft requires nothing of memory: an application that supports virtual
 * addresses or keys of ours gets them, another one gets offsets and its own
 * keys. An API older than 1.5 does not know 0 and gets the old name for it. */
static int answer_mr_mode(uint32_t version, int hint)
{
	if (hint & (FI_MR_BASIC | FI_MR_SCALABLE))
		return hint;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return FI_MR_SCALABLE;
	return hint & WF_PROV_MR_MODES;
}

static void fill_domain(struct fi_domain_attr *attr,
			const struct fi_domain_attr *hint, uint32_t version)
{
	static const struct fi_domain_attr none;

	/* Only members that every version has are read. */
	if (!hint)
		hint = &none;
	attr->domain = hint->domain;
	attr->threading = hint->threading ? hint->threading : FI_THREAD_SAFE;
	attr->control_progress = hint->control_progress ?
					 hint->control_progress :
					 FI_PROGRESS_AUTO;
	attr->data_progress =
		hint->data_progress ? hint->data_progress : FI_PROGRESS_MANUAL;
	attr->resource_mgmt = FI_RM_ENABLED;
	attr->av_type = hint->av_type;
	attr->mr_mode = answer_mr_mode(version, hint->mr_mode);
	attr->mr_key_size = WF_PROV_MR_KEY_SIZE;
	attr->cq_data_size = WF_PROV_CQ_DATA_SIZE;
	attr->cq_cnt = WF_PROV_CQ_CNT;
	attr->ep_cnt = WF_PROV_EP_CNT;
	attr->tx_ctx_cnt = WF_PROV_EP_CNT;
	attr->rx_ctx_cnt = WF_PROV_EP_CNT;
	attr->max_ep_tx_ctx = 1;
	attr->max_ep_rx_ctx = 1;
	attr->max_ep_stx_ctx = WF_PROV_EP_CNT;
	attr->max_ep_srx_ctx = WF_PROV_EP_CNT;
	attr->cntr_cnt = WF_PROV_CNTR_CNT;
	attr->mr_iov_limit = WF_PROV_MR_IOV_LIMIT;
	attr->mr_cnt = WF_PROV_MR_CNT;
	attr->caps = WF_PROV_DOMAIN_CAPS;
}

static int fill_addr(void **to, size_t *len, const struct wf_addr *addr)
{
	*len = wf_prov_format_put(addr, NULL, 0);
	*to = malloc(*len);
	if (!*to)
		return -FI_ENOMEM;
	wf_prov_format_put(addr, *to, *len);
	return 0;
}

/* An EFA device reaches registered memory only: an application that can register
 * what it sends and receives is told to, which spares us to do it for each
 * operation. */
static void want_local(struct fi_info *info, const struct request *req)
{
	const struct fi_domain_attr *hint =
		req->hints ? req->hints->domain_attr : NULL;

	if (info->addr_format == FI_ADDR_EFA && hint &&
	    FI_VERSION_GE(req->version, FI_VERSION(1, 5)) &&
	    !(hint->mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE)))
		info->domain_attr->mr_mode |= hint->mr_mode & FI_MR_LOCAL;
}

/* One answer. @src and @dest may be NULL. */
static struct fi_info *make_info(const struct request *req,
				 const struct wf_prov_iface *iface,
				 const struct wf_addr *src,
				 const struct wf_addr *dest)
{
	const struct fi_info *hints = req->hints;
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = answer_caps(req);
	fill_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps);
	fill_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps);
	fill_ep(info->ep_attr, hints ? hints->ep_attr : NULL);
	fill_domain(info->domain_attr, hints ? hints->domain_attr : NULL,
		    req->version);
	if (hints && hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	info->fabric_attr->name = strdup(WF_PROV_FABRIC_NAME);
	info->domain_attr->name = strdup(iface->name);
	info->addr_format = wf_prov_format_of(src ? src : &iface->addr);
	want_local(info, req);
	if (!info->fabric_attr->name || !info->domain_attr->name ||
	    (src && fill_addr(&info->src_addr, &info->src_addrlen, src)) ||
	    (dest && fill_addr(&info->dest_addr, &info->dest_addrlen, dest))) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

static bool listed(const struct request *req, const struct wf_prov_iface *iface)
{
	if (req->want_iface && strcmp(iface->name, req->want_iface))
		return false;
	if (req->family != AF_UNSPEC && iface->addr.sa.sa_family != req->family)
		return false;
	/* Peers elsewhere are not reached over loopback: that is an answer to
	 * such a wish only where there is nothing else (loopback sorts
	 * last). */
	if (iface->loopback && !req->want_iface && req->hints &&
	    req->hints->caps & FI_REMOTE_COMM)
		return find_iface(req, NULL, req->family)->loopback;
	return true;
}

/* Without any address: one answer for each of the node's. */
static int list_ifaces(const struct request *req, struct fi_info **info)
{
	struct fi_info **tail = info;

	*info = NULL;
	for (size_t i = 0; i < req->iface_count; i++) {
		const struct wf_prov_iface *iface = &req->ifaces[i];
		bool plain = req->flags & FI_PROV_ATTR_ONLY;

		if (!listed(req, iface))
			continue;
		*tail = make_info(req, iface, plain ? NULL : &iface->addr,
				  NULL);
		if (!*tail) {
			fi_freeinfo(*info);
			*info = NULL;
			return -FI_ENOMEM;
		}
		tail = &(*tail)->next;
		if (plain)
			break;
	}
	if (*info)
		return 0;
	WF_FI_INFO(FI_LOG_CORE, "no usable interface%s%s\n",
		   req->want_iface ? " named " : "",
		   req->want_iface ? req->want_iface : "");
	return -FI_ENODATA;
}

/* -- EFA ------------------------------------------------------------------- */

/* The device is the answer if the user wants it, or if there is one and nothing
 * is asked for that only sockets have: names, interfaces, encryption. */
static void may_efa(struct request *req)
{
	const struct fi_info *hints = req->hints;
	const char *nic = wf_prov_param.nic;
	/* Socket addresses of either family are socket addresses. */
	bool any = !hints || hints->addr_format == FI_FORMAT_UNSPEC;

	req->only_efa = (nic && !strcmp(nic, WF_PROV_NIC_EFA)) ||
			req->family == WF_ADDR_EFA;
	if (req->only_efa) {
		req->may_efa = any || req->family == WF_ADDR_EFA;
		return;
	}
	req->may_efa = !nic && any && !req->node && !req->service &&
		       (!hints || (!hints->src_addr && !hints->dest_addr));
}

/* Where the device is wanted, the hinted addresses are of its format. */
static int take_efa_hints(struct request *req, const struct wf_addr *own)
{
	const struct fi_info *hints = req->hints;
	int ret = 0;

	if (req->node || (req->service && !(req->flags & FI_SOURCE))) {
		WF_FI_INFO(FI_LOG_CORE, "node %s: an EFA device has no names\n",
			   req->node ? req->node : "(none)");
		return -FI_ENODATA;
	}
	if (!hints || hints->addr_format != FI_ADDR_EFA)
		return 0;
	if (hints->src_addr)
		ret = take_hint(req, "src_addr", hints->src_addr,
				hints->src_addrlen, &req->src);
	if (!ret && hints->src_addr &&
	    memcmp(req->src.efa.gid, own->efa.gid, sizeof(own->efa.gid))) {
		WF_FI_INFO(FI_LOG_CORE, "the source is not on this node\n");
		return -FI_ENODATA;
	}
	if (!ret && hints->dest_addr) {
		ret = take_hint(req, "dest_addr", hints->dest_addr,
				hints->dest_addrlen, &req->dest);
		req->has_dest = !ret;
	}
	return ret;
}

static int answer_efa(struct request *req, struct fi_info **info)
{
	bool plain = req->flags & FI_PROV_ATTR_ONLY;
	struct wf_prov_iface iface = { .running = true };
	int ret;

	*info = NULL;
	if (!req->may_efa && req->only_efa)
		WF_FI_INFO(FI_LOG_CORE, "hints refused: addr_format: with "
					"FI_WEFT_NIC=efa it is FI_ADDR_EFA\n");
	if (!req->may_efa)
		return -FI_ENODATA;
	if (wf_nic_device_find(WF_PROV_NIC_EFA, iface.name, sizeof(iface.name),
			       &iface.addr) ||
	    (req->want_iface && strcmp(iface.name, req->want_iface))) {
		if (req->only_efa)
			WF_FI_INFO(FI_LOG_CORE, "there is no EFA device%s%s\n",
				   req->want_iface ? " named " : "",
				   req->want_iface ? req->want_iface : "");
		return -FI_ENODATA;
	}
	ret = plain ? 0 : take_efa_hints(req, &iface.addr);
	if (ret)
		return ret;
	*info = make_info(req, &iface, plain ? NULL : &iface.addr,
			  req->has_dest ? &req->dest : NULL);
	return *info ? 0 : -FI_ENOMEM;
}

/* -- all of it ------------------------------------------------------------- */

static int answer_sockets(struct request *req, struct fi_info **info)
{
	const struct wf_prov_iface *iface;
	int ret;

	if (req->flags & FI_PROV_ATTR_ONLY)
		return list_ifaces(req, info);
	ret = find_dest(req);
	if (!ret)
		ret = find_src(req);
	if (ret)
		return ret;
	if (!req->has_src)
		return list_ifaces(req, info);
	iface = domain_iface(req);
	if (!iface)
		return -FI_ENODATA;
	*info = make_info(req, iface, &req->src,
			  req->has_dest ? &req->dest : NULL);
	return *info ? 0 : -FI_ENOMEM;
}

/* The device first, so that it is what an application takes. */
static int answer(struct request *req, struct fi_info **info)
{
	struct fi_info *efa = NULL;
	int ret;

	may_efa(req);
	ret = answer_efa(req, &efa);
	if (req->only_efa || ret == -FI_ENOMEM) {
		*info = efa;
		return ret;
	}
	ret = answer_sockets(req, info);
	if (!efa)
		return ret;
	if (ret)
		*info = NULL;
	efa->next = *info;
	*info = efa;
	return 0;
}

int wf_prov_info_get(uint32_t version, const char *node, const char *service,
		     uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info)
{
	struct request req = {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
		.family = AF_UNSPEC,
	};
	int ret;

	*info = NULL;
	if (wf_prov_param.is_short)
		return -FI_ENOMEM;
	ret = wf_prov_param_key();
	if (ret)
		return ret;
	ret = wf_prov_hints_check(version, hints);
	if (ret)
		return ret;
	if (hints) {
		req.family = wf_prov_hints_family(hints->addr_format);
		if (hints->domain_attr)
			req.must_iface = hints->domain_attr->name;
	}
	req.want_iface = req.must_iface ? req.must_iface : wf_prov_param.iface;
	ret = wf_prov_iface_list(&req.ifaces, &req.iface_count);
	if (ret) {
		WF_FI_WARN(FI_LOG_CORE, "interfaces cannot be listed: %s\n",
			   fi_strerror(-ret));
		return ret;
	}
	ret = answer(&req, info);
	free(req.ifaces);
	return ret;
}
