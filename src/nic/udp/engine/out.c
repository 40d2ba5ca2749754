/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of a connection: what was acknowledged, what is lost, when to
 * ask again. Loss is detected as in RACK (RFC 8985): a packet is lost if one
 * sent sufficiently later has arrived. "Sufficiently" is three packets on a
 * path that keeps order, and a time on a path that was seen to reorder. If
 * nothing is acknowledged, probes are sent (RFC 9002, section 6.2).
 */
#include <errno.h>
#include <stdlib.h>

#include "nic/udp/engine/inner.h"

#define PACKET_THRESHOLD 3 /* RFC 9002, section 6.1.1 */
#define REO_LEAST (20 * WF_NS_PER_US)
/* RFC 8985 waits for a round trip at most. Where that is shorter than what hosts
 * and switches can hold a packet back, more is needed, or each packet that was
 * only late halves the window. */
#define REO_MOST WF_NS_PER_MS
#define REO_LASTS 16 /* losses */
#define PROBE_MOST (250 * WF_NS_PER_MS)
#define LONG_SILENCE (5 * WF_NS_PER_S) /* from here on once a second */
/* Timeouts in a row after which a sign of life is required before anything is
 * sent again: packets that a computing peer does not read must not fill its
 * socket. */
#define PING_AFTER 6
#define COLLAPSE_AFTER 3
#define RNR_FIRST (40 * WF_NS_PER_US) /* facts of the EFA provider */
#define RNR_MOST (10 * WF_NS_PER_MS)

void wf_udp_out_init(struct wf_udp_out *out)
{
	out->state = WF_UDP_OUT_CLOSED;
	out->hello_at = WF_UDP_NEVER;
	out->probe_at = WF_UDP_NEVER;
	out->reo_at = WF_UDP_NEVER;
	out->rnr_at = WF_UDP_NEVER;
	out->pace_at = WF_UDP_NEVER;
	out->size_at = WF_UDP_NEVER;
	wf_base_list_init(&out->ops);
	wf_base_list_init(&out->flight);
	wf_base_list_init(&out->lost);
	wf_base_list_init(&out->rnr);
}

int wf_udp_out_up(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		  uint32_t seg, uint32_t rwnd)
{
	struct wf_udp_out *out = &peer->out;

	if (!out->slots)
		out->slots = calloc(WF_UDP_WINDOW, sizeof(*out->slots));
	if (!out->slots)
		return -ENOMEM;
	out->state = WF_UDP_OUT_UP;
	out->una = 0;
	out->next = 0;
	out->warned = false;
	wf_udp_path_up(out, seg);
	out->rwnd = rwnd;
	out->backoff = 0;
	out->reorders = false;
	out->no_gso = false;
	out->reordered_cut = 0;
	out->reo_mult = 1;
	out->dups = 0;
	out->unasked = 0;
	out->in_flight = 0;
	out->sent_no = 0;
	out->acked_no = 0;
	out->asked_no = 0;
	out->hello_at = WF_UDP_NEVER;
	wf_udp_cc_init(&out->cc, seg);
	if (out->last_rtt)
		wf_udp_cc_rtt(&out->cc, out->last_rtt, engine->now);
	return 0;
}

void wf_udp_out_close(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	/* The batch may point to slots. */
	engine->port->flush(engine);
	for (uint32_t seq = out->una; seq != out->next; seq++) {
		struct wf_udp_slot **slot = &out->slots[seq % WF_UDP_WINDOW];

		if (*slot) {
			wf_base_list_unlink(&(*slot)->link);
			wf_base_pool_put(&engine->slots, *slot);
		}
		*slot = NULL;
	}
	out->una = out->next;
	out->cid = 0;
	out->remote_cid = 0;
	out->in_flight = 0;
	wf_udp_out_init(out);
}

/* -- timers ----------------------------------------------------------------- */

void wf_udp_out_set_probe(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t wait;

	if (wf_base_list_empty(&out->flight)) {
		out->probe_at = WF_UDP_NEVER;
		return;
	}
	wait = wf_udp_cc_timeout(&out->cc) << out->backoff;
	if (wait > PROBE_MOST)
		wait = PROBE_MOST;
	if (out->backoff > PING_AFTER &&
	    engine->now - out->busy_at > LONG_SILENCE)
		wait = WF_NS_PER_S;
	out->probe_at = engine->now + wait;
}

