/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives that are not plain: unexpected messages, multi-receive buffers,
 * cancellation, errors.
 */
#include "match/rxq.h"

#include <errno.h>

#include <rdma/fi_errno.h>

/* Receives per slab of the pool; 192 bytes each. */
#define RX_PER_SLAB 128

void wf_match_rxq_init(struct wf_rxq *rxq, struct wf_compq *compq)
{
	rxq->compq = compq;
	rxq->cntr = NULL;
	rxq->plain = true;
	rxq->shared = false;
	rxq->reports_all = false;
	rxq->min_multi = 64;
	wf_base_pool_init(&rxq->pool, sizeof(struct wf_rx), RX_PER_SLAB, 0);
	wf_match_init(&rxq->msg);
	wf_match_init(&rxq->tagged);
}

static void drain(struct wf_match *m)
{
	struct wf_rx *rx;

	while ((rx = wf_match_first(m)))
		wf_match_unpost(m, rx);
	while (!wf_base_list_empty(&m->ux_order)) {
		struct wf_ux *ux =
			wf_container_of(m->ux_order.next, struct wf_ux, order);

		wf_match_unpark(m, ux);
		ux->ops->discard(ux);
	}
	wf_match_fini(m);
}

static void forget(struct wf_match *m, const void *owner)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &m->ux_order) {
		struct wf_ux *ux = wf_container_of(pos, struct wf_ux, order);

		if (ux->owner != owner)
			continue;
		wf_match_unpark(m, ux);
		ux->ops->discard(ux);
	}
}

void wf_match_rxq_forget(struct wf_rxq *rxq, const void *owner)
{
	forget(&rxq->msg, owner);
	forget(&rxq->tagged, owner);
}

void wf_match_rxq_deliver(struct wf_rxq *rxq, struct wf_ux *ux,
			  struct wf_rx *rx)
{
	rxq->compq = ux->compq;
	rxq->cntr = ux->cntr;
	rxq->reports_all = ux->reports_all;
	ux->ops->deliver(ux, rx);
}

void wf_match_rxq_queue_plain(struct wf_rxq *rxq, struct wf_rx *rx,
			      const struct wf_envelope *env)
{
	struct wf_compq *q = rxq->compq;
	struct wf_comp *comp = wf_op_compq_begin(q);

	wf_match_rxq_write_plain(comp, rx, env);
	comp->src = env->src;
	comp->failure = 0;
	wf_op_compq_end(q);
	wf_base_pool_put(&rxq->pool, rx);
}

void wf_match_rxq_fini(struct wf_rxq *rxq)
{
	drain(&rxq->msg);
	drain(&rxq->tagged);
	wf_base_pool_fini(&rxq->pool);
}

/* A multi-receive buffer is given back with the completion of the last message
 * in it, once no other message can come. */
static uint64_t piece_done(struct wf_rxq *rxq, struct wf_rx *piece)
{
	struct wf_rx *parent = piece->parent;

	if (--parent->pieces || !parent->closing)
		return 0;
	wf_base_pool_put(&rxq->pool, parent);
	return FI_MULTI_RECV;
}

static struct wf_comp describe(const struct wf_rx *rx,
			       const struct wf_envelope *env)
{
	return (struct wf_comp){
		.context = rx->context,
		.flags = rx->flags | env->flags,
		.len = env->len < rx->len ? env->len : rx->len,
		.buf = rx->iov[0].iov_base,
		.data = env->data,
		.tag = env->tag,
		.src = env->src,
	};
}

void wf_match_rxq_done_slow(struct wf_rxq *rxq, struct wf_rx *rx,
			    const struct wf_envelope *env)
{
	struct wf_comp comp = describe(rx, env);

	if (rx->parent)
		comp.flags |= piece_done(rxq, rx);
	if (env->len > rx->len) {
		wf_op_compq_fail(rxq->compq, &comp, FI_ETRUNC,
				 env->len - rx->len);
		wf_op_cntr_fail(rxq->cntr, 1);
	} else {
		if (!rxq->compq->discards &&
		    (rx->wants_comp || rxq->reports_all ||
		     (comp.flags & FI_MULTI_RECV)))
			wf_op_compq_push(rxq->compq, &comp);
		wf_op_cntr_add(rxq->cntr, 1);
	}
	wf_base_pool_put(&rxq->pool, rx);
}

