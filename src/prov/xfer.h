/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of message and tagged calls. Each function is inlined into
 * the two op tables (with and without the lock), so the choice costs nothing
 * per call.
 */
#ifndef WF_PROV_XFER_H
#define WF_PROV_XFER_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "prov/alias.h"
#include "prov/ep.h"
#include "shm/put.h"

/* One transfer, whatever call it came by. */
struct wf_prov_xfer {
	const struct iovec *iov;
	void **desc; /* of the pieces, or NULL; not looked at in domains that
		      * have no use for it: programs do not set it there */
	size_t iov_count;
	fi_addr_t addr; /* destination, or source of a directed receive */
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	uint64_t flags; /* FI_* of the call */
	void *context;
	bool tagged;
};

/* Everything but the fast path. Called with the lock held. */
ssize_t wf_prov_xfer_send_locked(struct wf_prov_ep *ep,
				 const struct wf_prov_xfer *xfer);
ssize_t wf_prov_xfer_recv_locked(struct wf_prov_ep *ep,
				 const struct wf_prov_xfer *xfer);

/* A receive from the pool, filled in, not posted; NULL without memory. */
struct wf_rx *wf_prov_xfer_rx_locked(struct wf_prov_ep *ep,
				     const struct wf_prov_xfer *xfer);

static inline void wf_prov_xfer_lock(struct wf_prov_ep *ep, bool locked)
{
	if (locked)
		wf_core_enter(&ep->core.common);
}

static inline void wf_prov_xfer_unlock(struct wf_prov_ep *ep, bool locked)
{
	if (locked)
		wf_core_leave(&ep->core.common);
}

static inline uint64_t wf_prov_xfer_kind(bool tagged)
{
	return tagged ? FI_TAGGED : FI_MSG;
}

/* The slow way of wf_prov_xfer_recv(). Lock held. */
ssize_t wf_prov_xfer_recv_one_locked(struct wf_prov_ep *ep, void *buf,
				     size_t len, fi_addr_t src, uint64_t tag,
				     uint64_t ignore, uint64_t flags,
				     void *context, bool tagged, void *desc);

/* The slow way of wf_prov_xfer_send(). Lock held. */
ssize_t wf_prov_xfer_send_one_locked(struct wf_prov_ep *ep, const void *buf,
				     size_t len, fi_addr_t dst, uint64_t tag,
				     uint64_t data, uint64_t flags,
				     void *context, bool tagged, void *desc);

/* A single buffer, sent by a call without flags of its own (@flags are the
 * endpoint's) or by inject (FI_INJECT, no completion). The last four are
 * constants, and @desc may be: always inlined, so that each call is its own
 * straight line. @slot_flags say whether it is tagged and carries data. Not
 * @counted: there is no counter of sends. */
static inline __attribute__((always_inline)) ssize_t
wf_prov_xfer_send(struct wf_prov_ep *ep, const void *buf, size_t len,
		  fi_addr_t dst, uint64_t tag, uint64_t data, uint64_t flags,
		  void *context, void *desc, uint8_t slot_flags, bool inject,
		  bool locked, bool counted)
{
	bool comp = !inject && wf_prov_ep_reports_tx(ep, flags);
	bool tagged = slot_flags & WF_SHM_SLOT_TAGGED;
	struct wf_shm_out *out;
	ssize_t ret = 0;

	wf_prov_xfer_lock(ep, locked);
	out = wf_core_ep_out(&ep->core, dst);
	if (wf_likely(out && len <= WF_SHM_PUT_MAX &&
		      !(flags & (FI_DELIVERY_COMPLETE | FI_FENCE))) &&
	    (!comp || wf_likely(wf_op_compq_room(wf_core_ep_txq(&ep->core)))) &&
	    wf_likely(wf_shm_put(out, slot_flags, tag, data, buf, len))) {
		if (comp)
			wf_op_compq_push_sent(
				wf_core_ep_txq(&ep->core), context,
				FI_SEND | wf_prov_xfer_kind(tagged));
		if (counted && ep->sends)
			wf_op_cntr_add(ep->sends, 1);
	} else {
		flags |= inject ? FI_INJECT : 0;
		flags |= slot_flags & WF_SHM_SLOT_DATA ? FI_REMOTE_CQ_DATA : 0;
		flags &= comp ? ~0ull : ~FI_COMPLETION;
		flags |= comp ? FI_COMPLETION : 0;
		ret = wf_prov_xfer_send_one_locked(ep, buf, len, dst, tag, data,
						   flags, context, tagged,
						   desc);
	}
	wf_prov_xfer_unlock(ep, locked);
	return ret;
}

/* A single buffer, received by a call without flags of its own (@flags are the
 * endpoint's). */
static inline __attribute__((always_inline)) ssize_t
wf_prov_xfer_recv(struct wf_prov_ep *ep, void *buf, size_t len, fi_addr_t src,
		  uint64_t tag, uint64_t ignore, uint64_t flags, void *context,
		  void *desc, bool tagged, bool locked)
{
	struct wf_rx *rx;
	ssize_t ret = 0;

	wf_prov_xfer_lock(ep, locked);
	if (wf_unlikely(!ep->receives ||
			(!tagged && (flags & FI_MULTI_RECV)))) {
		ret = wf_prov_xfer_recv_one_locked(ep, buf, len, src, tag,
						   ignore, flags, context,
						   tagged, desc);
		goto unlock;
	}
	rx = wf_base_pool_get(&ep->rxq.pool);
	if (wf_unlikely(!rx)) {
		ret = -FI_EAGAIN;
		goto unlock;
	}
	rx->tag = tag;
	rx->ignore = ignore;
	rx->src = ep->directed ? src : FI_ADDR_UNSPEC;
	rx->context = context;
	rx->flags = FI_RECV | wf_prov_xfer_kind(tagged);
	rx->len = len;
	rx->iov_count = 1;
	rx->wants_comp = wf_prov_ep_reports_rx(ep, flags);
	rx->plain = rx->wants_comp && ep->rxq.plain;
	rx->multi = false;
	rx->tagged = tagged;
	rx->described = desc;
	rx->closing = false;
	rx->pieces = 0;
	rx->parent = NULL;
	rx->iov[0].iov_base = buf;
	rx->iov[0].iov_len = len;
	if (desc)
		rx->desc[0] = desc;
	wf_match_rxq_post(&ep->rxq, rx);
unlock:
	wf_prov_xfer_unlock(ep, locked);
	return ret;
}

/* Vectors and calls with flags: one function each, lock and all. */
ssize_t wf_prov_xfer_sendv(struct wf_prov_ep *ep,
			   const struct wf_prov_xfer *xfer);
ssize_t wf_prov_xfer_recvv(struct wf_prov_ep *ep,
			   const struct wf_prov_xfer *xfer);

#endif