static struct wf_udp_slot *oldest(struct wf_udp_out *out)
{
	return wf_container_of(out->flight.next, struct wf_udp_slot, link);
}

/* Nothing is heard of the packets in flight. The oldest is sent again, and its
 * ack will show what became of the others. */
static void probe(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	out->probe_at = WF_UDP_NEVER;
	if (wf_base_list_empty(&out->flight) ||
	    wf_udp_peer_overdue(engine, peer, out->busy_at))
		return;
	wf_udp_count(engine, probes, 1);
	if (out->backoff < 12)
		out->backoff++;
	if (out->backoff > PING_AFTER) {
		wf_udp_peer_ping(engine, peer, out->remote_cid);
	} else {
		wf_udp_path_again(out, oldest(out));
		wf_udp_pump_slot(engine, peer, oldest(out), true);
	}
	wf_udp_out_set_probe(engine, peer);
}

/* An ack that acknowledges nothing. If it answers a ping, the peer is back, and
 * the packets in flight did not arrive: the oldest is sent again. */
static void answered(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	if (out->backoff <= PING_AFTER)
		return;
	wf_udp_path_unheard(engine, peer);
	out->backoff = PING_AFTER - 1;
	out->probe_at = engine->now;
}

/* Those whose time has come are sent again like lost ones. */
static void retry_refused(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_list *pos, *tmp;

	out->rnr_at = WF_UDP_NEVER;
	wf_list_for_each (pos, tmp, &out->rnr) {
		struct wf_udp_slot *slot =
			wf_container_of(pos, struct wf_udp_slot, link);

		if (slot->due <= engine->now) {
			wf_base_list_unlink(&slot->link);
			slot->state = WF_UDP_SLOT_LOST;
			wf_base_list_add_tail(&out->lost, &slot->link);
		} else if (slot->due < out->rnr_at) {
			out->rnr_at = slot->due;
		}
	}
	wf_udp_peer_activate(engine, peer);
}

/* -- loss ------------------------------------------------------------------- */

static void take_for_lost(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer, struct wf_udp_slot *slot)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t cuts = out->cc.cuts;

	wf_base_list_unlink(&slot->link);
	slot->state = WF_UDP_SLOT_LOST;
	wf_base_list_add_tail(&out->lost, &slot->link);
	out->in_flight -= slot->cost;
	wf_udp_cc_lost(&out->cc, slot->sent_no, out->sent_no);
	wf_udp_count(engine, losses, 1);
	wf_udp_path_lost(engine, peer, slot);
	wf_udp_count(engine, cwnd_cuts, out->cc.cuts - cuts);
	/* RFC 8985, section 6.2, step 4: patience wears off after so many
	 * recoveries without a sign of reordering. */
	if (out->cc.cuts - out->reordered_cut > REO_LASTS) {
		out->reorders = false;
		out->reo_mult = 1;
		out->reordered_cut = out->cc.cuts;
	}
}

void wf_udp_out_reorders(struct wf_udp_out *out)
{
	out->reorders = true;
	out->reordered_cut = out->cc.cuts;
}

static uint64_t patience(const struct wf_udp_out *out)
{
	uint64_t rtt =
		out->cc.min_rtt == UINT64_MAX ? out->cc.srtt : out->cc.min_rtt;
	uint64_t most = out->cc.srtt > REO_MOST ? out->cc.srtt : REO_MOST;
	uint64_t wait = rtt / 4 * out->reo_mult;

	if (wait > most)
		wait = most;
	return wait < REO_LEAST ? REO_LEAST : wait;
}

static void find_lost(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t rtt =
		out->last_rtt > out->cc.srtt ? out->last_rtt : out->cc.srtt;

	out->reo_at = WF_UDP_NEVER;
	while (!wf_base_list_empty(&out->flight)) {
		struct wf_udp_slot *slot = oldest(out);
		uint64_t until = slot->sent_at + rtt + patience(out);

		if (slot->sent_no >= out->acked_no)
			break;
		if ((out->reorders ||
		     out->acked_no - slot->sent_no < PACKET_THRESHOLD) &&
		    engine->now < until) {
			out->reo_at = until;
			break;
		}
		take_for_lost(engine, peer, slot);
	}
	if (!wf_base_list_empty(&out->lost))
		wf_udp_peer_activate(engine, peer);
}

