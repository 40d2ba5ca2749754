/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file opens a connection: INIT, COOKIE, OPEN, ACCEPT. Nothing is kept of
 * an INIT; the cookie that answers it is a keyed hash of the sender, so that
 * only a host that receives at that address can continue. Each side then knows
 * a random id of the other's, and packets without it are dropped.
 */
#include <string.h>

#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

/* A cookie is valid for one to two of them: a process that computes may take
 * that long for the next step of a handshake. */
#define EPOCH (300 * WF_NS_PER_S)
#define FIRST_RETRY (5 * WF_NS_PER_MS)
#define LAST_RETRY (250 * WF_NS_PER_MS)
#define LONG_SILENCE (5 * WF_NS_PER_S)
#define LONG_RETRY WF_NS_PER_S
#define RWND_LEAST (128u << 10)
#define SEG_LEAST 256u
/* Larger datagrams cost more than they save, and a lost one more: docs/nic.md. */
#define SEG_MOST 8192u

/* Half of the socket's buffer, because the kernel counts its own structures
 * too, shared among the peers that send now. */
uint32_t wf_udp_hello_rwnd(const struct wf_udp_engine *engine)
{
	uint32_t share = engine->senders > engine->senders_before ?
				 engine->senders :
				 engine->senders_before;
	uint32_t rwnd = engine->set.rcvbuf / 2 / (share ? share : 1);

	return rwnd < RWND_LEAST ? RWND_LEAST : rwnd;
}

uint32_t wf_udp_hello_seg(struct wf_udp_engine *engine,
			  const struct wf_addr *to)
{
	uint32_t seg = engine->port->mtu(engine, to) -
		       (uint32_t)sizeof(struct wf_udp_data);

	return seg < SEG_MOST ? seg : SEG_MOST;
}

static uint64_t cookie_for(const struct wf_udp_engine *engine,
			   const struct wf_addr *from, uint64_t cid,
			   uint32_t epoch)
{
	struct {
		struct wf_addr addr;
		uint64_t cid;
		uint64_t epoch;
	} of;

	memset(&of, 0, sizeof(of));
	of.addr = *from;
	of.cid = cid;
	of.epoch = epoch;
	return wf_udp_sum_sip(engine->set.secret, &of, sizeof(of));
}

static uint32_t epoch_now(const struct wf_udp_engine *engine)
{
	return (uint32_t)(engine->now / EPOCH);
}

static void send_hello(struct wf_udp_engine *engine, const struct wf_addr *to,
		       const struct wf_addr *from, struct wf_udp_hello *hello,
		       enum wf_udp_type type)
{
	hello->common.type = (uint8_t)type;
	hello->common.kind = WF_UDP_VERSION;
	if (engine->set.payload_crc)
		hello->common.flags |= WF_UDP_HELLO_CRC;
	if (engine->late)
		hello->common.flags |= WF_UDP_HELLO_LATE;
	if (!hello->mtu)
		hello->mtu = WF_UDP_DATAGRAM_MAX;
	hello->rwnd = wf_udp_hello_rwnd(engine);
	hello->instance = engine->instance;
	wf_udp_engine_answer(engine, to, from, &hello->common, sizeof(*hello));
}

/* Sends the INIT or OPEN that the state of our connection asks for. */
static void ask(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_hello hello = { .src_cid = out->cid,
				      .ts = wf_udp_engine_us(engine) };

	if (out->state == WF_UDP_OUT_OPEN) {
		hello.cookie = out->cookie;
		hello.epoch = out->epoch;
	}
	send_hello(engine, &peer->addr, &peer->local, &hello,
		   out->state == WF_UDP_OUT_OPEN ? WF_UDP_OPEN : WF_UDP_INIT);
}

static void set_retry(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	uint64_t wait = FIRST_RETRY << peer->out.backoff;

	if (engine->now - peer->out.opened_at > LONG_SILENCE)
		wait = LONG_RETRY;
	else if (wait > LAST_RETRY)
		wait = LAST_RETRY;
	peer->out.hello_at = engine->now + wait;
	wf_udp_peer_arm(engine, peer);
}

void wf_udp_hello_start(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	if (out->state != WF_UDP_OUT_CLOSED)
		return;
	out->state = WF_UDP_OUT_INIT;
	out->cid = wf_udp_peer_new_cid(engine, peer);
	out->opened_at = engine->now;
	out->backoff = 0;
	ask(engine, peer);
	set_retry(engine, peer);
}

