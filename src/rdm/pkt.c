/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets on their way out.
 */
#include "rdm/pkt.h"

#include <assert.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "rdm/ep.h"
#include "rdm/lost.h"
#include "rdm/peer.h"
#include "rdm/run.h"
#include "wire/packet.h"

/* User addresses have 47 bits: the rest of a request's id tells one use of a
 * packet from the next. */
#define TURN_SHIFT 48

static uint64_t wr_id_of(const struct wf_rdm_pkt *pkt)
{
	return (uint64_t)pkt->turn << TURN_SHIFT | (uintptr_t)pkt;
}

static struct wf_rdm_pkt *make(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
			       struct wf_pool *pool, bool large)
{
	struct wf_rdm_pkt *pkt = wf_base_pool_get(pool);

	if (!pkt)
		return NULL;
	pkt->turn = ep->next_turn++;
	pkt->peer = peer;
	pkt->completed = wf_rdm_pkt_none;
	pkt->owner = NULL;
	pkt->payload = 0;
	pkt->len = 0;
	pkt->run = 0;
	pkt->large = large;
	pkt->is_request = false;
	pkt->quiet = true;
	pkt->repeats = false;
	pkt->rdma = 0;
	pkt->data.len = 0;
	return pkt;
}

struct wf_rdm_pkt *wf_rdm_pkt_get(struct wf_rdm_ep *ep,
				  struct wf_rdm_peer *peer, size_t bytes)
{
	bool large = bytes > WF_RDM_PKT_SMALL;

	return make(ep, peer, large ? &ep->large_pkts : &ep->small_pkts, large);
}

struct wf_rdm_pkt *wf_rdm_pkt_get_run(struct wf_rdm_ep *ep,
				      struct wf_rdm_peer *peer)
{
	struct wf_rdm_pkt *pkt = make(ep, peer, &ep->runs, false);

	if (pkt)
		pkt->run = 1;
	return pkt;
}

void wf_rdm_pkt_put(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt)
{
	pkt->turn = ep->next_turn++; /* before anyone may use it again */
	wf_base_pool_put(pkt->large ? &ep->large_pkts :
			 pkt->run   ? &ep->runs :
				      &ep->small_pkts,
			 pkt);
}

struct wf_rdm_pkt *wf_rdm_pkt_make(struct wf_rdm_ep *ep,
				   struct wf_rdm_peer *peer,
				   const struct wf_wire_packet *wire,
				   size_t more)
{
	return wf_rdm_pkt_build(ep, peer, wire, wf_wire_packet_header(wire),
				more);
}

struct wf_rdm_pkt *wf_rdm_pkt_build(struct wf_rdm_ep *ep,
				    struct wf_rdm_peer *peer,
				    const struct wf_wire_packet *wire,
				    size_t header, size_t more)
{
	struct wf_rdm_pkt *pkt = wf_rdm_pkt_get(ep, peer, header + more);

	assert(header + more <= ep->max_msg);
	if (!pkt)
		return NULL;
	pkt->len = (uint16_t)wf_wire_packet_encode(wire, pkt->buf, header);
	return pkt;
}

static struct wf_nic_wr request(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
				uint32_t flags)
{
	struct wf_rdm_peer *peer = pkt->peer;

	peer->outstanding++;
	ep->outstanding++;
	ep->posts++;
	if (flags & WF_NIC_WR_MORE)
		ep->unrung = true;
	return (struct wf_nic_wr){
		.wr_id = wr_id_of(pkt),
		.qkey = WF_RDM_QKEY,
		.ah = peer->ah,
		.qpn = WF_NIC_QPN_FIRST,
		.flags = flags,
	};
}

void wf_rdm_pkt_post(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt)
{
	const struct wf_nic_wr wr =
		request(ep, pkt,
			(ep->last ? 0 : WF_NIC_WR_MORE) |
				(pkt->quiet ? WF_NIC_WR_QUIET : 0));
	int err;

	if (pkt->rdma) {
		err = (pkt->rdma == WF_NIC_OP_READ ? wf_nic_post_read :
						     wf_nic_post_write)(
			ep->qp, &wr, &pkt->remote, &pkt->data);
	} else if (pkt->len <= ep->inline_max && !pkt->data.len) {
		err = wf_nic_post_inline(ep->qp, &wr, pkt->buf, pkt->len);
	} else {
		const struct wf_nic_sge sge[2] = {
			{ pkt->buf, pkt->len, ep->pkt_lkeys[pkt->large] },
			pkt->data,
		};

		err = wf_nic_post_send(ep->qp, &wr, sge, pkt->data.len ? 2 : 1);
	}
	assert(!err);
	(void)err;
}

void wf_rdm_pkt_post_read(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			  const struct wf_nic_remote *from,
			  const struct wf_nic_sge *to)
{
	const struct wf_nic_wr wr = request(ep, pkt, WF_NIC_WR_MORE);
	int err = wf_nic_post_read(ep->qp, &wr, from, to);

	assert(!err);
	(void)err;
}

