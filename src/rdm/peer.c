/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: their lives, and what is posted to them in which order.
 */
#include "rdm/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "rdm/control.h"
#include "rdm/crowd.h"
#include "rdm/ep.h"
#include "rdm/in.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/silent.h"
#include "rdm/tx.h"

/* Packets made at once for one operation. */
#define BATCH 32

/* Packets of long messages per turn, whatever the short ones took. */
#define STREAM_BUDGET 32

#define FEATURES                                                               \
	(WF_WIRE_FEATURE_RDMA_READ | WF_WIRE_FEATURE_DC |                      \
	 WF_WIRE_FEATURE_CONNID | WF_WIRE_FEATURE_RUNT |                       \
	 WF_WIRE_FEATURE_READ_NACK | WF_WIRE_FEATURE_PEER_ERROR)

#define FEATURES_NO_READ (FEATURES & ~(uint64_t)WF_WIRE_FEATURE_RDMA_READ)

/* -- their lives ----------------------------------------------------------- */

/*
 * An id says which life of which process it is, and why that began:
 *
 *	31..22	a hash of the other side's id because of which it did; 0: by
 *		itself
 *	21.. 6	random at first, another for each peer that is made: a process
 *		that takes the place of another is not to be taken for it, nor
 *		one that was forgotten and comes back for what it was before
 *	 5.. 0	lives of the peer here, from 1 on
 *
 * so that a packet that comes late is not taken for one more beginning, and the
 * answer to a beginning neither.
 */
#define LIVES 0x3fu
#define EPOCH_SHIFT 6
#define EPOCHS 0xffffu
#define WHY_SHIFT 22
#define WHYS 0x3ffu

static uint32_t why_of(uint32_t id)
{
	uint32_t hash = id * 2654435761u >> WHY_SHIFT & WHYS;

	return hash ? hash : 1;
}

/* The next id of ours; @because: of theirs, or 0. */
static uint32_t next_id(const struct wf_rdm_peer *peer, uint32_t because)
{
	uint32_t life = (peer->our_id & LIVES) == LIVES ?
				1 :
				(peer->our_id & LIVES) + 1;

	uint32_t epoch =
		peer->our_id ? peer->our_id >> EPOCH_SHIFT : peer->ep->epoch++;

	return (because ? why_of(because) << WHY_SHIFT : 0) |
	       (epoch & EPOCHS) << EPOCH_SHIFT | life;
}

/* Whether @id is of a life that began because of ours. Both sides may begin
 * anew at once, each because of what the other was before. */
static bool answers(const struct wf_rdm_peer *peer, uint32_t id)
{
	return id >> WHY_SHIFT == why_of(peer->our_id) ||
	       (peer->past_id && id >> WHY_SHIFT == why_of(peer->past_id));
}

/* Of the same process, and from before @now. */
static bool is_older(uint32_t id, uint32_t now)
{
	uint32_t ahead = (id - now) & LIVES;

	return (id >> EPOCH_SHIFT & EPOCHS) == (now >> EPOCH_SHIFT & EPOCHS) &&
	       ahead > LIVES / 2;
}

