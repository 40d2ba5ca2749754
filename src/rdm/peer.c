/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: their identity, how they are found, and their lives.
 */
#include "rdm/peer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "rdm/crowd.h"
#include "rdm/dead.h"
#include "rdm/ep.h"
#include "rdm/in.h"
#include "rdm/lost.h"
#include "rdm/pkt.h"
#include "rdm/place.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/silent.h"
#include "rdm/tx.h"

/* -- finding them ----------------------------------------------------------- */

/* Room for the next handle, before the device has it: from then on the device
 * reports packets of that handle, and its peer must be found. */
static int make_room(struct wf_rdm_ep *ep)
{
	struct wf_rdm_peer **all;
	size_t count = ep->ah_count ? ep->ah_count * 2 : 64;

	if (ep->ah_next < ep->ah_count)
		return 0;
	all = realloc(ep->by_ah, count * sizeof(struct wf_rdm_peer *));
	if (!all)
		return -ENOMEM;
	memset(all + ep->ah_count, 0,
	       (count - ep->ah_count) * sizeof(struct wf_rdm_peer *));
	ep->by_ah = all;
	ep->ah_count = count;
	return 0;
}

/* The device numbers handles one after the other, also one that fails. */
static int take_ah(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer)
{
	int err = make_room(ep);

	if (err)
		return err;
	err = wf_nic_ah_create_socket(ep->nic, &peer->addr, &peer->ah);
	if (err) {
		if (ep->ah_next < WF_NIC_AH_UNKNOWN)
			ep->ah_next++;
		return err;
	}
	assert(peer->ah < ep->ah_count);
	if (ep->ah_next <= peer->ah)
		ep->ah_next = peer->ah + 1u;
	ep->by_ah[peer->ah] = peer;
	return 0;
}

static struct wf_list *bucket_of(struct wf_rdm_ep *ep,
				 const struct wf_addr *addr)
{
	return &ep->by_addr[wf_base_addr_hash(addr) % WF_RDM_BUCKETS];
}