void wf_udp_out_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;

	if (out->state != WF_UDP_OUT_UP)
		return;
	if (out->reo_at <= engine->now)
		find_lost(engine, peer);
	if (out->size_at <= engine->now)
		wf_udp_path_tick(engine, peer);
	if (out->rnr_at <= engine->now)
		retry_refused(engine, peer);
	if (out->pace_at <= engine->now) {
		out->pace_at = WF_UDP_NEVER;
		wf_udp_peer_activate(engine, peer);
	}
	if (out->probe_at <= engine->now)
		probe(engine, peer);
}

/* The kernel had no room for it: this is no sign of congestion. */
void wf_udp_engine_unsent(struct wf_udp_engine *engine,
			  struct wf_udp_slot *slot)
{
	struct wf_udp_peer *peer = slot->peer;
	struct wf_udp_out *out = &peer->out;

	if (slot->state != WF_UDP_SLOT_FLIGHT)
		return;
	wf_base_list_unlink(&slot->link);
	slot->state = WF_UDP_SLOT_LOST;
	wf_base_list_add_tail(&out->lost, &slot->link);
	out->in_flight -= slot->cost;
	wf_udp_peer_activate(engine, peer);
}

/* -- acknowledgements ------------------------------------------------------- */

struct news {
	uint32_t ts; /* when what is acknowledged was sent, about */
	uint64_t bytes;
	uint64_t newest; /* of the sendings now known to have arrived */
};

static void slot_acked(struct wf_udp_engine *engine, struct wf_udp_out *out,
		       uint32_t seq, struct news *news)
{
	struct wf_udp_slot **at = &out->slots[seq % WF_UDP_WINDOW];
	struct wf_udp_slot *slot = *at;
	struct wf_udp_op *op;

	if (!slot)
		return;
	op = slot->op;
	wf_base_list_unlink(&slot->link);
	if (slot->state == WF_UDP_SLOT_FLIGHT)
		out->in_flight -= slot->cost;
	/* Sent once, and overtaken by one sent later: the path reorders. A
	 * packet that counted as lost and arrived after all shows the same. */
	if (slot->tries == 1 && (slot->sent_no < out->acked_no ||
				 slot->state != WF_UDP_SLOT_FLIGHT))
		wf_udp_out_reorders(out);
	/* If it was sent again, an earlier copy may have arrived: it says
	 * nothing about the order of arrival. */
	if (slot->sent_no > news->newest &&
	    (slot->tries == 1 ||
	     (int32_t)(news->ts - (uint32_t)(slot->sent_at / WF_NS_PER_US)) >=
		     0))
		news->newest = slot->sent_no;
	wf_udp_path_acked(out, slot);
	news->bytes += slot->cost;
	*at = NULL;
	wf_base_pool_put(&engine->slots, slot);
	if (op) {
		op->slots--;
		wf_udp_op_check(engine, op);
	}
}

static void sample(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		   uint32_t ts)
{
	struct wf_udp_out *out = &peer->out;
	uint32_t us = wf_udp_engine_us(engine) - ts;

	/* Our own clock, echoed by the peer: a value that cannot be is ignored. */
	if (us > 60000000)
		return;
	out->last_rtt = us ? us * WF_NS_PER_US : 500;
	wf_udp_cc_rtt(&out->cc, out->last_rtt, engine->now);
	wf_nic_gauge(&engine->counters->srtt_ns, out->cc.srtt);
	wf_nic_gauge(&engine->counters->cwnd_bytes, out->cc.cwnd);
}

static void take_bits(struct wf_udp_engine *engine, struct wf_udp_out *out,
		      uint32_t base, const uint64_t *bits, unsigned words,
		      struct news *news)
{
	for (unsigned w = 0; w < words; w++) {
		uint64_t word = bits[w];

		while (word) {
			uint32_t bit = (uint32_t)__builtin_ctzll(word);
			uint32_t seq = base + 1 + w * 64 + bit;

			word &= word - 1;
			if (seq - base < out->next - base)
				slot_acked(engine, out, seq, news);
		}
	}
}

/* After several timeouts: if most of what was in flight is gone, so was the path
 * (RFC 9002, section 7.6, persistent congestion); if not, the peer was only
 * slow to answer. */