void wf_match_rxq_fail(struct wf_rxq *rxq, struct wf_rx *rx,
		       const struct wf_envelope *env, int err)
{
	struct wf_comp comp = describe(rx, env);

	comp.len = 0;
	if (rx->parent)
		comp.flags |= piece_done(rxq, rx);
	wf_op_compq_fail(rxq->compq, &comp, err, 0);
	wf_op_cntr_fail(rxq->cntr, 1);
	wf_base_pool_put(&rxq->pool, rx);
}

struct wf_rx *wf_match_rxq_cut(struct wf_rxq *rxq, struct wf_rx *rx, size_t len)
{
	struct wf_rx *piece = wf_base_pool_get(&rxq->pool);

	if (!piece)
		return NULL;
	if (len > rx->len)
		len = rx->len;
	*piece = (struct wf_rx){
		.context = rx->context,
		.flags = rx->flags,
		.len = len,
		.iov_count = 1,
		.wants_comp = rx->wants_comp,
		.tagged = rx->tagged,
		.described = rx->described,
		.parent = rx,
		.iov[0] = { rx->iov[0].iov_base, len },
		.desc[0] = rx->described ? rx->desc[0] : NULL,
	};
	wf_base_list_init(&piece->link);
	rx->iov[0].iov_base = (char *)rx->iov[0].iov_base + len;
	rx->len -= len;
	rx->pieces++;
	if (rx->len < rxq->min_multi || !rx->len) {
		wf_match_unpost(wf_match_rxq_of(rxq, rx->tagged), rx);
		rx->closing = true;
	}
	return piece;
}

/* A multi-receive buffer takes unexpected messages until it is used up. It is
 * posted first, so that cutting is the same in both directions. */
static void post_multi(struct wf_rxq *rxq, struct wf_match *m, struct wf_rx *rx)
{
	struct wf_ux *ux;

	wf_match_post(m, rx);
	while (!rx->closing &&
	       (ux = wf_match_find_ux(m, rx->tag, rx->ignore, rx->src))) {
		struct wf_rx *piece;
		bool last = rx->len <= ux->len ||
			    rx->len - ux->len < rxq->min_multi;

		piece = wf_match_rxq_cut(rxq, rx, ux->len);
		if (!piece)
			return;
		wf_match_unpark(m, ux);
		wf_match_rxq_deliver(rxq, ux, piece);
		/* The delivery may have ended and freed the buffer. */
		if (last)
			return;
	}
}

void wf_match_rxq_post_slow(struct wf_rxq *rxq, struct wf_rx *rx)
{
	struct wf_match *m = wf_match_rxq_of(rxq, rx->tagged);
	struct wf_ux *ux;

	if (wf_unlikely(rx->multi)) {
		post_multi(rxq, m, rx);
		return;
	}
	ux = wf_match_find_ux(m, rx->tag, rx->ignore, rx->src);
	if (!ux) {
		wf_match_post(m, rx);
		return;
	}
	wf_match_unpark(m, ux);
	wf_match_rxq_deliver(rxq, ux, rx);
}

int wf_match_rxq_cancel(struct wf_rxq *rxq, const void *context)
{
	const struct wf_envelope nothing = { .src = WF_MATCH_ANY };
	struct wf_match *m = &rxq->tagged;
	struct wf_rx *rx = wf_match_find_context(m, context);
	struct wf_comp comp;

	if (!rx) {
		m = &rxq->msg;
		rx = wf_match_find_context(m, context);
	}
	if (!rx)
		return -ENOENT;
	wf_match_unpost(m, rx);
	comp = describe(rx, &nothing);
	comp.tag = rx->tag;
	wf_op_compq_fail(rxq->compq, &comp, FI_ECANCELED, 0);
	wf_op_cntr_fail(rxq->cntr, 1);
	/* Messages that still arrive in pieces of it finish first. */
	rx->closing = true;
	if (!rx->pieces)
		wf_base_pool_put(&rxq->pool, rx);
	return 0;
}
