/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint: the core (core.h) with its two transports, shared memory for
 * peers on this node and packets for all others, and the fast path through
 * both. The calls of libfabric inline from here what a small message and an
 * idle poll need, without a table and without a route: if a channel is in
 * shm.outs, the route is shared memory.
 */
#ifndef WF_CORE_EP_H
#define WF_CORE_EP_H

#include "core/core.h"
#include "rdm/ep.h"
#include "shm/ep.h"

struct wf_core_ep {
	struct wf_core common;
	struct wf_shm_ep shm;
	struct wf_rdm_ep rdm;
};

/* The host as wf_core_open() wants it, and the settings of each transport. */
struct wf_core_ep_attr {
	struct wf_host host;
	struct wf_shm_ep_attr shm;
	struct wf_rdm_ep_attr rdm;
};

/* 0 or -errno. */
int wf_core_ep_open(struct wf_core_ep *ep, const struct wf_core_ep_attr *attr);
void wf_core_ep_close(struct wf_core_ep *ep);

/* Polls the only ring that is watched, and looks at the clock. */
void wf_core_ep_tick(struct wf_core_ep *ep);

/* Without such a ring: looks for the reply that we wait for, and at the ring, or
 * does all that progress may have to do. */
void wf_core_ep_asked(struct wf_core_ep *ep);

/* An idle poll is a handful of loads: the ring that was last in use, and whether
 * any other has rung. While the first has messages, the others are looked at once
 * in WF_HOST_POLLS_PER_CLOCK polls; one of them that has messages is then watched
 * as well, by the long way. */
static inline void wf_core_ep_progress(struct wf_core_ep *ep)
{
	struct wf_host *host = &ep->common.host;
	struct wf_shm_in *in = host->only;

	if (wf_unlikely(!in))
		wf_core_ep_asked(ep);
	else if (wf_unlikely(++host->polls >= WF_HOST_POLLS_PER_CLOCK))
		wf_core_ep_tick(ep);
	else if (wf_shm_in_ready(in))
		wf_shm_in_poll(in, WF_SHM_IN_BUDGET);
	else if (wf_unlikely(wf_shm_watch_has_rung(&ep->shm.watch)))
		wf_core_progress(&ep->common);
	else
		wf_shm_in_prefetch(in);
}

/* The open channel to @dst, or NULL: take wf_core_submit(). */
static inline struct wf_shm_out *wf_core_ep_out(const struct wf_core_ep *ep,
						uint64_t dst)
{
	return wf_shm_ep_out(&ep->shm, dst);
}

/* Where completions of our operations go. */
static inline struct wf_compq *wf_core_ep_txq(const struct wf_core_ep *ep)
{
	return ep->common.host.txq;
}

#endif
