/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: finding them by address and by connection id, their timers, their end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/udp/engine/inner.h"

#define PING_EVERY WF_NS_PER_S
#define REFUSED_MOST 3u
#define AWAY (100 * WF_NS_PER_MS)
#define DOUBT_EVERY (100 * WF_NS_PER_MS)
/* An unproved report about a peer is forgotten after this long: pings continue
 * every second. */
#define AGAINST_LASTS (5 * WF_NS_PER_S)
/* A peer without a handle: how often it is looked at, after what quiet our
 * connection to it is closed, and when one that may send to us, and does not,
 * is asked whether it is still there. */
#define REAP_EVERY WF_NS_PER_S
#define REAP_QUIET (3 * WF_NS_PER_S)
#define REAP_ASK (60 * WF_NS_PER_S)
#define REAP_SOON (100 * WF_NS_PER_MS) /* where there are many of them */

static struct wf_list *bucket_of(struct wf_udp_engine *engine,
				 const struct wf_addr *addr)
{
	return &engine->buckets[wf_base_addr_hash(addr) % 256];
}

struct wf_udp_peer *wf_udp_peer_find(struct wf_udp_engine *engine,
				     const struct wf_addr *addr)
{
	struct wf_list *head = bucket_of(engine, addr), *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_udp_peer *peer =
			wf_container_of(pos, struct wf_udp_peer, bucket);

		if (wf_base_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

/* An index for another peer. -1: too many, or no memory. */
static int make_room(struct wf_udp_engine *engine, bool stranger)
{
	uint32_t room = engine->peer_room ? engine->peer_room * 2 : 16;
	struct wf_udp_peer **peers;

	if ((stranger ? engine->strangers :
			engine->peers_here - engine->strangers) >=
		    engine->set.max_peers ||
	    engine->peers_here >= UINT16_MAX)
		return -1;
	for (uint32_t i = 0; engine->peers_here < engine->peer_count; i++) {
		if (!engine->peers[i])
			return (int)i;
	}
	if (engine->peer_count == engine->peer_room) {
		if (wf_nic_timers_room(&engine->timers, room))
			return -1;
		peers = realloc(engine->peers, room * sizeof(*peers));
		if (!peers)
			return -1;
		engine->peers = peers;
		engine->peer_room = room;
	}
	return (int)engine->peer_count;
}

struct wf_udp_peer *wf_udp_peer_get(struct wf_udp_engine *engine,
				    const struct wf_addr *addr, bool stranger)
{
	struct wf_udp_peer *peer = wf_udp_peer_find(engine, addr);
	int at;

	if (peer)
		return peer;
	at = make_room(engine, stranger);
	if (at < 0)
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->addr = *addr;
	/* The kernel would choose the address of the link that packets leave
	 * by; the peer knows our name. */
	if (engine->set.any &&
	    engine->set.name.sa.sa_family == addr->sa.sa_family)
		peer->local = engine->set.name;
	peer->index = (uint16_t)at;
	peer->ah = WF_NIC_AH_UNKNOWN;
	wf_nic_timer_init(&peer->timer);
	peer->ping_at = WF_UDP_NEVER;
	peer->in.ack_at = WF_UDP_NEVER;
	wf_base_list_init(&peer->ripe);
	wf_base_list_init(&peer->active);
	wf_base_list_init(&peer->acker);
	wf_base_list_init(&peer->reads);
	wf_base_list_init(&peer->served);
	wf_base_list_init(&peer->wholes);
	wf_udp_out_init(&peer->out);
	wf_base_list_add_tail(bucket_of(engine, addr), &peer->bucket);
	engine->peers[at] = peer;
	if ((uint32_t)at == engine->peer_count)
		engine->peer_count++;
	wf_nic_gauge(&engine->counters->peers, ++engine->peers_here);
	engine->strangers++;
	wf_udp_peer_release(engine, peer);
	return peer;
}

void wf_udp_peer_free(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	wf_udp_in_close(engine, peer); /* first: what it serves is in lists */
	wf_udp_out_close(engine, peer);
	wf_base_list_del(&peer->bucket);
	wf_base_list_del(&peer->ripe);
	wf_nic_timers_drop(&engine->timers, &peer->timer);
	wf_base_list_del(&peer->active);
	wf_base_list_del(&peer->acker);
	engine->peers[peer->index] = NULL;
	if (!peer->handles)
		engine->strangers--;
	wf_nic_gauge(&engine->counters->peers, --engine->peers_here);
	free(peer->out.slots);
	free(peer);
}

/* Where the peer is lies in the low bits, so that no search is needed; the rest
 * is random, and the whole has to be right. */
uint64_t wf_udp_peer_new_cid(struct wf_udp_engine *engine,
			     struct wf_udp_peer *peer)
{
	uint64_t cid;

	do {
		cid = (wf_udp_engine_random(engine) & ~0xffffull) | peer->index;
	} while (!cid || cid == peer->in.cid || cid == peer->out.cid);
	return cid;
}

struct wf_udp_peer *wf_udp_peer_by_cid(struct wf_udp_engine *engine,
				       uint64_t cid)
{
	uint32_t at = cid & 0xffff;
	struct wf_udp_peer *peer;

	if (!cid || at >= engine->peer_count)
		return NULL;
	peer = engine->peers[at];
	return peer && (peer->in.cid == cid || peer->out.cid == cid) ? peer :
								       NULL;
}

void wf_udp_peer_activate(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer)
{
	if (wf_base_list_empty(&peer->active))
		wf_base_list_add_tail(&engine->active, &peer->active);
}

static uint64_t first(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t first_due(const struct wf_udp_peer *peer)
{
	const struct wf_udp_out *out = &peer->out;
	uint64_t due = first(out->hello_at, out->probe_at);

	due = first(due, first(out->reo_at, out->rnr_at));
	due = first(due, first(out->pace_at, peer->in.ack_at));
	due = first(due, first(peer->ping_at, peer->reap_at));
	return first(due, out->size_at);
}

void wf_udp_peer_arm(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	wf_nic_timers_set(&engine->timers, &peer->timer, first_due(peer));
}

void wf_udp_peer_heard(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	peer->heard_at = engine->now;
	peer->refused = 0;
	peer->against_from = 0;
}

/* Several times in a row, and no packet of the peer in between: its socket is
 * gone. While we are still asking for a connection, the peer may yet appear. */
void wf_udp_peer_against(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 bool refused)
{
	if (!peer->against_from ||
	    engine->now - peer->against_at > AGAINST_LASTS)
		peer->against_from = engine->now;
	peer->against_at = engine->now;
	if (!refused || ++peer->refused < REFUSED_MOST)
		return;
	if (peer->out.state == WF_UDP_OUT_UP)
		wf_udp_peer_fail(engine, peer, WF_NIC_UNREACH);
	else
		wf_udp_in_close(engine, peer);
}

bool wf_udp_peer_quoted(const struct wf_udp_peer *peer, const uint8_t *bytes,
			size_t len)
{
	struct wf_udp_common common;
	uint64_t cid;

	if (len < sizeof(common) + sizeof(cid))
		return false;
	memcpy(&common, bytes, sizeof(common));
	memcpy(&cid, bytes + sizeof(common), sizeof(cid));
	if (common.magic != WF_UDP_MAGIC)
		return false;
	/* During a handshake it is our own id that nobody else knows yet. */
	if (common.type == WF_UDP_INIT || common.type == WF_UDP_OPEN)
		return cid && cid == peer->out.cid;
	return common.dst_cid && (common.dst_cid == peer->out.remote_cid ||
				  common.dst_cid == peer->in.remote_cid);
}

/* RFC 9000, section 14.2.1, and RFC 5927: such a message is a hint, and no
 * more. A living peer answers a ping; a dead one is detected by what the
 * network quotes of the ping, or by its silence. */
void wf_udp_peer_doubt(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	if (peer->out.state != WF_UDP_OUT_UP ||
	    engine->now - peer->doubted_at < DOUBT_EVERY)
		return;
	peer->doubted_at = engine->now;
	wf_udp_peer_ping(engine, peer, peer->out.remote_cid);
}

/* How long a handshake may take. On this host the kernel refuses packets to a
 * port that nobody has bound: a silent port belongs to a process that computes,
 * or is not scheduled, and such a process is not dead. */
static uint64_t connect_patience(struct wf_udp_engine *engine,
				 const struct wf_udp_peer *peer, bool against)
{
	bool over = engine->now - peer->out.opened_at > engine->set.connect_ns;

	if (over && !against && engine->set.dead_ns > engine->set.connect_ns &&
	    engine->port->is_local(engine, &peer->addr))
		return engine->set.dead_ns;
	return engine->set.connect_ns;
}

bool wf_udp_peer_overdue(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 uint64_t since)
{
	bool against = peer->against_from &&
		       engine->now - peer->against_at <= AGAINST_LASTS;

	/* All steps of a handshake together: a peer that answers the first one
	 * for ever, and never the last, has not answered. */
	if (peer->out.state == WF_UDP_OUT_INIT ||
	    peer->out.state == WF_UDP_OUT_OPEN) {
		if (engine->now - peer->out.opened_at <=
		    connect_patience(engine, peer, against))
			return false;
		wf_udp_peer_fail(engine, peer,
				 against ? WF_NIC_UNREACH : WF_NIC_UNRESP);
		return true;
	}
	if (peer->heard_at > since)
		since = peer->heard_at;
	if (against &&
	    engine->now - peer->against_from > engine->set.connect_ns)
		wf_udp_peer_fail(engine, peer, WF_NIC_UNREACH);
	else if (engine->now - since > engine->set.dead_ns)
		wf_udp_peer_fail(engine, peer, WF_NIC_UNRESP);
	else
		return false;
	return true;
}

/* Answered by an ack or, by a process that does not know us, a reset. */
void wf_udp_peer_ping(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      uint64_t cid)
{
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_PING, .dst_cid = cid },
		.ts = wf_udp_engine_us(engine),
	};
	bool is_in = peer->in.open && cid == peer->in.remote_cid;

	wf_udp_engine_answer(engine, &peer->addr,
			     is_in ? &peer->in.local : &peer->local,
			     &note.common, sizeof(note));
}

/* Reads are answered over the other connection: nothing of ours may be in
 * flight, and yet we wait. */
static void await_reads(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	peer->ping_at = WF_UDP_NEVER;
	if (peer->out.state != WF_UDP_OUT_UP ||
	    wf_base_list_empty(&peer->reads))
		return;
	peer->ping_at = engine->now + PING_EVERY;
	if (engine->now - peer->heard_at < PING_EVERY)
		return;
	if (!wf_udp_peer_overdue(engine, peer, 0))
		wf_udp_peer_ping(engine, peer, peer->out.remote_cid);
}

/* -- peers that nobody has a handle for ------------------------------------- */

void wf_udp_peer_release(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	peer->reap_at = engine->now + REAP_EVERY;
	wf_udp_peer_arm(engine, peer);
}

static bool has_work(const struct wf_udp_peer *peer)
{
	return peer->out.una != peer->out.next ||
	       !wf_base_list_empty(&peer->out.ops) ||
	       !wf_base_list_empty(&peer->reads) ||
	       !wf_base_list_empty(&peer->served);
}

static void close_out(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_CLOSE,
			    .dst_cid = peer->out.remote_cid },
	};

	if (peer->out.state == WF_UDP_OUT_UP)
		wf_udp_engine_answer(engine, &peer->addr, &peer->local,
				     &note.common, sizeof(note));
	wf_udp_out_close(engine, peer);
}