struct wf_rdm_peer *wf_rdm_peer_find(struct wf_rdm_ep *ep,
				     const struct wf_addr *addr)
{
	struct wf_list *head = bucket_of(ep, addr), *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, bucket);

		if (wf_base_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

/* -- given back, and come again -------------------------------------------- */

enum { OURS, THEIRS, PAST, EXPECTED, FEATURE_BITS, MAX_MSG, FLAGS, NEXT };

#define IS_OVER 0x1u
#define GREETED_US 0x2u
#define SENT_HANDSHAKE 0x4u
#define IS_STUCK 0x8u

void wf_rdm_peer_remember(const struct wf_rdm_peer *peer,
			  struct wf_nic_memo *memo)
{
	uint32_t *words = memo->words;

	*memo = (struct wf_nic_memo){ .words = { 0 } };
	words[OURS] = peer->life.ours;
	words[THEIRS] = peer->life.theirs;
	words[PAST] = peer->life.past;
	words[EXPECTED] = peer->order.expected;
	words[FEATURE_BITS] = (uint32_t)peer->features;
	words[MAX_MSG] = peer->max_msg;
	words[NEXT] = peer->next_msg_id;
	words[FLAGS] = (peer->life.over ? IS_OVER : 0) |
		       (peer->greeted_us ? GREETED_US : 0) |
		       (peer->sent_handshake && !wf_rdm_lost_greets(peer) ?
				SENT_HANDSHAKE :
				0) |
		       (peer->stuck || wf_rdm_lost_skips(peer) ? IS_STUCK : 0);
}

static void recall(struct wf_rdm_peer *peer, const struct wf_nic_memo *memo)
{
	const uint32_t *words = memo->words;

	/* The next one must differ from it. */
	peer->life.ours = words[OURS];
	peer->life.theirs = words[THEIRS];
	peer->life.past = words[PAST];
	peer->life.over = words[FLAGS] & IS_OVER;
	peer->mute = peer->life.over;
	peer->order.expected = words[EXPECTED];
	peer->features = words[FEATURE_BITS];
	peer->max_msg = words[MAX_MSG];
	peer->greeted_us = words[FLAGS] & GREETED_US;
	peer->sent_handshake = words[FLAGS] & SENT_HANDSHAKE;
	if ((words[FLAGS] & IS_STUCK) && wf_base_list_empty(&peer->again))
		wf_rdm_lost_give_up(peer);
}

static void begin_receiving(struct wf_rdm_peer *peer)
{
	wf_rdm_order_fini(&peer->order);
	wf_rdm_order_init(&peer->order);
	peer->behind = false;
	peer->mute = false;
}

/* Its life continues. Ours begins anew: the connection by which it knew our
 * life may be gone. */
int wf_rdm_peer_take_handle(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_nic_memo memo;
	bool found;
	int err = take_ah(ep, peer);

	if (err)
		return err;
	found = wf_nic_ah_recall(ep->nic, peer->ah, &memo);
	peer->next_msg_id = 0;
	if (ep->connid) {
		if (found) {
			recall(peer, &memo);
			peer->next_msg_id = memo.words[NEXT];
		}
		peer->mute = false;
		wf_rdm_life_fix(&peer->life, ep->connid, peer->addr.efa.qkey);
		return 0;
	}
	if (found) {
		recall(peer, &memo);
		wf_rdm_life_resume(&peer->life, ep->next_life++);
		return 0;
	}
	/* The connections are gone, and its life with them. */
	begin_receiving(peer);
	peer->greeted_us = false;
	peer->sent_handshake = false;
	wf_rdm_life_begin(&peer->life, ep->next_life++);
	return 0;
}

struct wf_rdm_peer *wf_rdm_peer_get(struct wf_rdm_ep *ep,
				    const struct wf_addr *addr, bool came,
				    int *err)
{
	struct wf_rdm_peer *peer = wf_rdm_peer_find(ep, addr);

	*err = -EAGAIN;
	if (peer)
		return peer->leaving && wf_rdm_crowd_rejoin(peer) ? NULL : peer;
	if (!wf_rdm_crowd_room(ep, came))
		return NULL;
	*err = -ENOMEM;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->addr = *addr;
	peer->left_ah = WF_NIC_AH_UNKNOWN;
	wf_rdm_order_init(&peer->order);
	peer->max_msg = ep->max_msg;
	wf_base_list_init(&peer->again);
	*err = wf_rdm_peer_take_handle(peer);
	if (*err) {
		free(peer);
		return NULL;
	}
	peer->name = ep->host->names.find(ep->host->names.arg, addr);
	peer->used = ep->now;
	wf_base_list_init(&peer->active_link);
	wf_base_list_init(&peer->unacked);
	wf_base_list_init(&peer->queue);
	wf_base_list_init(&peer->flight);
	wf_base_list_init(&peer->streams);
	wf_base_list_init(&peer->asking);
	wf_base_list_init(&peer->rxs);
	wf_base_list_init(&peer->parked);
	wf_base_list_init(&peer->owing);
	wf_base_list_add_tail(bucket_of(ep, addr), &peer->bucket);
	wf_base_list_add_tail(&ep->peers, &peer->link);
	ep->peer_count++;
	wf_rdm_crowd_joined(ep);
	return peer;
}

static struct wf_rdm_tx *first_tx(const struct wf_list *head)
{
	return wf_base_list_empty(head) ?
		       NULL :
		       wf_container_of(head->next, struct wf_rdm_tx, link);
}

static struct wf_rdm_rx *first_rx(const struct wf_list *head)
{
	return wf_base_list_empty(head) ?
		       NULL :
		       wf_container_of(head->next, struct wf_rdm_rx, link);
}

static void unindex(struct wf_rdm_peer *peer, uint16_t ah)
{
	if (ah < peer->ep->ah_count && peer->ep->by_ah[ah] == peer)
		peer->ep->by_ah[ah] = NULL;
}

/* It holds nothing and its handle was released; or the endpoint closes: the
 * device is gone, the matcher is empty. */
void wf_rdm_peer_free(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_tx *tx;
	struct wf_rdm_rx *rx;

	while ((tx = first_tx(&peer->queue)) || (tx = first_tx(&peer->flight)))
		wf_rdm_tx_free(ep, tx);
	while ((rx = first_rx(&peer->rxs)) || (rx = first_rx(&peer->parked)))
		wf_rdm_rx_free(rx);
	wf_rdm_lost_free(peer);
	wf_rdm_order_fini(&peer->order);
	wf_base_list_del(&peer->link);
	wf_base_list_del(&peer->bucket);
	wf_base_list_del(&peer->active_link);
	unindex(peer, peer->ah);
	unindex(peer, peer->left_ah);
	ep->peer_count--;
	free(peer);
}

void wf_rdm_peer_rename(struct wf_rdm_peer *peer, uint64_t name)
{
	struct wf_list *pos, *tmp;

	peer->name = name;
	wf_list_for_each (pos, tmp, &peer->rxs)
		wf_rdm_rx_rename(wf_container_of(pos, struct wf_rdm_rx, link),
				 name);
	wf_list_for_each (pos, tmp, &peer->parked)
		wf_rdm_rx_rename(wf_container_of(pos, struct wf_rdm_rx, link),
				 name);
}

/* Ends what was begun in this life. The lists are taken over first, because
 * completions may have consequences. */
static void fail_txs(struct wf_rdm_ep *ep, struct wf_list *head, int err)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		/* Pieces come before their whole, and free only themselves and
		 * the whole, which is behind them. */
		if (tx->pieces || tx->err)
			continue;
		if (tx->whole && tx->whole->pieces == 1 &&
		    tmp == &tx->whole->link)
			tmp = tmp->next;
		wf_rdm_tx_abort(ep, tx, err);
	}
}

