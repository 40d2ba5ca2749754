/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an endpoint: opened with an address, bound to its queues,
 * enabled, closed. Transfers are elsewhere (msg.c, tagged.c).
 */
#include "prov/ep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "nic/open.h"
#include "os/knob.h"
#include "os/process.h"
#include "prov/alias.h"
#include "prov/atomic.h"
#include "prov/caps.h"
#include "prov/domain.h"
#include "prov/eq.h"
#include "prov/iface.h"
#include "prov/msg.h"
#include "prov/name.h"
#include "prov/nosys.h"
#include "prov/param.h"
#include "prov/peek.h"
#include "prov/provider.h"
#include "prov/rma.h"
#include "prov/shared.h"

/* Ring geometry: 256 slots and 64 KiB of data; with replies, shares and returns
 * a channel is 112 KiB when all of it is in use (docs/shm.md). */
#define SLOTS_LOG2 WF_KNOB(slots_log2, 8)
#define LINES_LOG2 WF_KNOB(lines_log2, 10)

/* Bytes per record: larger messages come in several, so that the receiver
 * copies one while the sender writes the next (docs/shm.md has the
 * measurement). */
#define CHUNK 4096

#define OP_FLAGS                                                               \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |                      \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MULTI_RECV |         \
	 FI_MORE | FI_FENCE)

static struct fi_ops ep_fid_ops;

static struct wf_prov_ep *ep_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_ep, fid.fid);
}

/* -- names for the transport ----------------------------------------------- */

static int name_get(void *arg, uint64_t name, struct wf_addr *addr)
{
	struct wf_prov_ep *ep = arg;

	return wf_prov_av_get(ep->av, name, addr);
}

static uint64_t name_find(void *arg, const struct wf_addr *addr)
{
	struct wf_prov_ep *ep = arg;

	return wf_prov_av_find(ep->av, addr);
}

static void on_inserted(struct wf_prov_av_user *user, fi_addr_t fi_addr,
			const struct wf_addr *addr)
{
	struct wf_prov_ep *ep =
		wf_container_of(user, struct wf_prov_ep, av_user);

	wf_core_enter(&ep->core.common);
	if (ep->enabled)
		wf_core_inserted(&ep->core.common, fi_addr, addr);
	wf_core_leave(&ep->core.common);
}

static void on_removed(struct wf_prov_av_user *user, fi_addr_t fi_addr)
{
	struct wf_prov_ep *ep =
		wf_container_of(user, struct wf_prov_ep, av_user);

	wf_core_enter(&ep->core.common);
	if (ep->enabled)
		wf_core_removed(&ep->core.common, fi_addr);
	wf_core_leave(&ep->core.common);
}

static void in_child(struct wf_fork_watch *watch)
{
	struct wf_prov_ep *ep =
		wf_container_of(watch, struct wf_prov_ep, fork_watch);

	wf_prov_name_forked(ep);
	wf_core_forked(&ep->core.common);
}

/* -- enabling -------------------------------------------------------------- */

/* Whether a CQ or a counter reports operations of one side. */
static bool is_reported(const struct wf_prov_ep *ep,
			const struct wf_prov_cq *cq,
			const enum wf_prov_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ep->cntrs[events[i]])
			return true;
	}
	return cq;
}

static int check_bindings(const struct wf_prov_ep *ep)
{
	static const enum wf_prov_event tx[] = { WF_PROV_EVENT_SEND,
						 WF_PROV_EVENT_READ,
						 WF_PROV_EVENT_WRITE };
	static const enum wf_prov_event rx[] = { WF_PROV_EVENT_RECV };
	bool messages = ep->caps & (FI_MSG | FI_TAGGED);
	bool both = !(ep->caps & (FI_SEND | FI_RECV));

	if (!ep->av) {
		WF_FI_WARN(FI_LOG_EP_CTRL, "endpoint has no AV bound\n");
		return -FI_ENOAV;
	}
	if (!is_reported(ep, ep->tx_cq, tx, 3) &&
	    (both || (ep->caps & (FI_SEND | FI_READ | FI_WRITE)))) {
		WF_FI_WARN(FI_LOG_EP_CTRL,
			   "no CQ or counter is bound for FI_TRANSMIT\n");
		return -FI_ENOCQ;
	}
	if (messages && !is_reported(ep, ep->rx_cq, rx, 1) &&
	    (both || (ep->caps & FI_RECV))) {
		WF_FI_WARN(FI_LOG_EP_CTRL,
			   "no CQ or counter is bound for FI_RECV\n");
		return -FI_ENOCQ;
	}
	return 0;
}