/* Others would soon be refused: dead ones are to be found sooner. */
static bool is_crowded(const struct wf_udp_engine *engine)
{
	return engine->strangers > engine->set.max_peers / 2;
}

/* Our connection to it is closed once it is quiet; it itself is kept for as
 * long as it may send to us. True: it is gone. */
static bool reap(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	bool crowded = is_crowded(engine);

	peer->reap_at = engine->now + (crowded ? REAP_SOON : REAP_EVERY);
	if (has_work(peer))
		return false;
	if (peer->out.state != WF_UDP_OUT_CLOSED &&
	    engine->now - peer->out.busy_at > REAP_QUIET &&
	    engine->now - peer->out.opened_at > REAP_QUIET)
		close_out(engine, peer);
	if (peer->in.open &&
	    engine->now - peer->heard_at > (crowded ? REAP_EVERY : REAP_ASK)) {
		peer->reap_at =
			engine->now + (crowded ? REAP_SOON : REAP_ASK / 4);
		if (!wf_udp_peer_overdue(engine, peer, 0))
			wf_udp_peer_ping(engine, peer, peer->in.remote_cid);
	}
	if (peer->in.open || peer->out.state != WF_UDP_OUT_CLOSED)
		return false;
	wf_udp_peer_free(engine, peer);
	return true;
}