static int index_peer(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer)
{
	if (peer->ah >= ep->ah_count) {
		size_t count = ep->ah_count ? ep->ah_count * 2 : 64;
		struct wf_rdm_peer **all;

		while (count <= peer->ah)
			count *= 2;
		all = realloc(ep->by_ah, count * sizeof(struct wf_rdm_peer *));
		if (!all)
			return -ENOMEM;
		memset(all + ep->ah_count, 0,
		       (count - ep->ah_count) * sizeof(struct wf_rdm_peer *));
		ep->by_ah = all;
		ep->ah_count = count;
	}
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

static uint32_t count_resets(const struct wf_rdm_peer *peer)
{
	struct wf_nic_path path;

	return wf_nic_ah_query(peer->ep->nic, peer->ah, &path) ? 0 :
								 path.resets;
}

/* -- given back, and come again -------------------------------------------- */

enum { OUR_ID, THEIR_ID, STALE_ID, EXPECTED, FEATURE_BITS, MAX_MSG, FLAGS };

#define KNOWS_ID 0x1u
#define HAS_STALE 0x2u
#define GREETED_US 0x4u
#define SENT_HANDSHAKE 0x8u

void wf_rdm_peer_remember(const struct wf_rdm_peer *peer,
			  struct wf_nic_memo *memo)
{
	uint32_t *words = memo->words;

	*memo = (struct wf_nic_memo){ .words = { 0 } };
	words[OUR_ID] = peer->our_id;
	words[THEIR_ID] = peer->their_id;
	words[STALE_ID] = peer->stale_id;
	words[EXPECTED] = peer->order.expected;
	words[FEATURE_BITS] = (uint32_t)peer->features;
	words[MAX_MSG] = peer->max_msg;
	words[FLAGS] = (peer->knows_id ? KNOWS_ID : 0) |
		       (peer->has_stale ? HAS_STALE : 0) |
		       (peer->greeted_us ? GREETED_US : 0) |
		       (peer->sent_handshake ? SENT_HANDSHAKE : 0);
}

/* It goes on where it was. What we send begins anew, because of the life of its
 * that we know: that may have ended meanwhile, and what we sent with our old id
 * would then be dropped. */
static void recall(struct wf_rdm_peer *peer, const struct wf_nic_memo *memo)
{
	const uint32_t *words = memo->words;

	peer->our_id = words[OUR_ID];
	peer->their_id = words[THEIR_ID];
	peer->stale_id = words[STALE_ID];
	peer->order.expected = words[EXPECTED];
	peer->features = words[FEATURE_BITS];
	peer->max_msg = words[MAX_MSG];
	peer->knows_id = words[FLAGS] & KNOWS_ID;
	peer->has_stale = words[FLAGS] & HAS_STALE;
	peer->greeted_us = words[FLAGS] & GREETED_US;
	peer->sent_handshake = words[FLAGS] & SENT_HANDSHAKE;
	peer->past_id = peer->our_id;
	peer->our_id = next_id(peer, peer->knows_id ? peer->their_id : 0);
}

static void begin_life(struct wf_rdm_peer *peer, uint32_t our_id);

int wf_rdm_peer_take_handle(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_nic_memo memo;
	bool found;
	int err = wf_nic_ah_create(ep->nic, &peer->addr, &peer->ah);

	if (err)
		return err;
	err = index_peer(ep, peer);
	if (err) {
		wf_nic_ah_destroy(ep->nic, peer->ah);
		return err;
	}
	found = wf_nic_ah_recall(ep->nic, peer->ah, &memo);
	if (found && !peer->our_id)
		recall(peer, &memo);
	/* We still have it in whole, but the connections are gone, by which the
	 * other side may know our life. */
	if (!found && peer->our_id)
		begin_life(peer, next_id(peer, 0));
	peer->resets = count_resets(peer);
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
	*err = wf_rdm_peer_take_handle(peer);
	if (*err) {
		free(peer);
		return NULL;
	}
	peer->name = ep->host->names.find(ep->host->names.arg, addr);
	if (!peer->our_id)
		peer->our_id = next_id(peer, 0);
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

/* It holds nothing, and its handle was given back; or the endpoint closes: the
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

/* What was begun in this life ends. Lists are taken over first: completions may
 * have consequences. */
static void fail_txs(struct wf_rdm_ep *ep, struct wf_list *head, int err)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		/* Pieces come before their whole and free nothing but
		 * themselves and it, which is behind them. */
		if (tx->pieces || tx->err)
			continue;
		if (tx->whole && tx->whole->pieces == 1 &&
		    tmp == &tx->whole->link)
			tmp = tmp->next;
		wf_rdm_tx_abort(ep, tx, err);
	}
}

static void fail_rxs(struct wf_rdm_peer *peer, int err)
{
	struct wf_list *pos, *tmp;

	/* Those that are complete stay; who sent them is not told any more. */
	wf_list_for_each (pos, tmp, &peer->parked)
		wf_container_of(pos, struct wf_rdm_rx, link)->receipt = false;
	wf_list_for_each (pos, tmp, &peer->rxs) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, link);

		/* Done, and only owed something: nobody is left to owe to. */
		if (rx->over) {
			rx->owes = 0;
			wf_base_list_del(&rx->owe_link);
			wf_rdm_rx_settle(rx);
			continue;
		}
		wf_rdm_rx_fail(rx, err, false);
	}
}

/* What comes from it begins at 0 again. */
static void begin_receiving(struct wf_rdm_peer *peer)
{
	if (peer->knows_id) {
		peer->stale_id = peer->their_id;
		peer->has_stale = true;
	}
	peer->knows_id = false;
	wf_rdm_order_fini(&peer->order);
	wf_rdm_order_init(&peer->order);
}