/* The queue that receives for @ep. */
static struct wf_rxq *choose_rxq(struct wf_prov_ep *ep)
{
	if (ep->srx)
		return &ep->srx->rxq;
	ep->rxq.compq = ep->rx_compq;
	ep->rxq.cntr = wf_prov_ep_cntr(ep, WF_PROV_EVENT_RECV);
	ep->rxq.plain = !ep->rxq.cntr;
	return &ep->rxq;
}

/* Reading one of these makes progress for this endpoint. */
static void attach(struct wf_prov_ep *ep)
{
	struct wf_prov_eps_link *link = ep->links;

	if (ep->tx_cq)
		wf_prov_eps_attach(&ep->tx_cq->eps, &link[0], ep);
	if (ep->rx_cq)
		wf_prov_eps_attach(&ep->rx_cq->eps, &link[1], ep);
	link += 2;
	for (int i = 0; i < WF_PROV_EVENTS; i++) {
		if (ep->cntrs[i])
			wf_prov_eps_attach(&ep->cntrs[i]->eps, &link[i], ep);
	}
}

static void turn(struct wf_attended *attended)
{
	wf_prov_ep_turn(wf_container_of(attended, struct wf_prov_ep, attended));
}

static int attend(struct wf_prov_ep *ep)
{
	ep->attended = (struct wf_attended){
		.core = &ep->core.common,
		.turn = ep->srx ? turn : NULL,
	};
	return wf_core_attend_add(&ep->attended);
}

static void disable(struct wf_prov_ep *ep)
{
	wf_core_attend_remove(&ep->attended);
	for (size_t i = 0; i < sizeof(ep->links) / sizeof(ep->links[0]); i++)
		wf_prov_eps_detach(&ep->links[i]);
	wf_prov_domain_del_ep(ep->domain, ep);
	wf_base_fork_unwatch(&ep->fork_watch);
	wf_prov_av_detach(ep->av, &ep->av_user);
	/* Endpoints of a shared context may be in use. */
	wf_core_enter(&ep->core.common);
	wf_prov_peek_close(ep, NULL);
	if (ep->srx) {
		/* Receives that end now are reported to this endpoint's queue. */
		wf_prov_ep_turn(ep);
		wf_prov_peek_close(ep->srx, &ep->core.rdm);
		wf_prov_peek_close(ep->srx, &ep->core.shm);
	}
	wf_core_ep_close(&ep->core);
	if (ep->srx)
		wf_prov_srx_leave_locked(ep);
	wf_core_leave(&ep->core.common);
	wf_op_compq_unpromise(wf_core_ep_txq(&ep->core), ep->tx_size);
	wf_op_compq_unpromise(ep->rx_compq, ep->tx_size);
	ep->enabled = false;
	ep->receives = false;
}

/* When a peer dies, all that is under way with it may fail at once, and there
 * may be no memory then: slots for these completions are set aside now. */
static int promise_completions(struct wf_compq *txq, struct wf_compq *rxq,
			       size_t count)
{
	if (wf_op_compq_promise(txq, count))
		return -FI_ENOMEM;
	if (!wf_op_compq_promise(rxq, count))
		return 0;
	wf_op_compq_unpromise(txq, count);
	return -FI_ENOMEM;
}

/* The parameters of the core and its transports. */
/* Without a direction all of them are meant. */
static bool is_target(uint64_t caps)
{
	return (caps & WF_PROV_RMA_OPS) &&
	       (!(caps & WF_PROV_RMA_DIRECTIONS) ||
		(caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)));
}

