/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine as a whole: its beginning and end, what all peers have in common
 * (timers, turns to send, acknowledgements), and news of the network.
 */
#include "nic/udp/engine/engine.h"

#include <stdlib.h>

#include "base/log.h"
#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

#define RETRY_AFTER (50 * WF_NS_PER_US)

void wf_udp_engine_init(struct wf_udp_engine *engine, uint64_t now,
			const struct wf_udp_setup *setup)
{
	*engine = (struct wf_udp_engine){
		.set = *setup,
		.counters = setup->counters,
		.port = setup->port,
		.now = now,
	};
	for (unsigned i = 0; i < 256; i++)
		wf_base_list_init(&engine->buckets[i]);
	wf_base_list_init(&engine->active);
	wf_base_list_init(&engine->ackers);
	wf_base_list_init(&engine->all_wholes);
	wf_base_pool_init(&engine->slots, sizeof(struct wf_udp_slot), 256, 0);
	engine->instance = wf_udp_engine_random(engine) | 1;
}

void wf_udp_engine_fini(struct wf_udp_engine *engine)
{
	for (uint32_t i = 0; i < engine->peer_count; i++) {
		if (engine->peers[i])
			wf_udp_peer_free(engine, engine->peers[i]);
	}
	free(engine->peers);
	wf_nic_timers_fini(&engine->timers);
	wf_base_pool_fini(&engine->slots);
}

uint64_t wf_udp_engine_random(struct wf_udp_engine *engine)
{
	uint64_t mixed[2] = { engine->random++, engine->now };

	return wf_udp_sum_sip(engine->set.secret, mixed, sizeof(mixed));
}

/* -- packets without data --------------------------------------------------- */

static void seal(struct wf_udp_common *packet, size_t len)
{
	packet->magic = WF_UDP_MAGIC;
	packet->crc = wf_udp_sum_head(packet, len);
}

void wf_udp_engine_answer(struct wf_udp_engine *engine,
			  const struct wf_addr *to, const struct wf_addr *from,
			  struct wf_udp_common *packet, size_t len)
{
	const struct wf_udp_packet out = {
		.to = to,
		.from = from,
		.head = packet,
		.head_len = (uint32_t)len,
	};

	seal(packet, len);
	engine->port->send(engine, &out);
}

void wf_udp_engine_padded(struct wf_udp_engine *engine,
			  const struct wf_udp_peer *peer,
			  struct wf_udp_note *note, size_t len)
{
	static const uint8_t
		zeros[WF_UDP_PART_TOTAL + sizeof(struct wf_udp_data)];
	const struct iovec iov = { (void *)(uintptr_t)zeros,
				   len - sizeof(*note) };
	const struct wf_udp_packet out = {
		.to = &peer->addr,
		.from = &peer->local,
		.head = note,
		.head_len = sizeof(*note),
		.len = (uint32_t)iov.iov_len,
		.iov = &iov,
		.pieces = 1,
		.alone = true,
	};

	seal(&note->common, sizeof(*note));
	engine->port->send(engine, &out);
}

void wf_udp_engine_goodbye(struct wf_udp_engine *engine, uint64_t now)
{
	struct wf_udp_note note = { .common = { .type = WF_UDP_CLOSE } };

	engine->now = now;
	for (uint32_t i = 0; i < engine->peer_count; i++) {
		struct wf_udp_peer *peer = engine->peers[i];

		if (!peer)
			continue;
		if (peer->in.open) {
			wf_udp_in_send_ack(engine, peer);
			note.common.dst_cid = peer->in.remote_cid;
			note.seq = peer->in.base;
			note.ts = wf_udp_in_echo(engine, peer);
			wf_udp_engine_answer(engine, &peer->addr,
					     &peer->in.local, &note.common,
					     sizeof(note));
		}
		if (peer->out.state == WF_UDP_OUT_UP) {
			note.common.dst_cid = peer->out.remote_cid;
			wf_udp_engine_answer(engine, &peer->addr, &peer->local,
					     &note.common, sizeof(note));
		}
	}
	engine->port->flush(engine);
}

/* -- news of the network ---------------------------------------------------- */

void wf_udp_engine_icmp(struct wf_udp_engine *engine, uint64_t now,
			const struct wf_udp_icmp *icmp)
{
	struct wf_udp_peer *peer = wf_udp_peer_find(engine, &icmp->to);

	engine->now = now;
	if (!peer)
		return;
	if (!wf_udp_peer_quoted(peer, icmp->quote, icmp->quoted))
		wf_udp_peer_doubt(engine, peer);
	else if (icmp->too_large)
		wf_udp_path_narrow(
			engine, peer,
			wf_udp_path_payload(peer->addr.sa.sa_family,
					    icmp->mtu) -
				(uint32_t)sizeof(struct wf_udp_data));
	else
		wf_udp_peer_against(engine, peer, icmp->refused);
}

