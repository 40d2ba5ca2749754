/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet side of an endpoint: its life, its operations, its progress.
 */
#include "rdm/ep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rest.h"
#include "op/iov.h"
#include "rdm/crowd.h"
#include "rdm/in.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/pull.h"
#include "rdm/rta.h"
#include "rdm/rx.h"
#include "rdm/silent.h"
#include "rdm/tx.h"

/* Requests that the device has at once. */
#define SEND_QUEUE 1024

/* Receive buffers: as many as arrive between two looks; the device leaves the
 * rest in its socket. */
#define BUFS_SMALL 256 /* packets of an Ethernet */
#define BUFS_LARGE 128 /* 1 MiB: they stay in a cache of that size */
#define LARGE_MSG 4096

/* Large packets under way at once: 4 MiB. */
#define LARGE_PKTS 512

/* Packets posted for one peer before others have their turn. */
#define PEER_BUDGET 64

/* Completions handled per progress. */
#define COMPLETIONS 64
#define ROUNDS 4

/* What nobody can wait for leaves, and is sent again if it was lost, for so long
 * after the endpoint was closed: a peer that computes acknowledges nothing, and
 * has it in its socket. */
#define LINGER (250 * WF_NS_PER_MS)
#define FLUSH_EVERY (WF_NS_PER_MS / 2)
#define PROBE_EVERY (250 * WF_NS_PER_MS)
#define POLLS_PER_CLOCK 64
/* An endpoint that sleeps although it has packets to post tries so often. */
#define RETRY_EVERY (5 * WF_NS_PER_MS)

#define NAMES_MAX ((uint64_t)1 << 32)

void wf_rdm_ep_open(struct wf_rdm_ep *ep, const struct wf_rdm_ep_attr *attr,
		    struct wf_compq *txq, struct wf_rxq *rxq)
{
	*ep = (struct wf_rdm_ep){
		.txq = txq,
		.rxq = rxq,
		.attr = *attr,
	};
	wf_base_list_init(&ep->active);
	wf_base_list_init(&ep->stalled);
	wf_base_list_init(&ep->peers);
	wf_base_list_init(&ep->leaving);
	for (int i = 0; i < WF_RDM_BUCKETS; i++)
		wf_base_list_init(&ep->by_addr[i]);
	for (int i = 0; i < WF_RDM_MSG_BUCKETS; i++)
		wf_base_list_init(&ep->by_msg[i]);
}

static int open_device(struct wf_rdm_ep *ep)
{
	const struct wf_nic_attr attr = {
		.fd = ep->attr.fd,
		.addr = ep->attr.addr,
		.thread = ep->attr.thread,
		.attend = !ep->attr.thread,
		.mtu = ep->attr.mtu,
		.max_peers = ep->attr.max_peers,
		.connect_ns = ep->attr.connect_timeout_ms * WF_NS_PER_MS,
		.dead_ns = ep->attr.dead_timeout_s * WF_NS_PER_S,
		.fault = ep->attr.fault,
	};
	struct wf_nic_qp_attr qp = {
		.sq_entries = SEND_QUEUE,
		.qkey = WF_RDM_QKEY,
		.rnr_retry = WF_NIC_RNR_FOREVER,
	};
	const struct wf_nic_caps *caps;
	int err;

	err = wf_nic_open(ep->attr.device, &attr, &ep->nic);
	if (err)
		return err;
	caps = wf_nic_caps(ep->nic);
	ep->max_msg = caps->max_msg;
	ep->max_recv = caps->max_recv;
	ep->peer_limit = caps->max_ah;
	ep->inline_max = caps->inline_max;
	ep->buf_count = ep->max_msg > LARGE_MSG ? BUFS_LARGE : BUFS_SMALL;
	qp.rq_entries = ep->buf_count;
	err = wf_nic_mr_reg(ep->nic, NULL, SIZE_MAX, WF_NIC_LOCAL_WRITE,
			    &ep->own);
	if (err)
		goto err_nic;
	err = wf_nic_cq_create(ep->nic, SEND_QUEUE + ep->buf_count, &ep->cq);
	if (err)
		goto err_nic;
	qp.send_cq = ep->cq;
	qp.recv_cq = ep->cq;
	err = wf_nic_qp_create(ep->nic, &qp, &ep->qp);
	if (err)
		goto err_cq;
	err = wf_rdm_in_open(ep);
	if (!err)
		return 0;
	wf_nic_qp_destroy(ep->qp);
err_cq:
	wf_nic_cq_destroy(ep->cq);
err_nic:
	wf_nic_close(ep->nic);
	return err;
}

