/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers that are not on the fast path: vectors, flags, waiting, peeking.
 */
#include "prov/xfer.h"

#include <errno.h>

#include "op/iov.h"
#include "prov/domain.h"
#include "prov/peek.h"
#include "prov/provider.h"

static inline bool can_send(const struct wf_prov_ep *ep)
{
	return wf_likely(ep->enabled && !ep->is_srx);
}

/* A message but for its buffers. */
static inline void describe(const struct wf_prov_ep *ep, struct wf_tx *tx,
			    uint64_t tag, uint64_t data, uint64_t flags,
			    void *context, bool tagged)
{
	tx->kind = WF_TX_SEND;
	tx->remote = NULL;
	tx->tagged = tagged;
	tx->has_data = flags & FI_REMOTE_CQ_DATA;
	tx->wants_comp = flags & FI_COMPLETION;
	tx->inject = flags & FI_INJECT;
	tx->fence = flags & FI_FENCE;
	tx->more = flags & FI_MORE;
	/* Nothing waits for an injected message that reports nothing. */
	tx->delivery = (flags & FI_DELIVERY_COMPLETE) &&
		       (!tx->inject || tx->wants_comp);
	tx->transmit = flags & FI_TRANSMIT_COMPLETE;
	tx->tag = tag;
	tx->data = data;
	tx->comp_flags = FI_SEND | wf_prov_xfer_kind(tagged);
	tx->context = context;
	tx->cntr = ep->sends;
}

static inline ssize_t submit(struct wf_prov_ep *ep, fi_addr_t dst,
			     const struct wf_tx *tx)
{
	if (wf_unlikely(tx->len > WF_PROV_MAX_MSG_SIZE))
		return -FI_EINVAL;
	if (wf_unlikely(tx->inject && tx->len > ep->inject_size))
		return -FI_EMSGSIZE;
	if (tx->wants_comp && !wf_op_compq_room(wf_core_ep_txq(&ep->core)))
		return -FI_EAGAIN;
	return wf_core_submit(&ep->core.common, dst, tx);
}

ssize_t wf_prov_xfer_send_locked(struct wf_prov_ep *ep,
				 const struct wf_prov_xfer *xfer)
{
	struct wf_tx tx;

	if (!can_send(ep))
		return -FI_EOPBADSTATE;
	if (xfer->iov_count > WF_PROV_IOV_LIMIT)
		return -FI_EINVAL;
	describe(ep, &tx, xfer->tag, xfer->data, xfer->flags, xfer->context,
		 xfer->tagged);
	tx.len = wf_op_iov_len(xfer->iov, xfer->iov_count);
	tx.iov_count = (uint32_t)xfer->iov_count;
	for (size_t i = 0; i < xfer->iov_count; i++)
		tx.iov[i] = xfer->iov[i];
	tx.described = xfer->desc && ep->domain->described;
	for (size_t i = 0; tx.described && i < xfer->iov_count; i++)
		tx.desc[i] = xfer->desc[i];
	if (!xfer->iov_count) {
		tx.described = false;
		tx.iov_count = 1;
		tx.iov[0] = (struct iovec){ NULL, 0 };
	}
	return submit(ep, xfer->addr, &tx);
}

ssize_t wf_prov_xfer_recv_locked(struct wf_prov_ep *ep,
				 const struct wf_prov_xfer *xfer)
{
	bool multi = !xfer->tagged && (xfer->flags & FI_MULTI_RECV);
	struct wf_rx *rx;

	if (!ep->receives)
		return -FI_EOPBADSTATE;
	if (xfer->iov_count > WF_PROV_IOV_LIMIT ||
	    (multi && xfer->iov_count != 1))
		return -FI_EINVAL;
	if (xfer->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return wf_prov_peek_locked(ep, xfer);
	rx = wf_prov_xfer_rx_locked(ep, xfer);
	if (!rx)
		return -FI_EAGAIN;
	rx->multi = multi;
	wf_match_rxq_post(&ep->rxq, rx);
	return 0;
}

struct wf_rx *wf_prov_xfer_rx_locked(struct wf_prov_ep *ep,
				     const struct wf_prov_xfer *xfer)
{
	struct wf_rx *rx = wf_base_pool_get(&ep->rxq.pool);

	if (!rx)
		return NULL;
	*rx = (struct wf_rx){
		.tag = xfer->tag,
		.ignore = xfer->ignore,
		.src = ep->directed ? xfer->addr : FI_ADDR_UNSPEC,
		.context = xfer->context,
		.flags = FI_RECV | wf_prov_xfer_kind(xfer->tagged),
		.len = wf_op_iov_len(xfer->iov, xfer->iov_count),
		.iov_count = (uint32_t)xfer->iov_count,
		.wants_comp = wf_prov_ep_reports_rx(ep, xfer->flags),
		.tagged = xfer->tagged,
		.described = xfer->desc && ep->domain->described,
	};
	for (size_t i = 0; i < xfer->iov_count; i++)
		rx->iov[i] = xfer->iov[i];
	for (size_t i = 0; rx->described && i < xfer->iov_count; i++)
		rx->desc[i] = xfer->desc[i];
	return rx;
}

ssize_t wf_prov_xfer_send_one_locked(struct wf_prov_ep *ep, const void *buf,
				     size_t len, fi_addr_t dst, uint64_t tag,
				     uint64_t data, uint64_t flags,
				     void *context, bool tagged, void *desc)
{
	struct wf_tx tx;

	if (!can_send(ep))
		return -FI_EOPBADSTATE;
	describe(ep, &tx, tag, data, flags, context, tagged);
	tx.len = len;
	tx.iov_count = 1;
	tx.iov[0] = (struct iovec){ (void *)(uintptr_t)buf, len };
	tx.described = desc;
	tx.desc[0] = desc;
	return submit(ep, dst, &tx);
}

ssize_t wf_prov_xfer_recv_one_locked(struct wf_prov_ep *ep, void *buf,
				     size_t len, fi_addr_t src, uint64_t tag,
				     uint64_t ignore, uint64_t flags,
				     void *context, bool tagged, void *desc)
{
	struct iovec iov = { buf, len };
	struct wf_prov_xfer xfer = {
		.iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = src,
		.tag = tag,
		.ignore = ignore,
		.flags = flags,
		.context = context,
		.tagged = tagged,
	};

	return wf_prov_xfer_recv_locked(ep, &xfer);
}

ssize_t wf_prov_xfer_sendv(struct wf_prov_ep *ep,
			   const struct wf_prov_xfer *xfer)
{
	struct wf_prov_xfer sent = *xfer;
	ssize_t ret;

	sent.flags &= ~FI_COMPLETION;
	if (wf_prov_ep_reports_tx(ep, xfer->flags))
		sent.flags |= FI_COMPLETION;
	wf_core_enter(&ep->core.common);
	ret = wf_prov_xfer_send_locked(ep, &sent);
	wf_core_leave(&ep->core.common);
	return ret;
}

ssize_t wf_prov_xfer_recvv(struct wf_prov_ep *ep,
			   const struct wf_prov_xfer *xfer)
{
	ssize_t ret;

	wf_core_enter(&ep->core.common);
	ret = wf_prov_xfer_recv_locked(ep, xfer);
	wf_core_leave(&ep->core.common);
	return ret;
}
