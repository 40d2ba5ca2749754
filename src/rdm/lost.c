/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells a peer without lives what was lost.
 */
#include "rdm/lost.h"

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/tx.h"
#include "wire/packet.h"

/* Packets that may wait for a handshake. */
#define UNGREETED_MOST 64

void wf_rdm_lost_give_up(struct wf_rdm_peer *peer)
{
	char text[WF_ADDR_STR_LEN];

	if (peer->stuck)
		return;
	peer->stuck = true;
	wf_warn("a message to %s failed, and that endpoint cannot be told: no "
		"more messages can be sent to it",
		wf_base_addr_str(&peer->addr, text, sizeof(text)));
}

static bool understands(const struct wf_rdm_peer *peer)
{
	return peer->features & WF_WIRE_FEATURE_PEER_ERROR;
}

bool wf_rdm_lost_may_not_know(const struct wf_rdm_peer *peer)
{
	return peer->life.fixed && !(peer->greeted_us && understands(peer));
}

static void tell(struct wf_rdm_peer *peer, uint32_t ref_kind, uint32_t op_id)
{
	const struct wf_wire_packet wire = {
		.type = WF_WIRE_PEER_ERROR,
		.flags = WF_WIRE_CONNID,
		.connid = peer->life.ours,
		.op_id = op_id,
		.ref_kind = ref_kind,
		.prov_errno = FI_ECANCELED,
	};
	struct wf_rdm_pkt *pkt = NULL;

	if (!peer->greeted_us || understands(peer))
		pkt = wf_rdm_pkt_make(peer->ep, peer, &wire, 0);
	if (!pkt) {
		if (ref_kind == WF_RDM_REF_SKIP)
			wf_rdm_lost_give_up(peer);
		return;
	}
	pkt->repeats = true;
	wf_rdm_lost_keep(pkt);
}

/* The device has not acknowledged a request, which may have arrived
 * nevertheless. We send packets for both cases; the peer ignores one of
 * them. */
static void lose(struct wf_rdm_peer *peer, const struct wf_rdm_tx *tx)
{
	const struct wf_rdm_stream *stream = &tx->stream;

	if (stream->packet && (stream->at || stream->window)) {
		tell(peer, WF_RDM_REF_OP, stream->peer_op);
		return;
	}
	if (!tx->ordered)
		return;
	tell(peer, WF_RDM_REF_NUMBER, tx->msg_id);
	if (!tx->constructed || tx->requests)
		tell(peer, WF_RDM_REF_SKIP, tx->msg_id);
}

static void lose_all(struct wf_rdm_peer *peer, const struct wf_list *head)
{
	for (struct wf_list *pos = head->next; pos != head; pos = pos->next) {
		const struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		if (tx->reported || tx->err)
			continue;
		if (tx->begun)
			lose(peer, tx);
		else if (tx->ordered &&
			 (int32_t)(tx->msg_id - peer->next_msg_id) < 0)
			peer->next_msg_id = tx->msg_id;
	}
}

void wf_rdm_lost_numbers(struct wf_rdm_peer *peer)
{
	lose_all(peer, &peer->flight);
	lose_all(peer, &peer->queue);
}

void wf_rdm_lost_keep(struct wf_rdm_pkt *pkt)
{
	wf_base_list_add_tail(&pkt->peer->again, &pkt->link);
	wf_rdm_post_activate(pkt->peer);
}

static bool is_error(const struct wf_rdm_pkt *pkt)
{
	return pkt->buf[0] == WF_WIRE_PEER_ERROR;
}

/* Without it the peer waits for a message for ever. */
static bool skips(const struct wf_rdm_pkt *pkt)
{
	struct wf_wire_packet wire;

	return is_error(pkt) &&
	       !wf_wire_packet_decode(&wire, pkt->buf, pkt->len) &&
	       wire.ref_kind == WF_RDM_REF_SKIP;
}

void wf_rdm_lost_drop(struct wf_rdm_pkt *pkt)
{
	if (skips(pkt))
		wf_rdm_lost_give_up(pkt->peer);
	wf_rdm_pkt_put(pkt->peer->ep, pkt);
}

/* A request of the peer's was refused; or it is told of something else. */
static bool refuses(const struct wf_rdm_pkt *pkt)
{
	struct wf_wire_packet wire;

	return is_error(pkt) &&
	       !wf_wire_packet_decode(&wire, pkt->buf, pkt->len) &&
	       wire.ref_kind == WF_RDM_REF_OP;
}

static bool is_other(const struct wf_rdm_pkt *pkt)
{
	return !refuses(pkt);
}

static bool greets(const struct wf_rdm_pkt *pkt)
{
	return pkt->buf[0] == WF_WIRE_HANDSHAKE;
}

static bool has(const struct wf_rdm_peer *peer,
		bool (*is)(const struct wf_rdm_pkt *pkt))
{
	const struct wf_list *pos;

	for (pos = peer->again.next; pos != &peer->again; pos = pos->next) {
		if (is(wf_container_of(pos, struct wf_rdm_pkt, link)))
			return true;
	}
	return false;
}

bool wf_rdm_lost_skips(const struct wf_rdm_peer *peer)
{
	return has(peer, skips);
}

bool wf_rdm_lost_greets(const struct wf_rdm_peer *peer)
{
	return has(peer, greets);
}

bool wf_rdm_lost_may_refuse(const struct wf_rdm_peer *peer)
{
	const struct wf_list *pos = peer->again.next;

	if (!wf_rdm_lost_may_not_know(peer))
		return true;
	if (peer->greeted_us)
		return false;
	for (int i = 0; i < UNGREETED_MOST; i++) {
		if (pos == &peer->again)
			return true;
		pos = pos->next;
	}
	return false;
}

bool wf_rdm_lost_holds(const struct wf_rdm_peer *peer)
{
	if (wf_likely(wf_base_list_empty(&peer->again)) || peer->gone)
		return false;
	return peer->greeted_us || has(peer, is_other);
}

bool wf_rdm_lost_post(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_list *pos, *tmp;

	if (peer->gone)
		return true;
	wf_list_for_each (pos, tmp, &peer->again) {
		struct wf_rdm_pkt *pkt =
			wf_container_of(pos, struct wf_rdm_pkt, link);

		if (is_error(pkt) && !peer->greeted_us)
			continue;
		if (!wf_rdm_ep_has_room(ep))
			return false;
		wf_base_list_unlink(&pkt->link);
		/* Its handshake says so. */
		if (is_error(pkt) && !understands(peer)) {
			wf_rdm_lost_drop(pkt);
			continue;
		}
		pkt->turn = ep->next_turn++;
		wf_rdm_pkt_post(ep, pkt);
	}
	return true;
}

void wf_rdm_lost_free(struct wf_rdm_peer *peer)
{
	struct wf_list *pos, *tmp;

	/* A device may keep packets from children. */
	if (peer->ep->host->forked)
		return;
	wf_list_for_each (pos, tmp, &peer->again) {
		wf_base_list_unlink(pos);
		wf_rdm_pkt_put(peer->ep,
			       wf_container_of(pos, struct wf_rdm_pkt, link));
	}
}