static void close_device(struct wf_rdm_ep *ep)
{
	wf_nic_qp_destroy(ep->qp);
	wf_nic_cq_destroy(ep->cq);
	wf_rdm_in_close(ep);
	wf_nic_close(ep->nic);
	ep->nic = NULL;
}

int wf_rdm_ep_wake(struct wf_rdm_ep *ep)
{
	char text[WF_ADDR_STR_LEN];
	int err;

	if (ep->awake)
		return 0;
	if (ep->forked || ep->closing)
		return -EOPNOTSUPP;
	wf_rdm_protocol_init();
	wf_base_addr_str(&ep->attr.addr, text, sizeof(text));
	err = open_device(ep);
	if (err) {
		if (!ep->warned)
			wf_warn("no packets at %s: %s", text, strerror(-err));
		ep->warned = true;
		return err;
	}
	err = wf_base_stats_open(&ep->stats, "packets", text,
				 wf_rdm_stats_names, WF_RDM_STAT_COUNT);
	if (err) {
		close_device(ep);
		return err;
	}
	wf_base_pool_init(&ep->tx_pool, sizeof(struct wf_rdm_tx), 32,
			  ep->attr.tx_size);
	wf_base_pool_init(&ep->small_pkts,
			  sizeof(struct wf_rdm_pkt) + WF_RDM_PKT_SMALL, 32, 0);
	wf_base_pool_init(&ep->large_pkts,
			  sizeof(struct wf_rdm_pkt) + ep->max_msg, 8,
			  LARGE_PKTS);
	if (getrandom(&ep->epoch, sizeof(ep->epoch), 0) != sizeof(ep->epoch))
		ep->epoch = (uint32_t)wf_base_clock_ns() ^ (uint32_t)getpid();
	ep->awake = true;
	ep->now = wf_base_clock_ns();
	ep->probe_at = ep->now + PROBE_EVERY;
	wf_rdm_ep_ring(ep);
	return 0;
}

/* -- closing --------------------------------------------------------------- */

/* Buffers of the application may be gone: what is in no copy of ours is given
 * up. */
static void keep_copies(struct wf_rdm_ep *ep, struct wf_list *head)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		if (tx->registered || (!tx->bounce && !tx->constructed))
			wf_rdm_tx_quit(ep, tx);
	}
}

static bool is_idle(const struct wf_rdm_ep *ep)
{
	return !ep->outstanding && wf_base_list_empty(&ep->active);
}

static void linger(struct wf_rdm_ep *ep)
{
	uint64_t begin = wf_base_clock_ns();
	struct wf_rest rest = { 0 };
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		keep_copies(ep, &peer->queue);
		keep_copies(ep, &peer->flight);
	}
	while (!is_idle(ep) && wf_base_clock_ns() - begin < LINGER) {
		wf_rdm_ep_progress(ep);
		wf_base_rest(&rest);
	}
	if (!is_idle(ep))
		wf_info("closed with messages that nobody took");
}

void wf_rdm_ep_close(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->closing = true;
	if (!ep->awake)
		return;
	if (!ep->forked) {
		linger(ep);
		close_device(ep);
	}
	ep->awake = false;
	wf_match_rxq_forget(ep->rxq, ep);
	wf_list_for_each (pos, tmp, &ep->peers)
		wf_rdm_peer_free(
			wf_container_of(pos, struct wf_rdm_peer, link));
	wf_base_stats_close(&ep->stats);
	wf_base_table_fini(&ep->names);
	wf_base_pool_fini(&ep->tx_pool);
	wf_base_pool_fini(&ep->small_pkts);
	wf_base_pool_fini(&ep->large_pkts);
	free(ep->by_name);
	free(ep->by_ah);
}