static struct wf_core_ep_attr describe(struct wf_prov_ep *ep)
{
	const struct wf_prov_param *param = &wf_prov_param;

	return (struct wf_core_ep_attr){
		.host = {
			.addr = ep->addr,
			.tx_size = ep->tx_size,
			.txq = ep->tx_cq ? &ep->tx_cq->q : &wf_op_compq_none,
			.rxq = choose_rxq(ep),
			.names = {
				.get = name_get,
				.find = name_find,
				.changes = wf_prov_av_changes(ep->av),
				.arg = ep,
			},
			.regs = &ep->domain->regs,
			.is_target = is_target(ep->caps),
			.remote_writes = wf_prov_ep_cntr(
				ep, WF_PROV_EVENT_REMOTE_WRITE),
			.remote_reads = wf_prov_ep_cntr(
				ep, WF_PROV_EVENT_REMOTE_READ),
		},
		.shm = {
			.any_addr = ep->any_addr,
			.home = ep->home,
			.name_fd = ep->name_fd,
			.eager_max = param->eager_max,
			.cma_min = param->cma_min,
			.learns = !param->cma_min_is_set,
			.share_min = wf_prov_param_coop_min(),
			.chunk = CHUNK,
			.connect_timeout_ms = param->connect_timeout_ms,
			.dead_timeout_s = param->dead_timeout_s,
			.slots_log2 = SLOTS_LOG2,
			.lines_log2 = LINES_LOG2,
			.cma = param->cma,
			.allow_uid = param->allow_uid,
			.refuses = !param->shm,
		},
		.rdm = {
			.device = ep->nic_port ? WF_PROV_NIC_EFA : param->nic,
			.key_file = param->key_file,
			.no_ktls = !param->ktls,
			.fd = ep->nic_fd,
			.port = ep->nic_port,
			.medium_max = param->medium_max,
			.read_min = param->read_min,
			.medium_advised = !param->medium_max_is_set,
			.read_advised = !param->read_min_is_set,
			.runt_size = param->runt_size,
			.order = ep->order,
			.connect_timeout_ms = param->connect_timeout_ms,
			.dead_timeout_s = param->dead_timeout_s,
			.mtu = (uint32_t)param->mtu,
			.thread = param->net_thread,
			.reads = true,
			.hard_keys = ep->domain->hard_keys,
			.fault = wf_prov_param_fault(),
		},
	};
}

static void add_addrs(const struct wf_prov_ep *ep, struct wf_rdm_ep_attr *attr)
{
	unsigned int most = wf_nic_device_addrs(attr->device) - 1;

	if (wf_prov_param.ifaces && most)
		attr->more_count = wf_prov_iface_more(
			wf_prov_param.ifaces, &ep->addr, attr->more, most);
}

static void count_sends(struct wf_prov_ep *ep)
{
	ep->sends = wf_prov_ep_cntr(ep, WF_PROV_EVENT_SEND);
	if (ep->sends) { /* the short paths do not look for it */
		ep->fid.msg = &wf_prov_msg_ops_alias;
		ep->fid.tagged = &wf_prov_tagged_ops_alias;
	}
}

