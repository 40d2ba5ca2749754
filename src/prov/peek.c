/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peeks at messages that have no receive. A claimed message leaves the matcher
 * and is remembered in the application's fi_context until it is received or
 * discarded.
 */
#include "prov/peek.h"

#include "prov/xfer.h"

static struct wf_comp describe(const struct wf_prov_xfer *xfer,
			       const struct wf_ux *ux)
{
	return (struct wf_comp){
		.context = xfer->context,
		.flags = FI_RECV | wf_prov_xfer_kind(xfer->tagged) |
			 (ux ? ux->flags : 0),
		.len = ux ? ux->len : 0,
		.data = ux ? ux->data : 0,
		.tag = ux ? ux->tag : xfer->tag,
		.src = ux ? ux->src : FI_ADDR_NOTAVAIL,
	};
}

static void report(struct wf_prov_ep *ep, const struct wf_prov_xfer *xfer,
		   const struct wf_ux *ux)
{
	struct wf_comp comp = describe(xfer, ux);

	wf_op_compq_push(ep->rxq.compq, &comp);
}

static ssize_t peek(struct wf_prov_ep *ep, const struct wf_prov_xfer *xfer)
{
	struct wf_match *m = wf_match_rxq_of(&ep->rxq, xfer->tagged);
	uint64_t src = ep->directed ? xfer->addr : FI_ADDR_UNSPEC;
	struct fi_context *context = xfer->context;
	struct wf_comp comp;
	struct wf_ux *ux;

	if ((xfer->flags & FI_CLAIM) && !context)
		return -FI_EINVAL;
	/* A peek that never looked at the rings would never see anything; a
	 * shared context has none of its own. */
	if (!ep->is_srx)
		wf_core_ep_progress(&ep->core);
	ux = wf_match_find_ux(m, xfer->tag, xfer->ignore, src);
	if (!ux) {
		comp = describe(xfer, NULL);
		wf_op_compq_fail(ep->rxq.compq, &comp, FI_ENOMSG, 0);
		return 0;
	}
	report(ep, xfer, ux);
	if (!(xfer->flags & (FI_CLAIM | FI_DISCARD)))
		return 0;
	wf_match_unpark(m, ux);
	if (xfer->flags & FI_DISCARD) {
		ux->ops->discard(ux);
		return 0;
	}
	wf_base_list_add_tail(&ep->claimed, &ux->order);
	context->internal[0] = ux;
	return 0;
}

static struct wf_ux *find_claimed(struct wf_prov_ep *ep, const void *claimed)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->claimed) {
		struct wf_ux *ux = wf_container_of(pos, struct wf_ux, order);

		if (ux == claimed)
			return ux;
	}
	return NULL;
}

static ssize_t claim(struct wf_prov_ep *ep, const struct wf_prov_xfer *xfer)
{
	struct fi_context *context = xfer->context;
	struct wf_ux *ux =
		context ? find_claimed(ep, context->internal[0]) : NULL;
	struct wf_rx *rx;

	if (!ux)
		return -FI_EINVAL;
	if (xfer->flags & FI_DISCARD) {
		report(ep, xfer, ux);
		wf_base_list_del(&ux->order);
		ux->ops->discard(ux);
		return 0;
	}
	rx = wf_prov_xfer_rx_locked(ep, xfer);
	if (!rx)
		return -FI_EAGAIN;
	wf_base_list_del(&ux->order);
	wf_match_rxq_deliver(&ep->rxq, ux, rx);
	return 0;
}

ssize_t wf_prov_peek_locked(struct wf_prov_ep *ep,
			    const struct wf_prov_xfer *xfer)
{
	if (!ep->rxq.compq || ep->rxq.compq->discards)
		return -FI_ENOCQ; /* nowhere to say what was seen */
	if (xfer->flags & FI_PEEK)
		return peek(ep, xfer);
	if (xfer->flags & FI_CLAIM)
		return claim(ep, xfer);
	return -FI_EINVAL; /* FI_DISCARD alone says of nothing */
}

void wf_prov_peek_close(struct wf_prov_ep *ep, const void *owner)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->claimed) {
		struct wf_ux *ux = wf_container_of(pos, struct wf_ux, order);

		if (owner && ux->owner != owner)
			continue;
		wf_base_list_del(pos);
		ux->ops->discard(ux);
	}
}
