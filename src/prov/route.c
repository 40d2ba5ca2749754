/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which transport reaches an address, and how the two of an endpoint share its
 * progress.
 */
#include "prov/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prov/param.h"
#include "prov/provider.h"
#include "shm/remote.h"

enum wf_prov_way {
	WAY_UNKNOWN,
	WAY_MEMORY,
	WAY_PACKETS,
};

/* Polls in a row that found nothing, after which the packets of an endpoint
 * that also has peers on its node are looked at less often: a look is a system
 * call, as long as ten messages through memory. */
#define IDLE_POLLS 1000
#define IDLE_EVERY 32

#define ROUTES_MAX ((uint64_t)1 << 32)

/* -- progress -------------------------------------------------------------- */

/* The first packet of all: somebody elsewhere knows us. */
static void on_stirred(void *arg)
{
	struct wf_prov_ep *ep = arg;

	if (ep->rdm.awake || ep->rdm.forked)
		return;
	/* Without memory: what came stays in the socket, which tells of it
	 * again the next time it is looked at. */
	if (!wf_rdm_ep_wake(&ep->rdm))
		wf_shm_ep_beside_on(&ep->shm, wf_nic_wait_fd(ep->rdm.nic));
}

static bool on_poll(void *arg)
{
	struct wf_prov_ep *ep = arg;

	if (ep->shm.watch.count && ep->idle_polls > IDLE_POLLS &&
	    ++ep->idle_polls % IDLE_EVERY)
		return false;
	if (!wf_rdm_ep_progress(&ep->rdm)) {
		ep->idle_polls += !ep->rdm.outstanding;
		return false;
	}
	ep->idle_polls = 0;
	return true;
}

void wf_prov_route_init(struct wf_prov_ep *ep, struct wf_shm_ep_attr *attr)
{
	attr->beside = (struct wf_shm_beside){
		.fd = ep->nic_fd,
		.stirred = on_stirred,
		.poll = on_poll,
		.arg = ep,
	};
}

void wf_prov_route_open(struct wf_prov_ep *ep,
			const struct wf_shm_ep_attr *attr)
{
	const struct wf_prov_param *param = &wf_prov_param;
	const struct wf_rdm_ep_attr rdm = {
		.device = param->nic,
		.fd = ep->nic_fd,
		.addr = ep->addr,
		.tx_size = ep->tx_size,
		.medium_max = param->medium_max,
		.read_min = param->read_min,
		.runt_size = param->runt_size,
		.order = ep->order,
		.connect_timeout_ms = param->connect_timeout_ms,
		.dead_timeout_s = param->dead_timeout_s,
		.mtu = (uint32_t)param->mtu,
		.thread = param->net_thread,
		.reads = true,
		.fault = wf_prov_param_fault(),
		.names = attr->names,
		.regs = attr->regs,
		.remote_writes = attr->remote_writes,
		.remote_reads = attr->remote_reads,
	};

	wf_rdm_ep_open(&ep->rdm, &rdm, ep->shm.txq, ep->shm.rxq);
	ep->routes = NULL;
	ep->route_count = 0;
	ep->idle_polls = 0;
}

/* -- where to -------------------------------------------------------------- */

static int make_room_for(struct wf_prov_ep *ep, fi_addr_t dst)
{
	size_t count = ep->route_count ? ep->route_count : 64;
	uint8_t *routes;

	if (dst < ep->route_count)
		return 0;
	if (dst >= ROUTES_MAX)
		return -EINVAL;
	while (count <= dst)
		count *= 2;
	routes = realloc(ep->routes, count);
	if (!routes)
		return -ENOMEM;
	memset(routes + ep->route_count, WAY_UNKNOWN, count - ep->route_count);
	ep->routes = routes;
	ep->route_count = count;
	return 0;
}

static int find_way(struct wf_prov_ep *ep, fi_addr_t dst)
{
	struct wf_addr addr;
	int err = wf_prov_av_get(ep->av, dst, &addr);

	if (!err)
		err = make_room_for(ep, dst);
	if (err)
		return err;
	ep->routes[dst] = wf_prov_param.shm && wf_base_addr_is_local(&addr) ?
				  WAY_MEMORY :
				  WAY_PACKETS;
	return 0;
}

