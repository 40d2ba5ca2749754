/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides which peers are kept. Releasing one takes two steps. First
 * its handle is destroyed; from then on the device identifies its packets by
 * address. Completions with the number of the handle may still arrive; when all
 * of them have been seen, and none was of this peer, it is freed.
 */
#include "rdm/crowd.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdm/ep.h"
#include "rdm/lost.h"
#include "rdm/peer.h"

#define IDLE_MS 10000
/* Less than the numbers that the device leaves free before it uses one again:
 * see wf_nic's take_place(). */
#define BATCH 32u
#define FULL_WARN (2 * WF_NS_PER_S)
/* When nobody could be released, the next look is after this time, for each
 * peer: a look takes some 20 ns a peer. */
#define LOOK_AGAIN (1 * WF_NS_PER_US)

/* -- peers that hold nothing ------------------------------------------------ */

static bool is_idle(const struct wf_rdm_peer *peer)
{
	return !peer->active && !peer->leaving && !peer->outstanding &&
	       !peer->behind && !peer->owes_handshake && !peer->owes_probe &&
	       !peer->order.held && wf_base_list_empty(&peer->unacked) &&
	       !wf_rdm_lost_holds(peer) && wf_base_list_empty(&peer->queue) &&
	       wf_base_list_empty(&peer->flight) &&
	       wf_base_list_empty(&peer->streams) &&
	       wf_base_list_empty(&peer->asking) &&
	       wf_base_list_empty(&peer->rxs) &&
	       wf_base_list_empty(&peer->parked) &&
	       wf_base_list_empty(&peer->owing);
}

/* The AV's index finds it under one name at most. */
static bool can_be_unnamed(const struct wf_rdm_peer *peer)
{
	const struct wf_rdm_ep *ep = peer->ep;

	return !peer->named_by ||
	       (peer->named_by == 1 && peer->name < ep->name_count &&
		ep->by_name[peer->name] == peer);
}

static void release(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_nic_memo memo;

	if (peer->named_by)
		ep->by_name[peer->name] = NULL;
	peer->named_by = 0;
	wf_rdm_peer_remember(peer, &memo);
	wf_nic_ah_leave(ep->nic, peer->ah, &memo);
	peer->leaving = true;
	wf_base_list_add_tail(&ep->leaving, &peer->active_link);
}

int wf_rdm_crowd_rejoin(struct wf_rdm_peer *peer)
{
	uint16_t left = peer->ah;
	int err = wf_rdm_peer_take_handle(peer);

	if (err)
		return err;
	/* Completions may still carry its previous number, but none carries the
	 * number before that. */
	if (peer->left_ah != peer->ah && peer->left_ah < peer->ep->ah_count &&
	    peer->ep->by_ah[peer->left_ah] == peer)
		peer->ep->by_ah[peer->left_ah] = NULL;
	peer->left_ah = left;
	peer->leaving = false;
	wf_base_list_del(&peer->active_link);
	return 0;
}

/* -- limits ----------------------------------------------------------------- */

static uint32_t limit_of(const struct wf_rdm_ep *ep)
{
	/* Room for the packets of unknown peers that are acknowledged and have
	 * not been read. */
	return ep->peer_limit > ep->buf_count + 1 ?
		       ep->peer_limit - ep->buf_count :
		       (ep->peer_limit + 1) / 2;
}

bool wf_rdm_crowd_room(struct wf_rdm_ep *ep, bool came)
{
	if (came || ep->peer_count < limit_of(ep))
		return true;
	ep->crowded = true;
	return false;
}

void wf_rdm_crowd_joined(struct wf_rdm_ep *ep)
{
	if (ep->peer_count < limit_of(ep))
		return;
	ep->crowded = true;
	/* As many unknown peers may still appear as have a packet here. */
	if (!ep->shut)
		wf_nic_qp_strangers(ep->qp, false);
	ep->shut = true;
}

/* A peer that was used since the last look is skipped once. */
static uint32_t relieve(struct wf_rdm_ep *ep)
{
	uint32_t left = 2 * ep->peer_count, gone = 0;
	struct wf_list *pos = ep->peers.next;

	while (left-- && gone < BATCH && pos != &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);
		bool used = peer->used != peer->seen;

		pos = pos->next;
		peer->seen = peer->used;
		wf_base_list_unlink(&peer->link);
		wf_base_list_add_tail(&ep->peers, &peer->link);
		if (pos == &ep->peers)
			pos = &peer->link;
		if (used || !is_idle(peer) || !can_be_unnamed(peer))
			continue;
		release(peer);
		gone++;
	}
	return gone;
}

static void free_leaving(struct wf_rdm_ep *ep)
{
	while (!wf_base_list_empty(&ep->leaving)) {
		wf_rdm_peer_free(wf_container_of(
			ep->leaving.next, struct wf_rdm_peer, active_link));
		wf_rdm_stat_add(ep, WF_RDM_STAT_peers_released, 1);
	}
}

/* Releases peers outside the AV that have been silent for long. */
static void release_old(struct wf_rdm_ep *ep)
{
	uint64_t idle = ep->attr.idle_ms ? ep->attr.idle_ms : IDLE_MS;
	struct wf_list *pos, *tmp;
	uint32_t gone = 0;

	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (peer->name != WF_MATCH_ANY || peer->named_by ||
		    ep->now - peer->used < idle * WF_NS_PER_MS ||
		    !is_idle(peer))
			continue;
		release(peer);
		if (++gone == BATCH)
			return; /* there may be more */
	}
	ep->aging = false;
}

static bool is_full(const struct wf_rdm_ep *ep)
{
	return ep->crowded && ep->peer_count >= limit_of(ep);
}

static void make_room(struct wf_rdm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();

	if (now < ep->crowd_at) {
		ep->unlooked = true;
		return;
	}
	ep->unlooked = false;
	if (relieve(ep))
		return;
	/* To look at all of them at every poll would cost too much. */
	ep->crowd_at = now + ep->peer_count * LOOK_AGAIN;
	if (!ep->full_since)
		ep->full_since = now;
	if (ep->warned_full || now - ep->full_since < FULL_WARN)
		return;
	wf_warn("%u peers have something under way, or messages that were not "
		"received: others have to wait",
		ep->peer_count);
	ep->warned_full = true;
}

void wf_rdm_crowd_run(struct wf_rdm_ep *ep)
{
	/* Waiting packets point to their peers. */
	if (!wf_base_list_empty(&ep->stalled))
		return;
	free_leaving(ep);
	if (is_full(ep)) {
		make_room(ep);
		return;
	}
	if (ep->shut)
		wf_nic_qp_strangers(ep->qp, true);
	ep->shut = false;
	ep->crowded = false;
	ep->full_since = 0;
	if (ep->aging)
		release_old(ep);
}

bool wf_rdm_crowd_doze(struct wf_rdm_ep *ep, uint64_t *deadline)
{
	if (!wf_base_list_empty(&ep->stalled))
		return true;
	if (!wf_base_list_empty(&ep->leaving))
		return false;
	if (!ep->crowded)
		return true;
	if (!is_full(ep))
		return false;
	if (ep->unlooked && wf_base_clock_ns() >= ep->crowd_at)
		return false;
	if (ep->unlooked && ep->crowd_at < *deadline)
		*deadline = ep->crowd_at;
	ep->unlooked = true;
	return true;
}