/* We no longer answer what the peer has sent. Messages that need no answer
 * continue: everything that was reported to the peer as delivered arrives. A
 * peer of fixed lives learns nothing from an id: as soon as it can be
 * reached, it gets the packets that it is owed, and we tell it of each
 * operation that fails. */
static void stop_answering(struct wf_rdm_peer *peer, int err)
{
	bool tell = peer->life.fixed;
	struct wf_list *pos, *tmp;

	peer->mute = !peer->life.fixed;
	if (!tell) {
		wf_list_for_each (pos, tmp, &peer->parked)
			wf_container_of(pos, struct wf_rdm_rx, link)->receipt =
				false;
	}
	wf_list_for_each (pos, tmp, &peer->rxs) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, link);

		/* The operation is done, and only an answer is owed to a peer
		 * that is gone. */
		if (rx->over && tell)
			continue;
		if (rx->over) {
			rx->owes = 0;
			wf_base_list_del(&rx->owe_link);
			wf_rdm_rx_settle(rx);
		} else if (rx->kind == WF_RDM_RX_MESSAGE &&
			   rx->protocol->is_unasked) {
			if (!tell)
				rx->receipt = false;
		} else {
			wf_rdm_rx_fail(rx, err, tell);
		}
	}
}

/* No more packets of its life will arrive: incomplete messages stay
 * incomplete. Those whose bytes are all in place are not, and their sender may
 * know that they are here. */
static void stop_receiving(struct wf_rdm_peer *peer, int err)
{
	struct wf_list *pos, *tmp;

	while (wf_nic_has_placed(peer->ep->nic))
		wf_rdm_place_done(peer->ep);
	wf_list_for_each (pos, tmp, &peer->rxs) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, link);

		if (!rx->over)
			wf_rdm_rx_fail(rx, err, false);
	}
}

/* The device has requests of the old life: until it has returned all of them,
 * none of the next life may be posted, or a connection could carry both. */
static void bar(struct wf_rdm_peer *peer)
{
	wf_nic_ah_abandon(peer->ep->nic, peer->ah);
	peer->barred = true;
	wf_rdm_post_activate(peer);
}

bool wf_rdm_peer_unbar(struct wf_rdm_peer *peer)
{
	if (peer->outstanding)
		return false;
	peer->barred = false;
	wf_nic_ah_renew(peer->ep->nic, peer->ah);
	return true;
}