static void begin_life(struct wf_rdm_peer *peer, uint32_t our_id)
{
	begin_receiving(peer);
	peer->greeted_us = false;
	peer->sent_handshake = false;
	peer->owes_handshake = false;
	peer->owes_probe = false;
	peer->our_id = our_id;
	peer->past_id = 0;
	peer->next_msg_id = 0;
}

static void end_life(struct wf_rdm_peer *peer, int err, uint32_t next_id)
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
	peer->lost = err == FI_EHOSTUNREACH ? err : 0;
	if (err == FI_EHOSTUNREACH)
		wf_rdm_silent_failed(peer);
	peer->resets = count_resets(peer);
	begin_life(peer, next_id);
	fail_txs(ep, &peer->queue, err);
	fail_txs(ep, &peer->flight, err);
	fail_rxs(peer, err);
}

void wf_rdm_peer_fail(struct wf_rdm_peer *peer, int err)
{
	end_life(peer, err, next_id(peer, 0));
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
	return count_resets(peer) != peer->resets;
}

void wf_rdm_peer_check(struct wf_rdm_peer *peer)
{
	if (wf_rdm_peer_is_reset(peer))
		wf_rdm_peer_fail(peer, peer->greeted_us ? FI_ECONNRESET :
							  FI_EHOSTUNREACH);
}

/* -- what packets say of it ------------------------------------------------ */

/* Then our life may just as well begin because of the one that is heard: it may
 * have known us before we forgot it, and need not forget anything in turn. */
static bool has_said_nothing(const struct wf_rdm_peer *peer)
{
	return !peer->sent_handshake && !peer->next_msg_id &&
	       !peer->outstanding && wf_base_list_empty(&peer->queue) &&
	       wf_base_list_empty(&peer->flight);
}

bool wf_rdm_peer_admit(struct wf_rdm_peer *peer,
		       const struct wf_wire_packet *packet)
{
	struct wf_rdm_ep *ep = peer->ep;

	if (!(packet->flags & WF_WIRE_CONNID)) {
		wf_rdm_stat_add(ep, WF_RDM_STAT_bad_packets, 1);
		return false;
	}
	if (wf_likely(peer->knows_id && packet->connid == peer->their_id))
		goto current;
	if (peer->has_stale && (packet->connid == peer->stale_id ||
				is_older(packet->connid, peer->stale_id))) {
		/* It may not know that we forgot what it means. */
		wf_rdm_stat_add(ep, WF_RDM_STAT_stale_packets, 1);
		peer->forgot_id = packet->connid;
		peer->owes_handshake = true;
		wf_rdm_peer_activate(peer);
		return false;
	}
	if (peer->knows_id && is_older(packet->connid, peer->their_id)) {
		wf_rdm_stat_add(ep, WF_RDM_STAT_stale_packets, 1);
		return false;
	}
	if (peer->knows_id && answers(peer, packet->connid)) {
		/* It began anew because we did: what we sent since is good. */
		begin_receiving(peer);
		fail_rxs(peer, FI_ECONNRESET);
	} else if (peer->knows_id) {
		/* What we posted is for the old process, and the device may
		 * not know that it is gone: what follows must not share its
		 * connection, whose end would be taken for the end of this
		 * life. */
		end_life(peer, FI_ECONNRESET, next_id(peer, packet->connid));
		wf_nic_ah_renew(ep->nic, peer->ah);
	}
	if (!peer->knows_id && has_said_nothing(peer))
		peer->our_id = (peer->our_id & ~(WHYS << WHY_SHIFT)) |
			       why_of(packet->connid) << WHY_SHIFT;
	peer->their_id = packet->connid;
	peer->knows_id = true;
current:
	peer->used = ep->now;
	if (wf_unlikely(!peer->sent_handshake)) {
		peer->owes_handshake = true;
		wf_rdm_peer_activate(peer);
	}
	return true;
}

void wf_rdm_peer_greeted(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet)
{
	struct wf_nic_path path;

	/* A bound for peers that claim to be behind something very narrow. */
	if (!wf_nic_ah_query(peer->ep->nic, peer->ah, &path) &&
	    path.max_msg >= WF_WIRE_HEADER_MAX && path.max_msg < peer->max_msg)
		peer->max_msg = path.max_msg;
	/* It has forgotten what we began with this id. */
	if (packet->extra_count > 1 && packet->extra[1] == peer->our_id)
		end_life(peer, FI_ECONNRESET, next_id(peer, peer->their_id));
	peer->greeted_us = true;
	peer->features = packet->extra_count ? packet->extra[0] : 0;
	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_handshakes, 1);
}