void wf_rdm_ep_forked(struct wf_rdm_ep *ep)
{
	ep->forked = true;
	/* Its lock may be held by a thread that is not here. */
	if (ep->nic)
		wf_nic_forked(ep->nic);
	ep->nic = NULL;
	if (ep->awake)
		wf_base_stats_forked(&ep->stats);
}

/* -- names ----------------------------------------------------------------- */

static int make_room_for(struct wf_rdm_ep *ep, uint64_t name)
{
	size_t count = ep->name_count ? ep->name_count : 16;
	struct wf_rdm_peer **all;

	if (name < ep->name_count)
		return 0;
	if (name >= NAMES_MAX)
		return -EINVAL;
	while (count <= name)
		count *= 2;
	all = realloc(ep->by_name, count * sizeof(struct wf_rdm_peer *));
	if (!all)
		return -ENOMEM;
	memset(all + ep->name_count, 0,
	       (count - ep->name_count) * sizeof(struct wf_rdm_peer *));
	ep->by_name = all;
	ep->name_count = count;
	return 0;
}

static struct wf_rdm_peer *peer_of(struct wf_rdm_ep *ep, uint64_t dst, int *err)
{
	struct wf_rdm_peer *peer;
	struct wf_addr addr;

	if (wf_likely(dst < ep->name_count && ep->by_name[dst]))
		return ep->by_name[dst];
	*err = ep->attr.names.get(ep->attr.names.arg, dst, &addr);
	if (!*err)
		*err = make_room_for(ep, dst);
	if (*err)
		return NULL;
	peer = wf_rdm_peer_get(ep, &addr, false, err);
	if (!peer)
		return NULL;
	if (peer->name == WF_MATCH_ANY)
		wf_rdm_peer_rename(peer, dst);
	ep->by_name[dst] = peer;
	peer->named_by++;
	return peer;
}

void wf_rdm_ep_inserted(struct wf_rdm_ep *ep, uint64_t name,
			const struct wf_addr *addr)
{
	struct wf_rdm_peer *peer =
		ep->awake && !ep->forked ? wf_rdm_peer_find(ep, addr) : NULL;

	if (peer)
		wf_rdm_peer_rename(peer, name);
}

void wf_rdm_ep_removed(struct wf_rdm_ep *ep, uint64_t name)
{
	struct wf_list *pos, *tmp;

	if (!ep->awake || ep->forked)
		return;
	if (name < ep->name_count && ep->by_name[name]) {
		ep->by_name[name]->named_by--;
		ep->by_name[name] = NULL;
	}
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (peer->name != name)
			continue;
		wf_rdm_peer_rename(peer, WF_MATCH_ANY);
		if (wf_rdm_peer_needs(peer))
			wf_rdm_peer_fail(peer, FI_ECANCELED);
	}
}

/* Someone else changed the names: whatever has one is looked at again. */
static void follow_names(struct wf_rdm_ep *ep)
{
	const struct wf_names *names = &ep->attr.names;
	/* Acquire: what was counted is seen. Pairs with the creator's count. */
	uint64_t changes =
		atomic_load_explicit(names->changes, memory_order_acquire);
	struct wf_list *pos, *tmp;

	if (wf_likely(changes == ep->names_seen))
		return;
	ep->names_seen = changes;
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);
		struct wf_addr addr;

		/* Asked by name: one that is being changed is not there. */
		if (peer->name != WF_MATCH_ANY &&
		    (names->get(names->arg, peer->name, &addr) ||
		     !wf_base_addr_equal(&addr, &peer->addr)))
			wf_rdm_ep_removed(ep, peer->name);
		if (peer->name == WF_MATCH_ANY)
			wf_rdm_peer_rename(
				peer, names->find(names->arg, &peer->addr));
	}
}

void wf_rdm_ep_unregistered(struct wf_rdm_ep *ep, uint64_t key)
{
	struct wf_list *pos, *tmp, *inner, *next;

	if (!ep->awake || ep->forked)
		return;
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		wf_list_for_each (inner, next, &peer->rxs) {
			struct wf_rdm_rx *rx =
				wf_container_of(inner, struct wf_rdm_rx, link);

			if (wf_rdm_pull_uses(rx, key))
				wf_rdm_rx_fail(rx, FI_EKEYREJECTED, true);
		}
	}
}