/* The life before the present one. */
static void end_sending(struct wf_rdm_peer *peer, int err)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_list *pos, *tmp;
	char text[WF_ADDR_STR_LEN];

	wf_info("peer %s is given up: %s",
		wf_base_addr_str(&peer->addr, text, sizeof(text)),
		strerror(err));
	wf_rdm_stat_add(ep, WF_RDM_STAT_peers_lost, 1);
	wf_list_for_each (pos, tmp, &peer->unacked)
		wf_base_list_del(pos);
	wf_list_for_each (pos, tmp, &peer->streams)
		wf_base_list_del(pos);
	wf_list_for_each (pos, tmp, &peer->asking)
		wf_base_list_del(pos);
	if (err == FI_EHOSTUNREACH)
		wf_rdm_silent_failed(peer);
	peer->owes_probe = false;
	if (peer->life.fixed) {
		wf_rdm_lost_numbers(peer);
	} else {
		peer->greeted_us = false;
		peer->sent_handshake = false;
		peer->owes_handshake = false;
		peer->next_msg_id = 0;
	}
	bar(peer);
	fail_txs(ep, &peer->queue, err);
	fail_txs(ep, &peer->flight, err);
}

/* No more packets of its life will arrive, and all that arrived have been
 * processed. */
static bool is_over(const struct wf_rdm_peer *peer)
{
	struct wf_nic_path path;

	return wf_base_list_empty(&peer->ep->stalled) &&
	       (peer->gone || wf_nic_ah_query(peer->ep->nic, peer->ah, &path) ||
		!path.hears);
}

static bool is_replaced(const struct wf_rdm_peer *peer)
{
	struct wf_nic_path path;

	return !wf_nic_ah_query(peer->ep->nic, peer->ah, &path) &&
	       path.replaced;
}

/* In this life, and since it was found to be gone. */
static bool was_heard(const struct wf_rdm_peer *peer)
{
	if (peer->life.fixed)
		return peer->greeted_us && !peer->gone;
	return peer->greeted_us || (peer->life.theirs && !peer->life.over);
}

void wf_rdm_peer_fail(struct wf_rdm_peer *peer, int err)
{
	bool again = peer->life.fixed ? peer->gone : peer->life.over;

	wf_rdm_life_lose(&peer->life, peer->ep->next_life++);
	end_sending(peer, err);
	stop_answering(peer, err);
	/* It has not heard of the last loss, and cannot be reached. While it is
	 * connected to us, its messages are acknowledged and must be
	 * delivered. */
	if (again && is_over(peer)) {
		wf_rdm_in_finish(peer);
		stop_receiving(peer, err);
	}
}

void wf_rdm_peer_gone(struct wf_rdm_peer *peer, int err)
{
	if (was_heard(peer))
		wf_rdm_dead_tell(peer, is_replaced(peer));
	wf_rdm_peer_fail(peer, err);
	if (!peer->gone)
		peer->ask_wait = 0;
	peer->gone = peer->life.fixed;
}

void wf_rdm_peer_back(struct wf_rdm_peer *peer)
{
	peer->gone = false;
	wf_rdm_post_activate(peer);
}

bool wf_rdm_peer_needs(const struct wf_rdm_peer *peer)
{
	const struct wf_list *pos;

	for (pos = peer->flight.next; pos != &peer->flight; pos = pos->next) {
		const struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		if (!tx->reported &&
		    (tx->protocol->ends_by_answer || tx->req.delivery ||
		     tx->pieces || !wf_rdm_stream_over(&tx->stream)))
			return true;
	}
	return !wf_base_list_empty(&peer->queue);
}

bool wf_rdm_peer_is_reset(const struct wf_rdm_peer *peer)
{
	struct wf_nic_path path;

	return !peer->barred &&
	       !wf_nic_ah_query(peer->ep->nic, peer->ah, &path) && path.lost;
}