static int enable(struct wf_prov_ep *ep)
{
	struct wf_core_ep_attr attr;
	struct wf_compq *txq;
	int err;

	if (ep->enabled)
		return 0;
	err = check_bindings(ep);
	if (err)
		return err;
	ep->rx_compq = ep->rx_cq ? &ep->rx_cq->q : &wf_op_compq_none;
	/* Without Yama there is nothing to allow. */
	if (wf_prov_param.ptracer)
		wf_os_allow_tracers();
	attr = describe(ep);
	add_addrs(ep, &attr.rdm);
	txq = attr.host.txq;
	count_sends(ep);
	err = promise_completions(txq, ep->rx_compq, ep->tx_size);
	if (err)
		return err;
	err = wf_core_ep_open(&ep->core, &attr);
	if (err) {
		wf_op_compq_unpromise(txq, ep->tx_size);
		wf_op_compq_unpromise(ep->rx_compq, ep->tx_size);
		WF_FI_WARN(FI_LOG_EP_CTRL, "cannot listen on this node: %s\n",
			   fi_strerror(-err));
		return err;
	}
	ep->name_fd = -1; /* the transport's now */
	wf_base_fork_watch(&ep->fork_watch);
	ep->enabled = true;
	ep->receives = !ep->srx;
	if (ep->srx) {
		wf_core_enter(&ep->core.common);
		wf_prov_srx_join_locked(ep);
		wf_core_leave(&ep->core.common);
	}
	attach(ep);
	err = wf_prov_domain_add_ep(ep->domain, ep);
	if (!err && ep->domain->attended)
		err = attend(ep);
	if (err)
		disable(ep);
	return err;
}

/* -- fi_ops ---------------------------------------------------------------- */

static int ep_close(struct fid *fid)
{
	struct wf_prov_ep *ep = ep_of(fid);

	if (atomic_load(&ep->refs)) {
		WF_FI_WARN(FI_LOG_EP_CTRL, "endpoint has aliases\n");
		return -FI_EBUSY;
	}
	if (ep->enabled)
		disable(ep);
	else if (ep->av)
		wf_prov_av_detach(ep->av, &ep->av_user);
	wf_match_rxq_fini(&ep->rxq);
	wf_prov_name_unbind(ep);
	if (ep->tx_cq)
		atomic_fetch_sub(&ep->tx_cq->refs, 1);
	if (ep->rx_cq)
		atomic_fetch_sub(&ep->rx_cq->refs, 1);
	for (int i = 0; i < WF_PROV_EVENTS; i++) {
		if (ep->cntrs[i])
			atomic_fetch_sub(&ep->cntrs[i]->refs, 1);
	}
	if (ep->srx)
		atomic_fetch_sub(&ep->srx->refs, 1);
	if (ep->stx)
		wf_prov_stx_unref(ep->stx);
	if (ep->eq)
		wf_prov_eq_unref(ep->eq);
	atomic_fetch_sub(&ep->domain->refs, 1);
	free(ep);
	return 0;
}

static int bind_cq(struct wf_prov_ep *ep, struct wf_prov_cq *cq, uint64_t flags)
{
	uint64_t always = flags & FI_SELECTIVE_COMPLETION ? 0 : FI_COMPLETION;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain || ((flags & FI_TRANSMIT) && ep->tx_cq) ||
	    ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_always = always;
		ep->tx_mask = FI_COMPLETION;
		atomic_fetch_add(&cq->refs, 1);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_always = always;
		ep->rx_mask = FI_COMPLETION;
		atomic_fetch_add(&cq->refs, 1);
	}
	return 0;
}

static int bind_cntr(struct wf_prov_ep *ep, struct wf_prov_cntr *cntr,
		     uint64_t flags)
{
	static const uint64_t bits[WF_PROV_EVENTS] = {
		[WF_PROV_EVENT_SEND] = FI_SEND,
		[WF_PROV_EVENT_RECV] = FI_RECV,
		[WF_PROV_EVENT_READ] = FI_READ,
		[WF_PROV_EVENT_WRITE] = FI_WRITE,
		[WF_PROV_EVENT_REMOTE_READ] = FI_REMOTE_READ,
		[WF_PROV_EVENT_REMOTE_WRITE] = FI_REMOTE_WRITE,
	};
	uint64_t left = flags;

	if (cntr->domain != ep->domain)
		return -FI_EINVAL;
	for (int i = 0; i < WF_PROV_EVENTS; i++) {
		left &= ~bits[i];
		if ((flags & bits[i]) && ep->cntrs[i])
			return -FI_EINVAL;
	}
	if (left || !flags)
		return -FI_EBADFLAGS;
	for (int i = 0; i < WF_PROV_EVENTS; i++) {
		if (!(flags & bits[i]))
			continue;
		ep->cntrs[i] = cntr;
		atomic_fetch_add(&cntr->refs, 1);
	}
	return 0;
}