/* The path has become narrower, the kernel makes no segments there, or there is
 * no route. This holds for that peer only, and is ignored if the address is of
 * no peer. */
void wf_udp_engine_not_sent(struct wf_udp_engine *engine, uint64_t now,
			    const struct wf_udp_failure *failure)
{
	struct wf_udp_peer *peer = wf_udp_peer_find(engine, &failure->to);
	/* Asked for only then: system calls. */
	uint32_t seg = peer && failure->too_large ?
			       wf_udp_hello_seg(engine, &failure->to) :
			       0;

	engine->now = now;
	if (peer && seg && seg < peer->out.seg) {
		wf_udp_path_narrow(engine, peer, seg);
	} else if (peer &&
		   ((seg && failure->segments) || failure->no_segments)) {
		wf_info("no segmentation on the way to a peer");
		peer->out.no_gso = true;
	} else if (peer && !seg) {
		wf_udp_peer_against(engine, peer, false);
	}
}

void wf_udp_engine_later(struct wf_udp_engine *engine)
{
	engine->retry_at = engine->now + RETRY_AFTER;
}

/* -- turns ------------------------------------------------------------------ */

static int run_timers(struct wf_udp_engine *engine)
{
	struct wf_nic_timer *timer =
		wf_nic_timers_take(&engine->timers, engine->now);
	struct wf_list ripe;
	int fired = 0;

	if (!timer)
		return 0;
	/* Each once: one that is due again at once has to wait for the next
	 * turn. */
	wf_base_list_init(&ripe);
	do {
		wf_base_list_add_tail(
			&ripe,
			&wf_container_of(timer, struct wf_udp_peer, timer)
				 ->ripe);
	} while ((timer = wf_nic_timers_take(&engine->timers, engine->now)));
	while (!wf_base_list_empty(&ripe)) {
		struct wf_udp_peer *peer =
			wf_container_of(ripe.next, struct wf_udp_peer, ripe);

		wf_base_list_del(&peer->ripe);
		wf_udp_peer_tick(engine, peer);
		fired++;
	}
	return fired;
}

int wf_udp_engine_pump(struct wf_udp_engine *engine, uint64_t now,
		       unsigned quantum, unsigned alone)
{
	struct wf_list *pos, *tmp, turn;
	int pumped = 0;

	engine->now = now;
	if (now < engine->retry_at || wf_base_list_empty(&engine->active))
		return 0;
	/* Each peer once: a peer with more to send gets the next turn. */
	turn = engine->active;
	turn.next->prev = &turn;
	turn.prev->next = &turn;
	wf_base_list_init(&engine->active);
	if (turn.next == turn.prev)
		quantum = alone;
	wf_list_for_each (pos, tmp, &turn) {
		wf_udp_pump(engine,
			    wf_container_of(pos, struct wf_udp_peer, active),
			    quantum);
		pumped++;
	}
	return pumped;
}

int wf_udp_engine_turn(struct wf_udp_engine *engine, uint64_t now,
		       unsigned quantum, unsigned alone)
{
	int did;

	engine->now = now;
	did = run_timers(engine);
	did += wf_udp_engine_pump(engine, now, quantum, alone);
	/* An ack that a full socket did not take is not repeated by anybody
	 * else. */
	while (!wf_base_list_empty(&engine->ackers) && now >= engine->retry_at)
		wf_udp_in_send_ack(engine,
				   wf_container_of(engine->ackers.next,
						   struct wf_udp_peer, acker));
	return did;
}

uint64_t wf_udp_engine_next(struct wf_udp_engine *engine, uint64_t now)
{
	if (!wf_base_list_empty(&engine->active) ||
	    !wf_base_list_empty(&engine->ackers))
		return engine->retry_at > now ? engine->retry_at : 0;
	return wf_nic_timers_next(&engine->timers);
}

/* -- handles ---------------------------------------------------------------- */

struct wf_udp_peer *wf_udp_engine_hold(struct wf_udp_engine *engine,
				       uint64_t now, const struct wf_addr *addr)
{
	struct wf_udp_peer *peer;

	engine->now = now;
	peer = wf_udp_peer_get(engine, addr, false);
	if (!peer)
		return NULL;
	if (!peer->handles++) {
		engine->strangers--;
		peer->lost = false;
	}
	peer->reap_at = WF_UDP_NEVER;
	return peer;
}

bool wf_udp_engine_release(struct wf_udp_engine *engine, uint64_t now,
			   struct wf_udp_peer *peer)
{
	engine->now = now;
	if (--peer->handles)
		return false;
	engine->strangers++;
	wf_udp_peer_release(engine, peer);
	return true;
}

void wf_udp_engine_abandon(struct wf_udp_engine *engine, uint64_t now,
			   struct wf_udp_peer *peer)
{
	engine->now = now;
	wf_udp_peer_abandon(engine, peer);
}