/* -- peers that left ------------------------------------------------------- */

static bool has_resets(const struct wf_rdm_ep *ep)
{
	return wf_nic_counter(&wf_nic_counters(ep->nic)->peer_deaths) !=
	       ep->resets;
}

/* The device lost somebody. What came from him before that has been seen. */
static void follow_resets(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->resets = wf_nic_counter(&wf_nic_counters(ep->nic)->peer_deaths);
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (!peer->leaving)
			wf_rdm_peer_check(peer);
	}
}

/* -- operations ------------------------------------------------------------ */

static void count(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	unsigned int index = wf_rdm_protocol_index(tx->protocol);

	wf_base_stats_add(&ep->stats, WF_RDM_STAT_sent_eager + index, 1);
	wf_base_stats_add(&ep->stats, WF_RDM_STAT_sent_eager_bytes + index,
			  tx->req.len);
}

/* Behind all others of the peer, and off if nothing is in the way. */
static int enqueue(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
		   struct wf_rdm_tx *tx)
{
	int err = wf_rdm_protocol_select(ep, tx);

	if (err) {
		wf_rdm_tx_free(ep, tx);
		return err;
	}
	if (tx->ordered)
		tx->msg_id = peer->next_msg_id++;
	wf_base_list_add_tail(&peer->queue, &tx->link);
	if (wf_rdm_peer_pump(peer, PEER_BUDGET))
		wf_rdm_peer_activate(peer);
	if (wf_unlikely(tx->req.inject && !tx->constructed) &&
	    wf_rdm_tx_keep_copy(tx)) {
		peer->next_msg_id -= tx->ordered;
		wf_rdm_tx_free(ep, tx);
		return -EAGAIN;
	}
	count(ep, tx);
	return 0;
}

/* Whoever wants to hear that a write is done wants to hear that it was refused,
 * too: only a receipt, or its absence, says so. */
static void want_receipt(struct wf_rdm_req *req)
{
	bool writes =
		req->kind == WF_RDM_WRITE || (req->kind == WF_RDM_ATOMIC &&
					      req->amo_kind == WF_OP_AMO_WRITE);

	if (writes && (!req->inject || req->wants_comp || req->cntr))
		req->delivery = true;
	/* Nothing waits for an injected message that reports nothing. */
	if (req->inject && !req->wants_comp && !req->cntr)
		req->delivery = false;
}

/* -- atomics that are longer than a packet --------------------------------- */

static void cut_segs(const struct wf_rdm_req *req, uint64_t at, uint64_t len,
		     struct wf_rdm_req *piece)
{
	piece->seg_count = 0;
	for (uint32_t i = 0; i < req->seg_count && len; i++) {
		const struct wf_wire_iov *seg = &req->segs[i];
		uint64_t part;

		if (at >= seg->len) {
			at -= seg->len;
			continue;
		}
		part = seg->len - at < len ? seg->len - at : len;
		piece->segs[piece->seg_count++] = (struct wf_wire_iov){
			.addr = seg->addr + at,
			.len = part,
			.key = seg->key,
		};
		len -= part;
		at = 0;
	}
}

static void cut(const struct wf_rdm_req *req, uint64_t at, uint64_t len,
		struct wf_rdm_req *piece)
{
	*piece = *req;
	piece->len = len;
	piece->wants_comp = false;
	piece->cntr = NULL;
	piece->fence = req->fence && !at;
	cut_segs(req, at, len, piece);
	piece->iov_count =
		req->iov_count ?
			(uint32_t)wf_op_iov_slice(req->iov, req->iov_count, at,
						  len, piece->iov) :
			0;
	piece->result_count = (uint32_t)wf_op_iov_slice(
		req->result, req->result_count, at, len, piece->result);
	piece->compare_count = (uint32_t)wf_op_iov_slice(
		req->compare, req->compare_count, at, len, piece->compare);
}