/* Sandia OpenSHMEM enables its endpoint first, to learn the address. Our own
 * operations use the counter that is bound when they are called; posted
 * receives and connected peers were set up with what was bound before. */
static int bind_cntr_late(struct wf_prov_ep *ep, struct wf_prov_cntr *cntr,
			  uint64_t flags)
{
	int err;

	if (flags & (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EOPBADSTATE;
	wf_core_enter(&ep->core.common);
	err = bind_cntr(ep, cntr, flags);
	if (!err)
		count_sends(ep);
	wf_core_leave(&ep->core.common);
	if (!err) /* takes the lock of the list, which comes before ours */
		attach(ep);
	return err;
}

static int bind_late(struct wf_prov_ep *ep, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_CNTR:
		return bind_cntr_late(ep, wf_prov_cntr_of(bfid), flags);
	case FI_CLASS_STX_CTX:
		return wf_prov_stx_bind(bfid, ep->domain, &ep->stx);
	default:
		return -FI_EOPBADSTATE;
	}
}

static int bind_srx(struct wf_prov_ep *ep, struct wf_prov_ep *srx)
{
	if (ep->srx || srx->domain != ep->domain)
		return -FI_EINVAL;
	ep->srx = srx;
	wf_core_share(&ep->core.common, &srx->core.common);
	atomic_fetch_add(&srx->refs, 1);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wf_prov_ep *ep = ep_of(fid);

	if (ep->enabled)
		return bind_late(ep, bfid, flags);
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(
			ep, wf_container_of(bfid, struct wf_prov_cq, fid.fid),
			flags);
	case FI_CLASS_AV:
		if (ep->av)
			return -FI_EINVAL;
		ep->av = wf_prov_av_of(
			wf_container_of(bfid, struct fid_av, fid));
		/* From now on the AV is in use; there are no channels yet that
		 * an insertion could concern. */
		wf_prov_av_attach(ep->av, &ep->av_user);
		return 0;
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = wf_prov_eq_of(
			wf_container_of(bfid, struct fid_eq, fid));
		wf_prov_eq_ref(ep->eq);
		return 0;
	case FI_CLASS_CNTR:
		return bind_cntr(ep, wf_prov_cntr_of(bfid), flags);
	case FI_CLASS_SRX_CTX:
		return bind_srx(ep, ep_of(bfid));
	case FI_CLASS_STX_CTX:
		return wf_prov_stx_bind(bfid, ep->domain, &ep->stx);
	default:
		return -FI_ENOSYS;
	}
}

int wf_prov_ep_flags(uint64_t *tx_flags, uint64_t *rx_flags, uint64_t *flags,
		     bool set)
{
	uint64_t side = *flags & (FI_TRANSMIT | FI_RECV);
	uint64_t *mine = side == FI_TRANSMIT ? tx_flags : rx_flags;

	if (side != FI_TRANSMIT && side != FI_RECV)
		return -FI_EINVAL;
	if (!set) {
		*flags = *mine;
		return 0;
	}
	if ((*flags & ~side) & ~OP_FLAGS)
		return -FI_EBADFLAGS;
	*mine = *flags & ~side;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct wf_prov_ep *ep = ep_of(fid);

	switch (command) {
	case FI_ENABLE:
		return enable(ep);
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return wf_prov_ep_flags(&ep->tx_flags, &ep->rx_flags, arg,
					command == FI_SETOPSFLAG);
	case FI_ALIAS:
		return wf_prov_alias_open(ep, arg);
	default:
		return -FI_ENOSYS;
	}
}