void wf_udp_hello_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	out->hello_at = WF_UDP_NEVER;
	if (out->state != WF_UDP_OUT_INIT && out->state != WF_UDP_OUT_OPEN)
		return;
	if (wf_udp_peer_overdue(engine, peer, out->opened_at))
		return;
	/* A cookie grows old: after a while, ask for another. */
	if (out->backoff < 8)
		out->backoff++;
	if (out->backoff % 4 == 0)
		out->state = WF_UDP_OUT_INIT;
	ask(engine, peer);
	set_retry(engine, peer);
}

static void receive_init(struct wf_udp_engine *engine,
			 const struct wf_addr *from,
			 const struct wf_udp_hello *hello)
{
	struct wf_udp_hello answer = {
		.common = { .dst_cid = hello->src_cid },
		.epoch = epoch_now(engine),
		.ts = hello->ts,
	};

	answer.cookie = cookie_for(engine, from, hello->src_cid, answer.epoch);
	send_hello(engine, from, &engine->here, &answer, WF_UDP_COOKIE);
}

/* The answer to our request: from the right peer, and to the id that only it
 * knows. */
static struct wf_udp_peer *asked(struct wf_udp_engine *engine,
				 const struct wf_addr *from,
				 const struct wf_udp_hello *hello)
{
	struct wf_udp_peer *peer =
		wf_udp_peer_by_cid(engine, hello->common.dst_cid);

	if (!peer || peer->out.cid != hello->common.dst_cid) {
		wf_udp_count(engine, bad_cid, 1);
		return NULL;
	}
	if (!wf_base_addr_equal(&peer->addr, from)) {
		wf_udp_count(engine, bad_addr, 1);
		return NULL;
	}
	return peer;
}

static void sample_rtt(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		       const struct wf_udp_hello *hello)
{
	uint32_t us = wf_udp_engine_us(engine) - hello->ts;

	peer->out.last_rtt = 0;
	if (us < 1u << 24 && !engine->late &&
	    !(hello->common.flags & WF_UDP_HELLO_LATE))
		peer->out.last_rtt = us * WF_NS_PER_US;
}

static void receive_cookie(struct wf_udp_engine *engine,
			   const struct wf_addr *from,
			   const struct wf_udp_hello *hello)
{
	struct wf_udp_peer *peer = asked(engine, from, hello);

	if (!peer || peer->out.state != WF_UDP_OUT_INIT)
		return;
	sample_rtt(engine, peer, hello);
	wf_udp_peer_heard(engine, peer);
	/* From now on the peer knows us by the address that the kernel
	 * chose. */
	if (engine->set.any && !peer->local.sa.sa_family)
		peer->local = engine->here;
	peer->out.state = WF_UDP_OUT_OPEN;
	peer->out.cookie = hello->cookie;
	peer->out.epoch = hello->epoch;
	ask(engine, peer);
	set_retry(engine, peer);
}

static bool cookie_good(const struct wf_udp_engine *engine,
			const struct wf_addr *from,
			const struct wf_udp_hello *hello)
{
	uint32_t age = epoch_now(engine) - hello->epoch;

	return age <= 1 &&
	       hello->cookie ==
		       cookie_for(engine, from, hello->src_cid, hello->epoch);
}

/* Whether a connection was replaced by a later one: its OPEN is late, or was
 * recorded and replayed. */
static bool retired(const struct wf_udp_peer *peer, uint64_t cid)
{
	for (unsigned i = 0; i < WF_UDP_RETIRED; i++) {
		if (peer->retired[i] == cid)
			return true;
	}
	return false;
}

/* The peer has connected to one of our addresses: it knows us by that one, and
 * our connection to it must come from there. A request that we sent from
 * another address is repeated under a new id, so that a late answer is not
 * taken for an answer to this. It gets no more time: otherwise a peer could
 * move the deadline for ever. */
static void learn_local(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t began = out->opened_at;

	peer->in.local = engine->here;
	if (!engine->set.any || out->state == WF_UDP_OUT_UP ||
	    wf_base_addr_equal(&peer->local, &engine->here))
		return;
	peer->local = engine->here;
	if (out->state == WF_UDP_OUT_CLOSED)
		return;
	out->state = WF_UDP_OUT_CLOSED;
	wf_udp_hello_start(engine, peer);
	out->opened_at = began;
}

/* Whether our connection leads to another process than the one that asks. That
 * other process is gone, and what we send to it is lost: the user must know it
 * before the first packet of the new process, or would answer that packet over
 * the old connection. The new process refuses the connection when it learns of
 * it, and asks again. */