/* All or none: the entries are there before the first is sent. */
static int submit_pieces(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
			 const struct wf_rdm_req *req, size_t room)
{
	uint32_t count = (uint32_t)((req->len + room - 1) / room);
	struct wf_rdm_tx *whole;
	struct wf_rdm_req piece;
	int err;

	if (ep->tx_pool.limit - ep->tx_pool.in_use < count + 1)
		return -EAGAIN;
	err = wf_rdm_tx_new(ep, peer, req, &whole);
	if (err)
		return err;
	whole->pieces = count;
	whole->constructed = true;
	whole->protocol = &wf_rdm_protocol_write_atomic;
	wf_base_list_add_tail(&peer->flight, &whole->link);
	for (uint64_t at = 0; at < req->len; at += room) {
		struct wf_rdm_tx *tx;

		cut(&whole->req, at,
		    req->len - at < room ? req->len - at : room, &piece);
		err = wf_rdm_tx_new(ep, peer, &piece, &tx);
		if (!err) {
			tx->whole = whole;
			err = enqueue(ep, peer, tx);
		}
		if (err) {
			/* Without memory half of it is under way. */
			if (!whole->err)
				whole->err = FI_ENOMEM;
			whole->pieces--;
		}
	}
	if (!whole->pieces)
		wf_rdm_tx_settle(ep, whole);
	return 0;
}

int wf_rdm_ep_submit(struct wf_rdm_ep *ep, uint64_t dst, struct wf_rdm_req *req)
{
	struct wf_rdm_peer *peer;
	struct wf_rdm_tx *tx;
	int err;

	if (ep->forked)
		return -EOPNOTSUPP;
	if (wf_unlikely(!ep->awake)) {
		err = wf_rdm_ep_wake(ep);
		if (err)
			return err;
	}
	/* The process that is there now is not the one that was before. */
	if (wf_unlikely(has_resets(ep)))
		wf_rdm_ep_progress(ep);
	peer = peer_of(ep, dst, &err);
	if (!peer)
		return err;
	peer->used = ep->now;
	if (wf_unlikely(has_resets(ep)) && wf_rdm_peer_is_reset(peer))
		return -EAGAIN;
	/* An injected message has no completion to fail with: the next one
	 * tells of those that were lost with the peer. */
	if (wf_unlikely(peer->lost && req->inject)) {
		err = peer->lost;
		peer->lost = 0;
		if (req->inject && !req->wants_comp)
			return -err;
	}
	want_receipt(req);
	if (req->kind == WF_RDM_ATOMIC && req->len > wf_rdm_rta_room(peer)) {
		err = submit_pieces(ep, peer, req, wf_rdm_rta_room(peer));
	} else {
		err = wf_rdm_tx_new(ep, peer, req, &tx);
		if (!err)
			err = enqueue(ep, peer, tx);
	}
	if (!req->more || err)
		wf_rdm_ep_ring(ep);
	return err;
}

/* -- progress -------------------------------------------------------------- */

void wf_rdm_ep_ring(struct wf_rdm_ep *ep)
{
	if (!ep->unrung)
		return;
	ep->unrung = false;
	wf_nic_qp_ring(ep->qp);
}

static int take_completions(struct wf_rdm_ep *ep)
{
	int total = 0;

	struct wf_nic_wc wc[COMPLETIONS];

	for (int i = 0; i < ROUNDS; i++) {
		int count = wf_nic_cq_poll(ep->cq, wc, COMPLETIONS);

		for (int j = 0; j < count; j++) {
			if (wc[j].flags & WF_NIC_WC_RECV)
				wf_rdm_in_received(ep, &wc[j]);
			else
				wf_rdm_pkt_done(ep, &wc[j]);
		}
		total += count;
		if (count < COMPLETIONS)
			break;
	}
	return total;
}

/* Each once, so that none takes the room of all others. */
static void pump(struct wf_rdm_ep *ep)
{
	struct wf_list *last = ep->active.prev;
	bool resets = has_resets(ep);
	uint32_t before = ep->posts;

	while (!wf_base_list_empty(&ep->active) && wf_rdm_ep_has_room(ep)) {
		struct wf_list *pos = ep->active.next;
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, active_link);

		wf_base_list_del(&peer->active_link);
		peer->active = false;
		if ((wf_unlikely(resets) && wf_rdm_peer_is_reset(peer)) ||
		    wf_rdm_peer_pump(peer, PEER_BUDGET))
			wf_rdm_peer_activate(peer);
		if (pos == last)
			break;
	}
	ep->blocked = ep->posts == before;
}