static struct wf_nic_wr run_wr(const struct wf_rdm_pkt *pkt, bool more)
{
	return (struct wf_nic_wr){
		.wr_id = wr_id_of(pkt),
		.qkey = WF_RDM_QKEY,
		.ah = pkt->peer->ah,
		.qpn = WF_NIC_QPN_FIRST,
		.flags = WF_NIC_WR_QUIET | (more ? WF_NIC_WR_MORE : 0),
	};
}

int wf_rdm_pkt_post_run(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			const struct iovec *late, bool more, uint32_t *id)
{
	struct wf_nic_wr wr = run_wr(pkt, more);
	const struct wf_nic_sge sge = { wf_rdm_run_bytes(pkt), pkt->len,
					ep->own.lkey };
	int ret;

	if (late) {
		wr.late = late->iov_base;
		wr.late_len = (uint32_t)late->iov_len;
	}
	ret = wf_nic_post_run(ep->qp, &wr, &sge, id);
	if (ret >= 0)
		(void)request(ep, pkt, wr.flags);
	return ret;
}

bool wf_rdm_pkt_extend(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, bool more,
		       uint32_t id, uint32_t len)
{
	const struct wf_nic_wr wr = run_wr(pkt, more);

	if (!wf_nic_extend_run(ep->qp, &wr, id, len))
		return false;
	if (more)
		ep->unrung = true;
	return true;
}

void wf_rdm_pkt_none(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	(void)ep;
	(void)pkt;
	(void)err;
}

static int to_errno(enum wf_nic_status status)
{
	switch (status) {
	case WF_NIC_OK:
		return 0;
	case WF_NIC_FLUSHED:
		return FI_ECANCELED;
	case WF_NIC_UNRESP:
		return FI_ETIMEDOUT;
	case WF_NIC_UNREACH:
	case WF_NIC_UNKNOWN_PEER:
		return FI_EHOSTUNREACH;
	case WF_NIC_ABORT:
	case WF_NIC_BAD_QPN:
		return FI_ECONNRESET;
	case WF_NIC_BAD_LKEY:
	case WF_NIC_REM_ADDR:
		return FI_EKEYREJECTED;
	case WF_NIC_UNSUPP_OP:
		return FI_EOPNOTSUPP;
	default:
		return FI_EIO;
	}
}

/* Errors that mean that the whole peer is gone, not that one request was
 * refused. */
static bool is_death(enum wf_nic_status status)
{
	switch (status) {
	case WF_NIC_UNRESP:
	case WF_NIC_UNREACH:
	case WF_NIC_UNKNOWN_PEER:
	case WF_NIC_ABORT:
	case WF_NIC_BAD_QPN:
		return true;
	default:
		return false;
	}
}

void wf_rdm_pkt_done(struct wf_rdm_ep *ep, const struct wf_nic_wc *wc)
{
	enum wf_nic_status status = (enum wf_nic_status)wc->status;
	struct wf_rdm_pkt *pkt =
		(void *)(uintptr_t)(wc->wr_id & ((1ull << TURN_SHIFT) - 1));
	struct wf_rdm_peer *peer = pkt->peer;
	int err = to_errno(status);

	if (pkt->turn != wc->wr_id >> TURN_SHIFT) {
		wf_rdm_stat_add(ep, WF_RDM_STAT_stale_completions, 1);
		return;
	}
	peer->outstanding--;
	ep->outstanding--;
	if (wf_unlikely(err && pkt->run))
		wf_rdm_run_lost(pkt, wc->len);
	/* While it is barred, requests of lives that have ended come back. */
	if (wf_unlikely(is_death(status) && !peer->barred)) {
		/* No process has the address now. FI_EHOSTUNREACH if it never
		 * answered, FI_ECONNRESET if it did. */
		if (!peer->greeted_us)
			err = FI_EHOSTUNREACH;
		else if (err == FI_EHOSTUNREACH)
			err = FI_ECONNRESET;
		wf_rdm_peer_gone(peer, err);
	} else if (wf_unlikely(peer->gone) && !err) {
		wf_rdm_peer_back(peer);
	} else if (wf_unlikely(peer->gone) && !peer->barred) {
		/* Messages may wait for the answer to a probe. */
		wf_rdm_peer_fail(peer, err);
	}
	pkt->completed(ep, pkt, err);
	/* Any other error would come again at once. */
	if (wf_likely(!err || !pkt->repeats || !peer->life.fixed ||
		      status == WF_NIC_FLUSHED))
		wf_rdm_pkt_put(ep, pkt);
	else if (is_death(status))
		wf_rdm_lost_keep(pkt);
	else
		wf_rdm_lost_drop(pkt);
}
