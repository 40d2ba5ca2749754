/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's receive side as transports see it: they ask for the receive
 * that takes a message, fill it and report it, or park the message until the
 * application posts one. Multi-receive buffers are cut into pieces here, so
 * that a transport only ever sees ordinary receives.
 *
 * The endpoint's lock covers everything.
 */
#ifndef WF_MATCH_RXQ_H
#define WF_MATCH_RXQ_H

#include <rdma/fabric.h>

#include "base/pool.h"
#include "match/match.h"
#include "op/cntr.h"
#include "op/compq.h"

struct wf_rxq {
	/* Queues of the endpoint that receives now. Several endpoints may share
	 * this; one at a time receives. */
	struct wf_compq *compq;
	struct wf_cntr *cntr; /* counts receives; NULL: none */
	bool plain;	      /* one endpoint, no counter: receives may be */
	bool shared;	      /* receives outlive each of the endpoints */
	bool reports_all;     /* else only receives that want it are reported */
	struct wf_pool pool;
	size_t min_multi; /* FI_OPT_MIN_MULTI_RECV */
	struct wf_match msg;
	struct wf_match tagged;
};

/* An envelope is what a message says of itself, for its completion. */
struct wf_envelope {
	uint64_t tag;
	uint64_t data;
	uint64_t src;	/* WF_MATCH_ANY when the sender is not in the AV */
	uint64_t flags; /* FI_REMOTE_CQ_DATA */
	size_t len;	/* of the whole message */
};

void wf_match_rxq_init(struct wf_rxq *rxq, struct wf_compq *compq);

/* Forgets posted receives without completions and discards what is parked:
 * the endpoint is closing. */
void wf_match_rxq_fini(struct wf_rxq *rxq);

/* The slow part of wf_match_rxq_post(), when messages wait or @rx is not
 * plain. */
void wf_match_rxq_post_slow(struct wf_rxq *rxq, struct wf_rx *rx);

/* 0 and an FI_ECANCELED completion, or -ENOENT. */
int wf_match_rxq_cancel(struct wf_rxq *rxq, const void *context);

/* Reports a receive as failed, with what was known of its message. */
void wf_match_rxq_fail(struct wf_rxq *rxq, struct wf_rx *rx,
		       const struct wf_envelope *env, int err);

/* Hands an unexpected message to @rx, on behalf of the endpoint that it
 * arrived at. */
void wf_match_rxq_deliver(struct wf_rxq *rxq, struct wf_ux *ux,
			  struct wf_rx *rx);

/* Discards the unexpected messages of an endpoint that is gone. */
void wf_match_rxq_forget(struct wf_rxq *rxq, const void *owner);

/* A piece of the multi-receive buffer @rx for @len bytes; NULL without
 * memory. */
struct wf_rx *wf_match_rxq_cut(struct wf_rxq *rxq, struct wf_rx *rx,
			       size_t len);

/* The slow part of wf_match_rxq_done(), for receives that are not plain. */
void wf_match_rxq_done_slow(struct wf_rxq *rxq, struct wf_rx *rx,
			    const struct wf_envelope *env);

static inline struct wf_match *wf_match_rxq_of(struct wf_rxq *rxq, bool tagged)
{
	return tagged ? &rxq->tagged : &rxq->msg;
}

/* Gives @rx (from the pool) to the oldest unexpected message, or posts it. */
static inline void wf_match_rxq_post(struct wf_rxq *rxq, struct wf_rx *rx)
{
	struct wf_match *m = wf_match_rxq_of(rxq, rx->tagged);

	if (wf_likely(!m->unexpected && !rx->multi))
		wf_match_post(m, rx);
	else
		wf_match_rxq_post_slow(rxq, rx);
}

/* Writes the completion of a plain receive, up to its source. */
static inline void wf_match_rxq_write_plain(struct wf_comp *comp,
					    const struct wf_rx *rx,
					    const struct wf_envelope *env)
{
	comp->context = rx->context;
	comp->flags = rx->flags | env->flags;
	comp->len = env->len;
	comp->buf = rx->iov[0].iov_base;
	comp->data = env->data;
	comp->tag = env->tag;
}

/* Through the queue. Out of line, because it needs registers that the direct
 * way does not. */
void wf_match_rxq_queue_plain(struct wf_rxq *rxq, struct wf_rx *rx,
			      const struct wf_envelope *env);

/* Reports a receive of wf_match_take_plain() and returns it to the pool. */
static inline void wf_match_rxq_done_plain(struct wf_rxq *rxq, struct wf_rx *rx,
					   const struct wf_envelope *env)
{
	struct wf_compq *q = rxq->compq;

	if (!q->direct) {
		wf_match_rxq_queue_plain(rxq, rx, env);
		return;
	}
	wf_match_rxq_write_plain(q->direct, rx, env);
	q->direct = NULL;
	q->direct_used = true;
	wf_base_pool_put(&rxq->pool, rx);
}

/* The receive for a message, no longer posted; NULL when there is none (or no
 * memory for a piece: the message is then parked or retried by the caller). */
static inline struct wf_rx *wf_match_rxq_take(struct wf_rxq *rxq, bool tagged,
					      uint64_t tag, uint64_t src,
					      size_t len)
{
	struct wf_match *m = wf_match_rxq_of(rxq, tagged);
	struct wf_rx *rx = wf_match_find(m, tag, src);

	if (!rx)
		return NULL;
	if (wf_unlikely(rx->multi))
		return wf_match_rxq_cut(rxq, rx, len);
	wf_match_unpost(m, rx);
	return rx;
}

/* Reports a receive whose bytes are in place and returns it to the pool. */
static inline void wf_match_rxq_done(struct wf_rxq *rxq, struct wf_rx *rx,
				     const struct wf_envelope *env)
{
	if (wf_unlikely(env->len > rx->len || rx->parent || !rx->wants_comp ||
			!rxq->plain))
		wf_match_rxq_done_slow(rxq, rx, env);
	else
		wf_match_rxq_done_plain(rxq, rx, env);
}

#endif