/* -- fi_ops_ep ------------------------------------------------------------- */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct wf_prov_ep *ep = ep_of(fid);
	int ret;

	if (!ep->receives)
		return ep->enabled ? -FI_ENOENT : -FI_EOPBADSTATE;
	wf_core_enter(&ep->core.common);
	ret = wf_match_rxq_cancel(&ep->rxq, context);
	wf_core_leave(&ep->core.common);
	return ret;
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval,
		     size_t *optlen)
{
	struct wf_prov_ep *ep = ep_of(fid);
	size_t value;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		value = ep->rxq.min_multi;
		break;
	case FI_OPT_CM_DATA_SIZE:
		value = 0;
		break;
	default:
		return -FI_ENOPROTOOPT;
	}
	if (*optlen < sizeof(value)) {
		*optlen = sizeof(value);
		return -FI_ETOOSMALL;
	}
	*optlen = sizeof(value);
	memcpy(optval, &value, sizeof(value));
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval,
		     size_t optlen)
{
	struct wf_prov_ep *ep = ep_of(fid);
	size_t value;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (optlen != sizeof(value))
		return -FI_EINVAL;
	memcpy(&value, optval, sizeof(value));
	wf_core_enter(&ep->core.common);
	ep->rxq.min_multi = value;
	wf_core_leave(&ep->core.common);
	return 0;
}

/* -- opening --------------------------------------------------------------- */

static void set_ops(struct wf_prov_ep *ep, void *context)
{
	bool locked = wf_core_has_threads(&ep->core.common);
	bool described = ep->domain->described;

	ep->fid = (struct fid_ep){
		.fid = {
			.fclass = FI_CLASS_EP,
			.context = context,
			.ops = &ep_fid_ops,
		},
		.ops = &wf_prov_ep_ops,
		.cm = &wf_prov_name_ops,
		.msg = described ? &wf_prov_msg_ops_described : locked ? &wf_prov_msg_ops_locked :
				&wf_prov_msg_ops_unlocked,
		.tagged = described ? &wf_prov_tagged_ops_described : locked ? &wf_prov_tagged_ops_locked :
				   &wf_prov_tagged_ops_unlocked,
		.rma = &wf_prov_rma_ops,
		.atomic = &wf_prov_atomic_ops,
		.collective = &wf_prov_nosys_collective,
	};
}

int wf_prov_ep_open(struct fid_domain *domain, struct fi_info *info,
		    struct fid_ep **ep_fid, void *context)
{
	struct wf_prov_domain *dom = wf_prov_domain_of(domain);
	struct wf_prov_ep *ep;
	int err;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	ep = aligned_alloc(WF_LINE, (sizeof(*ep) + WF_LINE - 1) &
					    ~(size_t)(WF_LINE - 1));
	if (!ep)
		return -FI_ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ep->domain = dom;
	ep->caps = info->caps;
	ep->nic_fd = -1;
	ep->held_fd = -1;
	ep->name_fd = -1;
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->tx_size = wf_prov_param.tx_size;
	ep->inject_size = wf_prov_param.inject_size;
	if (info->tx_attr) {
		ep->tx_flags = info->tx_attr->op_flags;
		ep->order = info->tx_attr->msg_order;
		if (info->tx_attr->size)
			ep->tx_size = info->tx_attr->size;
	}
	if (info->rx_attr)
		ep->rx_flags = info->rx_attr->op_flags;
	ep->av_user.inserted = on_inserted;
	ep->av_user.removed = on_removed;
	ep->fork_watch.in_child = in_child;
	wf_core_init(&ep->core.common, dom->locked);
	wf_base_list_init(&ep->claimed);
	wf_match_rxq_init(&ep->rxq, NULL);
	err = wf_prov_name_bind(ep, info->src_addr, info->src_addrlen,
				info->addr_format);
	if (err) {
		free(ep);
		return err;
	}
	set_ops(ep, context);
	atomic_fetch_add(&dom->refs, 1);
	*ep_fid = &ep->fid;
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

struct fi_ops_ep wf_prov_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = wf_prov_nosys_tx_ctx,
	.rx_ctx = wf_prov_nosys_rx_ctx,
	.rx_size_left = wf_prov_nosys_size_left,
	.tx_size_left = wf_prov_nosys_size_left,
};