static bool leads_elsewhere(struct wf_udp_engine *engine,
			    struct wf_udp_peer *peer,
			    const struct wf_udp_hello *hello)
{
	if (peer->out.state != WF_UDP_OUT_UP ||
	    peer->out.instance == hello->instance)
		return false;
	wf_udp_peer_ping(engine, peer, peer->out.remote_cid);
	return true;
}

static void receive_open(struct wf_udp_engine *engine,
			 const struct wf_addr *from,
			 const struct wf_udp_hello *hello)
{
	struct wf_udp_hello answer = {
		.common = { .dst_cid = hello->src_cid },
		.ts = hello->ts,
	};
	struct wf_udp_peer *peer;

	if (!cookie_good(engine, from, hello)) {
		wf_udp_count(engine, bad_cookie, 1);
		return;
	}
	/* Opened and not ready yet, and may never be: it will ask again. */
	if (!engine->ready)
		return;
	peer = wf_udp_peer_get(engine, from, true);
	if (!peer)
		return; /* too many: it will ask again, then give up */
	/* The same id again: our answer was lost. Another: the peer gave the
	 * connection up, or is another process. */
	if (retired(peer, hello->src_cid)) {
		wf_udp_count(engine, bad_cookie, 1);
		return;
	}
	if (leads_elsewhere(engine, peer, hello))
		return;
	if (!peer->in.open || peer->in.remote_cid != hello->src_cid) {
		bool crc = engine->set.payload_crc ||
			   hello->common.flags & WF_UDP_HELLO_CRC;

		if (peer->in.open)
			wf_udp_count(engine, peer_restarts, 1);
		if (peer->in.remote_cid != hello->src_cid)
			peer->retired[peer->retirements++ % WF_UDP_RETIRED] =
				peer->in.remote_cid;
		wf_udp_in_open(engine, peer, hello->src_cid, crc);
		peer->in.instance = hello->instance;
		wf_udp_count(engine, accepts, 1);
	}
	wf_udp_peer_heard(engine, peer);
	learn_local(engine, peer);
	answer.src_cid = peer->in.cid;
	/* A packet that leaves this host in one piece most likely also arrives
	 * in one piece. */
	answer.mtu = engine->port->mtu(engine, from);
	if (peer->in.crc)
		answer.common.flags |= WF_UDP_HELLO_CRC;
	send_hello(engine, from, &peer->in.local, &answer, WF_UDP_ACCEPT);
}

static void receive_accept(struct wf_udp_engine *engine,
			   const struct wf_addr *from,
			   const struct wf_udp_hello *hello)
{
	struct wf_udp_peer *peer = asked(engine, from, hello);
	uint32_t seg;

	/* It may arrive while we ask for another cookie: a peer that needs
	 * longer than our time-out for each answer would never be connected. */
	if (!peer || (peer->out.state != WF_UDP_OUT_OPEN &&
		      peer->out.state != WF_UDP_OUT_INIT))
		return;
	if (!hello->src_cid ||
	    hello->mtu < SEG_LEAST + sizeof(struct wf_udp_data) ||
	    hello->rwnd < 4096) {
		wf_udp_count(engine, bad_field, 1);
		return;
	}
	seg = wf_udp_hello_seg(engine, &peer->addr);
	if (seg > hello->mtu - (uint32_t)sizeof(struct wf_udp_data))
		seg = hello->mtu - (uint32_t)sizeof(struct wf_udp_data);
	sample_rtt(engine, peer, hello);
	if (wf_udp_out_up(engine, peer, seg, hello->rwnd))
		return; /* no memory: the retry will find some */
	peer->out.remote_cid = hello->src_cid;
	peer->out.instance = hello->instance;
	peer->out.crc = hello->common.flags & WF_UDP_HELLO_CRC;
	wf_udp_peer_heard(engine, peer);
	wf_udp_count(engine, connects, 1);
	wf_udp_peer_activate(engine, peer);
}

void wf_udp_hello_receive(struct wf_udp_engine *engine,
			  const struct wf_addr *from,
			  const struct wf_udp_hello *hello)
{
	if (hello->common.kind != WF_UDP_VERSION) {
		wf_udp_count(engine, bad_magic, 1);
		return;
	}
	if (hello->common.type <= WF_UDP_OPEN &&
	    hello->common.type != WF_UDP_COOKIE && !hello->src_cid) {
		wf_udp_count(engine, bad_field, 1);
		return;
	}
	if (hello->common.type == WF_UDP_INIT)
		receive_init(engine, from, hello);
	else if (hello->common.type == WF_UDP_COOKIE)
		receive_cookie(engine, from, hello);
	else if (hello->common.type == WF_UDP_OPEN)
		receive_open(engine, from, hello);
	else
		receive_accept(engine, from, hello);
}