/* Packets that came before their turn wait for others of the same sender. */
static bool waits_for(const struct wf_rdm_peer *peer)
{
	return !wf_base_list_empty(&peer->flight) ||
	       !wf_base_list_empty(&peer->rxs) || peer->order.held;
}

/* Who waits for a peer's word has nothing with the device that would tell that
 * the peer is gone: a packet that means nothing does. */
static void probe(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (peer->outstanding || !waits_for(peer))
			continue;
		peer->owes_probe = true;
		wf_rdm_peer_activate(peer);
	}
}

/* Tests have less patience. */
static uint64_t probe_every(const struct wf_rdm_ep *ep)
{
	uint64_t most = ep->attr.warn_ms * WF_NS_PER_MS / 2;

	return most && most < PROBE_EVERY ? most : PROBE_EVERY;
}

static void tick(struct wf_rdm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();

	ep->polls = 0;
	ep->now = now;
	if (now < ep->due)
		return;
	ep->due = now + FLUSH_EVERY;
	wf_rdm_stats_flush(ep);
	if (now < ep->probe_at)
		return;
	ep->probe_at = now + probe_every(ep);
	probe(ep);
	wf_rdm_silent_check(ep);
	ep->aging = true;
}

bool wf_rdm_ep_progress(struct wf_rdm_ep *ep)
{
	bool resets;
	int did, got;

	if (wf_unlikely(!ep->awake || ep->forked))
		return false;
	if (wf_unlikely(ep->dozing)) {
		ep->dozing = false;
		wf_nic_wait_end(ep->nic);
	}
	if (wf_unlikely(ep->attr.names.changes))
		follow_names(ep);
	if (wf_unlikely(++ep->polls >= POLLS_PER_CLOCK))
		tick(ep);
	did = wf_nic_progress(ep->nic);
	if (wf_unlikely(!wf_base_list_empty(&ep->stalled)))
		wf_rdm_in_retry(ep);
	resets = has_resets(ep);
	got = take_completions(ep);
	if (wf_unlikely(resets && got < ROUNDS * COMPLETIONS &&
			wf_base_list_empty(&ep->stalled)))
		follow_resets(ep);
	did += got;
	if (wf_unlikely((ep->crowded || ep->aging ||
			 !wf_base_list_empty(&ep->leaving)) &&
			got < ROUNDS * COMPLETIONS && !has_resets(ep)))
		wf_rdm_crowd_run(ep);
	if (!wf_base_list_empty(&ep->active))
		pump(ep);
	wf_rdm_ep_ring(ep);
	return did;
}

static bool waits_for_peers(const struct wf_rdm_ep *ep)
{
	const struct wf_list *pos;

	for (pos = ep->peers.next; pos != &ep->peers; pos = pos->next) {
		const struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (waits_for(peer))
			return true;
	}
	return false;
}

bool wf_rdm_ep_sleep(struct wf_rdm_ep *ep, uint64_t *deadline_ns)
{
	uint64_t again;
	bool waits;

	*deadline_ns = UINT64_MAX;
	if (!ep->awake || ep->forked)
		return true;
	wf_rdm_stats_flush(ep);
	waits = !wf_base_list_empty(&ep->active);
	if (!wf_base_list_empty(&ep->stalled) || (waits && !ep->blocked))
		return false;
	ep->dozing = !wf_nic_wait_begin(ep->nic, ep->cq, deadline_ns);
	if (!ep->dozing)
		return false;
	ep->polls = POLLS_PER_CLOCK; /* the clock has gone on by then */
	if (waits_for_peers(ep) && *deadline_ns > ep->probe_at)
		*deadline_ns = ep->probe_at;
	/* The device wakes us when it has room again. For want of memory or of
	 * numbers there is nobody to do so. */
	again = waits ? wf_base_clock_ns() + RETRY_EVERY : UINT64_MAX;
	if (*deadline_ns > again)
		*deadline_ns = again;
	return true;
}