void wf_rdm_peer_check(struct wf_rdm_peer *peer)
{
	if (!wf_rdm_peer_is_reset(peer))
		return;
	if (was_heard(peer))
		wf_rdm_dead_tell(peer, is_replaced(peer));
	wf_rdm_peer_fail(peer,
			 peer->greeted_us ? FI_ECONNRESET : FI_EHOSTUNREACH);
}

/* -- what packets say of it ------------------------------------------------ */

static bool is_silent(const struct wf_rdm_peer *peer)
{
	return !peer->sent_handshake && !peer->next_msg_id &&
	       !peer->outstanding && wf_base_list_empty(&peer->queue) &&
	       wf_base_list_empty(&peer->flight);
}

static void greet(struct wf_rdm_peer *peer)
{
	peer->owes_handshake = true;
	wf_rdm_post_activate(peer);
}

/* The first packet of its next life: all that was acknowledged of the last one
 * has been seen. If our connection is lost, that was to the last one as well:
 * the next one has not asked for anything that could be lost with it. Where
 * nothing was heard before, our connection may have led to this one, which has
 * answered all that was asked and closed: that is still to be read. The device
 * knows whether it led to another process. */
static int begin_anew(struct wf_rdm_peer *peer, uint32_t id)
{
	bool ends;

	if (peer->life.theirs || is_replaced(peer))
		wf_rdm_peer_check(peer);
	ends = wf_rdm_life_classify(&peer->life, id) == WF_RDM_LIFE_ENDS;
	if (ends && was_heard(peer))
		wf_rdm_dead_tell(peer, true);
	if (peer->life.theirs) {
		stop_answering(peer, FI_ECONNRESET);
		if (!wf_rdm_in_finish(peer))
			return -EAGAIN;
		stop_receiving(peer, FI_ECONNRESET);
	}
	begin_receiving(peer);
	wf_rdm_life_hear(&peer->life, id, is_silent(peer),
			 peer->ep->next_life++);
	if (ends)
		end_sending(peer, FI_ECONNRESET);
	return 0;
}

static int admit_other(struct wf_rdm_peer *peer,
		       const struct wf_wire_packet *packet)
{
	if (!(packet->flags & WF_WIRE_CONNID) || !packet->connid) {
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_bad_packets, 1);
		return -EPROTO;
	}
	switch (wf_rdm_life_classify(&peer->life, packet->connid)) {
	case WF_RDM_LIFE_SAME:
		return 0;
	case WF_RDM_LIFE_OVER:
		/* The peer does not know yet that this life is over: the id in our
		 * next packet says so. */
		greet(peer);
		/* Answers belong to operations that have ended. */
		if (wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_REQUEST)
			return 0;
		break;
	case WF_RDM_LIFE_STALE:
		break;
	case WF_RDM_LIFE_RESTARTS:
	case WF_RDM_LIFE_ENDS:
		return begin_anew(peer, packet->connid);
	}
	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_stale_packets, 1);
	return -EPROTO;
}

int wf_rdm_peer_admit(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet)
{
	int err;

	if (wf_unlikely(packet->connid != peer->life.theirs ||
			peer->life.over || !(packet->flags & WF_WIRE_CONNID))) {
		err = admit_other(peer, packet);
		if (err)
			return err;
	}
	peer->used = peer->ep->now;
	if (wf_unlikely(peer->gone))
		wf_rdm_peer_back(peer);
	if (wf_unlikely(!peer->sent_handshake))
		greet(peer);
	return 0;
}

void wf_rdm_peer_greeted(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet)
{
	struct wf_nic_path path;

	/* A bound for peers that claim to have a very small MTU. */
	if (!wf_nic_ah_query(peer->ep->nic, peer->ah, &path) &&
	    path.max_msg >= WF_WIRE_HEADER_MAX && path.max_msg < peer->max_msg)
		peer->max_msg = path.max_msg;
	peer->greeted_us = true;
	peer->warned = false;
	peer->features = packet->extra_count ? packet->extra[0] : 0;
	if (wf_unlikely(!wf_base_list_empty(&peer->again)))
		wf_rdm_post_activate(peer);
	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_handshakes, 1);
}