/* -- posting --------------------------------------------------------------- */

void wf_rdm_peer_activate(struct wf_rdm_peer *peer)
{
	if (peer->active)
		return;
	peer->active = true;
	peer->ep->blocked = false;
	wf_base_list_add_tail(&peer->ep->active, &peer->active_link);
}

/* A packet that is a header and nothing else. */
static bool post_note(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *wire)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_pkt *pkt = NULL;

	if (wf_rdm_ep_has_room(ep))
		pkt = wf_rdm_pkt_make(ep, peer, wire, 0);
	if (pkt)
		wf_rdm_pkt_post(ep, pkt);
	return pkt;
}

static bool post_handshake(struct wf_rdm_peer *peer)
{
	const struct wf_wire_packet wire = {
		.type = WF_WIRE_HANDSHAKE,
		.flags = WF_WIRE_CONNID,
		.connid = peer->our_id,
		.extra_count = peer->forgot_id ? 2 : 1,
		.extra = { peer->ep->attr.reads ? FEATURES : FEATURES_NO_READ,
			   peer->forgot_id },
	};

	if (!post_note(peer, &wire))
		return false;
	peer->owes_handshake = false;
	peer->sent_handshake = true;
	peer->forgot_id = 0;
	return true;
}

/* A write of nothing to nowhere: it changes nothing there, and the device finds
 * out whether anyone is. */
static bool post_probe(struct wf_rdm_peer *peer)
{
	const struct wf_wire_packet wire = {
		.type = WF_WIRE_EAGER_RTW,
		.flags = WF_WIRE_CONNID,
		.connid = peer->our_id,
	};

	if (!post_note(peer, &wire))
		return false;
	peer->owes_probe = false;
	return true;
}

uint32_t wf_rdm_peer_room(const struct wf_rdm_peer *peer)
{
	const struct wf_rdm_ep *ep = peer->ep;
	uint32_t room = wf_nic_qp_send_room(ep->qp);

	/* One that does not answer must not have all of it. */
	if (ep->peer_count > 1 && peer->outstanding >= WF_RDM_PEER_SHARE)
		return 0;
	return room;
}

/* Debts that cannot be paid now stand at the end, so that others are. */
static bool post_owed(struct wf_rdm_peer *peer)
{
	struct wf_list *pos, *tmp, *last = peer->owing.prev;
	bool all = true;

	wf_list_for_each (pos, tmp, &peer->owing) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, owe_link);

		all &= wf_rdm_rx_pay(rx);
		if (pos == last || !wf_rdm_ep_has_room(peer->ep))
			break;
	}
	return all && wf_base_list_empty(&peer->owing);
}

static bool post_asking(struct wf_rdm_peer *peer)
{
	while (!wf_base_list_empty(&peer->asking)) {
		if (!wf_rdm_control_ask(peer, wf_container_of(peer->asking.next,
							      struct wf_rdm_tx,
							      unacked_link)))
			return false;
	}
	return true;
}

/* Whether anything but the operation that @tx is a piece of is in flight. */
static bool others_fly(const struct wf_rdm_peer *peer,
		       const struct wf_rdm_tx *tx)
{
	const struct wf_list *first = peer->flight.next;

	if (tx->whole && first == &tx->whole->link)
		first = first->next;
	return first != &peer->flight;
}

/* Whether @tx has to wait for others of the same peer. */
static bool is_blocked(const struct wf_rdm_peer *peer,
		       const struct wf_rdm_tx *tx)
{
	uint64_t order = peer->ep->attr.order;
	uint64_t after_write = 0, after_read = 0;

	if (tx->begun)
		return false;
	if (tx->req.fence && others_fly(peer, tx))
		return true;
	if (!wf_base_list_empty(&peer->unacked) &&
	    peer->posted - wf_container_of(peer->unacked.next, struct wf_rdm_tx,
					   unacked_link)
				    ->began >=
		    WF_RDM_AHEAD)
		return true;
	switch (tx->req.kind) {
	case WF_TX_SEND:
		after_write = FI_ORDER_SAW;
		after_read = FI_ORDER_SAR;
		break;
	case WF_TX_WRITE:
		after_write = FI_ORDER_RMA_WAW;
		after_read = FI_ORDER_RMA_WAR;
		break;
	case WF_TX_READ:
		after_write = FI_ORDER_RMA_RAW;
		after_read = FI_ORDER_RMA_RAR;
		break;
	case WF_TX_ATOMIC:
		break; /* among themselves by number */
	}
	return ((order & after_write) && peer->writes) ||
	       ((order & after_read) && peer->reads);
}