static void check_congestion(struct wf_udp_engine *engine,
			     struct wf_udp_out *out, uint64_t flight)
{
	if (out->in_flight > flight / 2)
		return;
	wf_udp_cc_collapse(&out->cc);
	wf_udp_count(engine, cwnd_cuts, 1);
}

void wf_udp_out_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		    uint32_t base, const uint64_t *bits, unsigned words,
		    uint32_t ts, bool late)
{
	struct wf_udp_out *out = &peer->out;
	struct news news = { .ts = ts };
	uint64_t flight;
	bool silent;

	if (out->state != WF_UDP_OUT_UP)
		return;
	/* Overtaken by a later ack: contains nothing new. */
	if ((int32_t)(base - out->una) < 0)
		return;
	if (base - out->una > out->next - out->una) {
		wf_udp_count(engine, bad_field, 1);
		return;
	}
	for (; out->una != base; out->una++)
		slot_acked(engine, out, out->una, &news);
	take_bits(engine, out, base, bits, words, &news);
	if (!news.bytes) {
		answered(engine, peer);
		return;
	}
	silent = out->backoff >= COLLAPSE_AFTER;
	out->backoff = 0;
	out->busy_at = engine->now;
	/* A peer that computes, or that we do, is not a long way off. */
	if (!late && !engine->late)
		sample(engine, peer, ts);
	wf_udp_cc_acked(&out->cc, news.bytes, news.newest, out->sent_no,
			out->limited);
	if (news.newest > out->acked_no)
		out->acked_no = news.newest;
	flight = out->in_flight;
	find_lost(engine, peer);
	if (silent && flight)
		check_congestion(engine, out, flight);
	wf_udp_out_set_probe(engine, peer);
	if (!wf_base_list_empty(&out->ops) || !wf_base_list_empty(&out->lost))
		wf_udp_peer_activate(engine, peer);
}

/* -- refusals --------------------------------------------------------------- */

static uint64_t rnr_wait(struct wf_udp_engine *engine, unsigned refusals)
{
	uint64_t wait = RNR_FIRST << (refusals < 12 ? refusals : 12);

	if (wait > RNR_MOST)
		wait = RNR_MOST;
	/* Peers that were refused together need not come back together. */
	return wait / 2 + wf_udp_engine_random(engine) % wait;
}

void wf_udp_out_nack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     uint32_t seq, enum wf_nic_status status)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_slot *slot;
	struct wf_udp_op *op;
	uint8_t limit;

	if (out->state != WF_UDP_OUT_UP ||
	    seq - out->una >= out->next - out->una)
		return;
	slot = out->slots[seq % WF_UDP_WINDOW];
	if (!slot || slot->state != WF_UDP_SLOT_FLIGHT)
		return;
	op = slot->op;
	if (!op) {
		wf_udp_engine_unsent(engine, slot);
		return;
	}
	/* The peer is there and the packet arrived. */
	out->busy_at = engine->now;
	out->backoff = 0;
	if (slot->refusals < UINT8_MAX)
		slot->refusals++;
	limit = op->rnr_retry;
	if (status == WF_NIC_RNR &&
	    (limit >= WF_NIC_RNR_FOREVER || slot->refusals <= limit)) {
		wf_base_list_unlink(&slot->link);
		out->in_flight -= slot->cost;
		slot->state = WF_UDP_SLOT_RNR;
		slot->due = engine->now + rnr_wait(engine, slot->refusals);
		wf_base_list_add_tail(&out->rnr, &slot->link);
		if (slot->due < out->rnr_at)
			out->rnr_at = slot->due;
		wf_udp_out_set_probe(engine, peer);
		return;
	}
	/* The place in the sequence has to be filled all the same. */
	wf_udp_op_end(engine, op, status);
	wf_udp_engine_unsent(engine, slot);
}

void wf_udp_out_forget(struct wf_udp_op *op)
{
	struct wf_udp_out *out = &op->peer->out;

	for (uint32_t seq = out->una; op->slots && seq != out->next; seq++) {
		struct wf_udp_slot *slot = out->slots[seq % WF_UDP_WINDOW];

		if (slot && slot->op == op) {
			slot->op = NULL;
			op->slots--;
		}
	}
}