void wf_prov_route_expect(struct wf_prov_ep *ep, const struct wf_addr *addr)
{
	/* On this host, where packets are an exception, a silent process has
	 * FI_WEFT_DEAD_TIMEOUT to answer. */
	if (!ep->enabled || ep->rdm.awake || wf_base_addr_is_local(addr))
		return;
	on_stirred(ep);
}

void wf_prov_route_forget(struct wf_prov_ep *ep, fi_addr_t dst)
{
	if (dst < ep->route_count)
		ep->routes[dst] = WAY_UNKNOWN;
}

/* Names of a shared AV are changed by others. */
static void follow(struct wf_prov_ep *ep)
{
	const _Atomic uint64_t *changes = wf_prov_av_changes(ep->av);
	uint64_t seen;

	if (!changes)
		return;
	seen = atomic_load_explicit(changes, memory_order_acquire);
	if (seen != ep->routes_seen && ep->route_count)
		memset(ep->routes, WAY_UNKNOWN, ep->route_count);
	ep->routes_seen = seen;
}

/* -- by packets ------------------------------------------------------------ */

static void describe_remote(const struct wf_shm_remote *remote,
			    struct wf_rdm_req *req)
{
	static const enum wf_rdm_kind kinds[] = {
		[WF_SHM_REMOTE_WRITE] = WF_RDM_WRITE,
		[WF_SHM_REMOTE_READ] = WF_RDM_READ,
		[WF_SHM_REMOTE_ATOMIC] = WF_RDM_ATOMIC,
	};

	req->kind = kinds[remote->kind];
	req->amo_kind = remote->amo_kind;
	req->amo_op = remote->amo_op;
	req->amo_type = remote->amo_type;
	req->seg_count = remote->seg_count;
	for (uint32_t i = 0; i < remote->seg_count; i++)
		req->segs[i] = (struct wf_wire_iov){
			.addr = remote->segs[i].addr,
			.len = remote->segs[i].len,
			.key = remote->segs[i].key,
		};
	req->result_count = remote->result_count;
	for (uint32_t i = 0; i < remote->result_count; i++)
		req->result[i] = remote->result[i];
	req->compare_count = remote->compare_count;
	for (uint32_t i = 0; i < remote->compare_count; i++)
		req->compare[i] = remote->compare[i];
}

static int send_packets(struct wf_prov_ep *ep, fi_addr_t dst,
			const struct wf_shm_tx *tx, bool more)
{
	struct wf_rdm_req req;
	int err;

	memset(&req, 0, offsetof(struct wf_rdm_req, iov));
	req.tagged = tx->slot_flags & WF_SHM_SLOT_TAGGED;
	req.has_data = tx->slot_flags & WF_SHM_SLOT_DATA;
	req.delivery = tx->slot_flags & WF_SHM_SLOT_ACK;
	req.wants_comp = tx->wants_comp;
	req.inject = tx->inject;
	req.fence = tx->fence;
	req.more = more;
	req.tag = tx->tag;
	req.data = tx->data;
	req.comp_flags = tx->comp_flags;
	req.context = tx->context;
	req.cntr = tx->cntr;
	req.len = tx->len;
	req.iov_count = tx->iov_count;
	for (uint32_t i = 0; i < tx->iov_count; i++)
		req.iov[i] = tx->iov[i];
	if (tx->remote)
		describe_remote(tx->remote, &req);
	if (wf_unlikely(!ep->rdm.awake)) {
		err = wf_rdm_ep_wake(&ep->rdm);
		if (!err)
			err = wf_shm_ep_beside_on(&ep->shm,
						  wf_nic_wait_fd(ep->rdm.nic));
		if (err)
			return err == -ENOMEM ? -EAGAIN : err;
	}
	ep->idle_polls = 0;
	err = wf_rdm_ep_submit(&ep->rdm, dst, &req);
	return err == -ENOMEM ? -EAGAIN : err;
}

int wf_prov_route_send(struct wf_prov_ep *ep, fi_addr_t dst,
		       struct wf_shm_tx *tx, bool more)
{
	int err;

	follow(ep);
	if (wf_unlikely(dst >= ep->route_count || !ep->routes[dst])) {
		err = find_way(ep, dst);
		if (err)
			return err;
	}
	return ep->routes[dst] == WAY_MEMORY ?
		       wf_shm_ep_send(&ep->shm, dst, tx) :
		       send_packets(ep, dst, tx, more);
}