static void begin(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx)
{
	if (tx->begun)
		return;
	tx->begun = true;
	tx->began = peer->posted;
	if (tx->ordered)
		wf_base_list_add_tail(&peer->unacked, &tx->unacked_link);
	tx->counted = tx->req.kind == WF_TX_WRITE ||
		      tx->req.kind == WF_TX_READ ||
		      tx->req.kind == WF_TX_ATOMIC;
	if (tx->req.kind == WF_TX_READ)
		peer->reads++;
	else if (tx->counted)
		peer->writes++;
}

static void log_posted(const struct wf_rdm_tx *tx)
{
	if (wf_unlikely(wf_base_log_debugs()))
		wf_debug("%s: %u packets, %zu bytes, message %u",
			 tx->protocol->name, tx->packets, tx->req.len,
			 tx->msg_id);
}

/* Makes and posts packets of one operation. Returns how many. */
static int post_tx(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx, int max)
{
	struct wf_rdm_pkt *pkts[BATCH];
	struct wf_rdm_ep *ep = peer->ep;
	uint32_t room = wf_rdm_peer_room(peer);
	int count;

	if (max > BATCH)
		max = BATCH;
	if ((uint32_t)max > room)
		max = (int)room;
	if (!max)
		return 0;
	begin(peer, tx);
	count = tx->protocol->construct_tx_packets(ep, tx, pkts, max);
	for (int i = 0; i < count; i++)
		wf_rdm_pkt_post(ep, pkts[i]);
	peer->posted += (uint64_t)count;
	if (!tx->constructed)
		return count;
	wf_base_list_del(&tx->link);
	wf_base_list_add_tail(&peer->flight, &tx->link);
	log_posted(tx);
	if (tx->protocol->handle_tx_packets_posted)
		tx->protocol->handle_tx_packets_posted(ep, tx);
	if (wf_unlikely(tx->nacked && tx->protocol->pulled))
		wf_rdm_protocol_nacked(ep, tx);
	return count;
}

static int post_queue(struct wf_rdm_peer *peer, int budget, bool *stuck)
{
	int posted = 0;

	*stuck = false;
	while (posted < budget && !wf_base_list_empty(&peer->queue)) {
		struct wf_rdm_tx *tx = first_tx(&peer->queue);
		int count;

		/* What it waits for activates us again. */
		if (is_blocked(peer, tx))
			return posted;
		count = post_tx(peer, tx, budget - posted);
		posted += count;
		if (!count) {
			*stuck = true;
			return posted;
		}
	}
	*stuck = !wf_base_list_empty(&peer->queue);
	return posted;
}

/* One after the other, a few packets each. */
static bool post_streams(struct wf_rdm_peer *peer, int budget)
{
	while (budget > 0 && !wf_base_list_empty(&peer->streams)) {
		struct wf_rdm_stream *stream = wf_container_of(
			peer->streams.next, struct wf_rdm_stream, link);
		int count;

		wf_base_list_unlink(&stream->link);
		wf_base_list_add_tail(&peer->streams, &stream->link);
		count = wf_rdm_stream_pump(peer, stream, 8);
		if (!count && !wf_rdm_ep_has_room(peer->ep))
			return false;
		if (!count && !wf_base_list_empty(&peer->streams))
			return false; /* no packet to be had */
		budget -= count;
	}
	return wf_base_list_empty(&peer->streams);
}

bool wf_rdm_peer_pump(struct wf_rdm_peer *peer, int budget)
{
	bool stuck = false, all = true;

	if (wf_unlikely(peer->behind))
		wf_rdm_in_catch_up(peer);
	if (peer->owes_handshake)
		all &= post_handshake(peer);
	if (wf_unlikely(peer->owes_probe))
		all &= post_probe(peer);
	if (!wf_base_list_empty(&peer->owing))
		all &= post_owed(peer);
	if (!wf_base_list_empty(&peer->asking))
		all &= post_asking(peer);
	if (!wf_base_list_empty(&peer->queue)) {
		budget -= post_queue(peer, budget, &stuck);
		all &= !stuck;
	}
	if (!wf_base_list_empty(&peer->streams))
		all &= post_streams(peer, STREAM_BUDGET);
	return !all || peer->behind;
}