/* A timer expired long ago: nobody checked it. That time does not count against
 * the peer: it may have been stopped like us, and continue a moment later. */
static void excuse(struct wf_udp_peer *peer, uint64_t due, uint64_t late)
{
	struct wf_udp_out *out = &peer->out;

	if (peer->heard_at < due)
		peer->heard_at += late;
	if (out->busy_at < due)
		out->busy_at += late;
	if (out->opened_at < due)
		out->opened_at += late;
}

void wf_udp_peer_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	uint64_t due = first_due(peer);

	if (wf_unlikely(due < engine->now && engine->now - due > AWAY))
		excuse(peer, due, engine->now - due);
	if (peer->out.hello_at <= engine->now)
		wf_udp_hello_tick(engine, peer);
	wf_udp_out_tick(engine, peer);
	if (peer->in.ack_at <= engine->now)
		wf_udp_in_send_ack(engine, peer);
	if (peer->ping_at <= engine->now)
		await_reads(engine, peer);
	if (peer->reap_at <= engine->now && reap(engine, peer))
		return;
	wf_udp_peer_arm(engine, peer);
}

/* Requests of ours end. Reads that we serve do not: they came over the other
 * connection, and are afterwards only in peer->served. */
static void end_requests(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 enum wf_nic_status status)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_list *pos, *tmp;

	/* Ops whose packets are all made are in no list of the peer, but each
	 * of their slots points to them. */
	for (uint32_t seq = out->una; seq != out->next; seq++) {
		struct wf_udp_slot *slot = out->slots[seq % WF_UDP_WINDOW];

		if (slot && slot->op && slot->op->kind != WF_UDP_OP_SERVE)
			wf_udp_op_end(engine, slot->op, status);
	}
	wf_list_for_each (pos, tmp, &out->ops) {
		struct wf_udp_op *op =
			wf_container_of(pos, struct wf_udp_op, link);

		if (op->kind != WF_UDP_OP_SERVE) {
			wf_udp_op_end(engine, op, status);
			continue;
		}
		wf_base_list_unlink(&op->link);
		op->in_list = false;
	}
	while (!wf_base_list_empty(&peer->reads))
		wf_udp_op_end(engine,
			      wf_container_of(peer->reads.next,
					      struct wf_udp_op, link),
			      status);
}

/* Reads that we serve are answered over the next connection, from their first
 * byte on. A peer that refuses the present one has never had it, and received
 * nothing over it, or has given up its reads. */
static void serve_again(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &peer->served) {
		struct wf_udp_op *op =
			wf_container_of(pos, struct wf_udp_op, owner_link);

		op->next = 0;
		op->slots = 0;
		op->made = false;
		op->in_list = true;
		wf_base_list_add_tail(&peer->out.ops, &op->link);
		wf_udp_hello_start(engine, peer);
		wf_udp_peer_activate(engine, peer);
	}
}

void wf_udp_peer_abandon(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	peer->lost = true;
	if (peer->out.state == WF_UDP_OUT_CLOSED)
		return;
	end_requests(engine, peer, WF_NIC_ABORT);
	wf_udp_out_close(engine, peer);
	serve_again(engine, peer);
	peer->ping_at = WF_UDP_NEVER;
	wf_udp_peer_arm(engine, peer);
}

static void count_death(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			enum wf_nic_status status)
{
	char name[WF_ADDR_STR_LEN];

	wf_info("peer %s: %s",
		wf_base_addr_str(&peer->addr, name, sizeof(name)),
		wf_nic_status_str(status));
	wf_udp_count(engine, peer_deaths, 1);
	peer->fails++;
	peer->lost = true;
	/* A peer that asks again gets the time of a new one. */
	peer->against_from = 0;
	peer->refused = 0;
}

void wf_udp_peer_refused(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	count_death(engine, peer, WF_NIC_ABORT);
	wf_udp_peer_abandon(engine, peer);
	/* If the other connection is of the same dead process, it is refused
	 * as well. */
	if (peer->in.open)
		wf_udp_peer_ping(engine, peer, peer->in.remote_cid);
}

void wf_udp_peer_fail(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      enum wf_nic_status status)
{
	count_death(engine, peer, status);
	end_requests(engine, peer, status);
	wf_udp_in_close(engine, peer);
	wf_udp_out_close(engine, peer);
	peer->ping_at = WF_UDP_NEVER;
	wf_udp_peer_arm(engine, peer);
}
