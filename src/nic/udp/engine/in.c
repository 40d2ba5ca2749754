/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets off the wire. Everything is checked here before it is used: length,
 * protocol, checksum, connection, address; invalid packets are counted and
 * dropped. Then the receiving end of a connection: which packets have arrived,
 * and when to acknowledge them.
 */
#include <string.h>

#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

#define ACK_AFTER (10 * WF_NS_PER_US) /* a reply may carry it until then */
#define ACK_PACKETS 32u
#define REO_MULT_MOST 1024u
#define SENDERS_ROUND (100 * WF_NS_PER_MS)
#define RESETS_MOST 64u /* in each */
#define RESETS_EVERY (10 * WF_NS_PER_MS)

/* Largest header that has a checksum of its own. */
union header {
	struct wf_udp_common common;
	struct wf_udp_hello hello;
	struct wf_udp_data data;
	struct wf_udp_ack ack;
	struct wf_udp_note note;
	uint8_t bytes[sizeof(struct wf_udp_ack) + 8 * WF_UDP_ACK_WORDS];
};

void wf_udp_in_open(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		    uint64_t remote_cid, bool crc)
{
	wf_udp_in_close(engine, peer);
	peer->in = (struct wf_udp_in){
		.open = true,
		.round = engine->senders_round - 1,
		.crc = crc,
		.remote_cid = remote_cid,
		.ack_at = WF_UDP_NEVER,
		.highest = UINT32_MAX,
		.local = engine->here,
	};
	peer->in.cid = wf_udp_peer_new_cid(engine, peer);
}

void wf_udp_in_close(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	if (!peer->in.open)
		return;
	peer->in.open = false;
	peer->in.cid = 0;
	peer->in.ack_at = WF_UDP_NEVER;
	wf_base_list_del(&peer->acker);
	wf_udp_part_drop_all(engine, peer);
	/* Reads of the peer came that way. Ours do not end here: a peer that
	 * serves them may close this connection while it is quiet and open
	 * another; a peer that no longer serves them answers the other
	 * connection with a reset. */
	while (!wf_base_list_empty(&peer->served))
		wf_udp_op_end(engine,
			      wf_container_of(peer->served.next,
					      struct wf_udp_op, owner_link),
			      WF_NIC_ABORT);
}

/* -- which are here --------------------------------------------------------- */

static uint64_t *word_of(struct wf_udp_in *in, uint32_t seq)
{
	return &in->here[seq % WF_UDP_WINDOW / 64];
}

static bool is_here(struct wf_udp_in *in, uint32_t seq)
{
	return *word_of(in, seq) >> (seq % 64) & 1;
}

static void note_here(struct wf_udp_in *in, uint32_t seq)
{
	*word_of(in, seq) |= 1ull << (seq % 64);
	while (is_here(in, in->base)) {
		*word_of(in, in->base) &= ~(1ull << (in->base % 64));
		in->base++;
	}
}

static bool has_gap(const struct wf_udp_in *in)
{
	return in->highest + 1 != in->base;
}

/* 64 packets from @seq on, as a word. */
static uint64_t bits_from(const struct wf_udp_in *in, uint32_t seq)
{
	unsigned at = seq % WF_UDP_WINDOW / 64, shift = seq % 64;
	uint64_t low = in->here[at] >> shift;

	if (!shift)
		return low;
	return low | in->here[(at + 1) % WF_UDP_ACK_WORDS] << (64 - shift);
}

static void note_ts(const struct wf_udp_engine *engine, struct wf_udp_in *in,
		    uint32_t ts)
{
	in->ts = ts;
	in->ts_at = engine->now;
	in->late = engine->late;
}

/* The clock of the sender, as if the packet had come just now. */
static uint32_t echo(const struct wf_udp_engine *engine,
		     const struct wf_udp_in *in)
{
	return in->ts + (uint32_t)((engine->now - in->ts_at) / WF_NS_PER_US);
}

static void acked(struct wf_udp_peer *peer)
{
	peer->in.pending = 0;
	peer->in.ack_now = false;
	peer->in.ack_at = WF_UDP_NEVER;
	wf_base_list_del(&peer->acker);
}

bool wf_udp_in_fill_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			struct wf_udp_data *head)
{
	struct wf_udp_in *in = &peer->in;

	if (!in->open || !in->pending || has_gap(in))
		return false;
	head->ack_base = in->base;
	head->ack_ts = echo(engine, in);
	if (in->late)
		head->common.flags |= WF_UDP_DATA_ACK_LATE;
	head->ack_tag = (uint16_t)(in->remote_cid >> 16);
	acked(peer);
	return true;
}

/* Like the sender's clock: for answers other than acks. */
uint32_t wf_udp_in_echo(const struct wf_udp_engine *engine,
			const struct wf_udp_peer *peer)
{
	return echo(engine, &peer->in);
}

void wf_udp_in_send_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_in *in = &peer->in;
	union header h;
	unsigned words = 0;

	if (!in->open)
		return;
	memset(&h, 0, sizeof(h));
	h.ack.common.type = WF_UDP_ACK;
	h.ack.common.flags = in->late ? WF_UDP_ACK_LATE : 0;
	h.ack.common.dst_cid = in->remote_cid;
	h.ack.base = in->base;
	h.ack.ts = echo(engine, in);
	h.ack.rwnd = wf_udp_hello_rwnd(engine);
	h.ack.dups = in->dups;
	if (has_gap(in))
		words = (in->highest - in->base + 63) / 64;
	for (unsigned w = 0; w < words; w++) {
		uint64_t bits = bits_from(in, in->base + 1 + w * 64);

		memcpy(h.bytes + sizeof(h.ack) + (size_t)8 * w, &bits, 8);
	}
	h.ack.common.kind = (uint8_t)words;
	wf_udp_engine_answer(engine, &peer->addr, &in->local, &h.common,
			     sizeof(h.ack) + (size_t)8 * words);
	wf_udp_count(engine, acks_sent, 1);
	acked(peer);
}

static void plan_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     bool now)
{
	struct wf_udp_in *in = &peer->in;

	if (now || in->pending >= ACK_PACKETS) {
		in->ack_now = true;
		if (wf_base_list_empty(&peer->acker))
			wf_base_list_add_tail(&engine->ackers, &peer->acker);
	} else if (in->ack_at == WF_UDP_NEVER) {
		in->ack_at = engine->now + ACK_AFTER;
		wf_udp_peer_arm(engine, peer);
	}
}

void wf_udp_in_ack_again(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	peer->in.pending++;
	plan_ack(engine, peer, true);
}

/* -- refusals --------------------------------------------------------------- */

static void refuse(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		   uint32_t seq, enum wf_nic_status status)
{
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_NACK,
			    .kind = (uint8_t)status,
			    .dst_cid = peer->in.remote_cid },
		.seq = seq,
	};

	wf_udp_engine_answer(engine, &peer->addr, &peer->in.local, &note.common,
			     sizeof(note));
	if (status == WF_NIC_RNR)
		wf_udp_count(engine, rnr_sent, 1);
	else
		wf_udp_count(engine, nacks_sent, 1);
}

/* Limited in number: a flood from unknown senders must not cause as many answers. */
static void reset(struct wf_udp_engine *engine, const struct wf_addr *to,
		  uint64_t cid)
{
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_RESET, .dst_cid = cid },
	};

	if (engine->now - engine->reset_at > RESETS_EVERY) {
		engine->reset_at = engine->now;
		engine->resets = 0;
	}
	if (engine->resets++ >= RESETS_MOST)
		return;
	wf_udp_engine_answer(engine, to, &engine->here, &note.common,
			     sizeof(note));
	wf_udp_count(engine, resets_sent, 1);
}

/* Counts the peers that send data just now: they share the socket's room. */
static void note_sender(struct wf_udp_engine *engine, struct wf_udp_in *in)
{
	uint64_t since = engine->now - engine->senders_from;

	if (since > SENDERS_ROUND) {
		engine->senders_before =
			since > 2 * SENDERS_ROUND ? 0 : engine->senders;
		engine->senders = 0;
		engine->senders_round++;
		engine->senders_from = engine->now;
	}
	if (in->round == engine->senders_round)
		return;
	in->round = engine->senders_round;
	engine->senders++;
}

/* -- by type ---------------------------------------------------------------- */

/* Like place() of the port, if this part makes the packet whole. False: it does not.
 */
static bool take_part(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      const union header *h, const uint8_t *payload,
		      enum wf_nic_status *status)
{
	struct wf_udp_data head = h->data;
	struct wf_udp_part part;
	const uint8_t *bytes;
	int ret;

	memcpy(&part, h->bytes + sizeof(head), sizeof(part));
	if (!wf_udp_part_valid(&part, head.len)) {
		wf_udp_count(engine, bad_field, 1);
		return false;
	}
	ret = wf_udp_part_take(engine, peer, &head, &part, payload, &bytes);
	*status = WF_NIC_RNR;
	if (ret <= 0)
		return ret < 0;
	head.len = part.total;
	*status = engine->port->place(engine, peer, &head, bytes);
	return true;
}

static void receive_data(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 const union header *h, const uint8_t *payload)
{
	const struct wf_udp_data *head = &h->data;
	bool in_parts = head->common.flags & WF_UDP_DATA_PART;
	struct wf_udp_in *in = &peer->in;
	uint32_t ahead = head->seq - in->base;
	enum wf_nic_status status;

	note_sender(engine, in);
	if (head->common.flags & WF_UDP_DATA_ACKS &&
	    head->ack_tag == (uint16_t)(peer->out.cid >> 16))
		wf_udp_out_ack(engine, peer, head->ack_base, NULL, 0,
			       head->ack_ts,
			       head->common.flags & WF_UDP_DATA_ACK_LATE);
	if ((int32_t)ahead < 0 ||
	    (ahead < WF_UDP_WINDOW && is_here(in, head->seq))) {
		/* Of parts all are sent again, be only one lost. */
		if (!in_parts) {
			wf_udp_count(engine, duplicates, 1);
			in->dups++;
		}
		in->pending++;
		plan_ack(engine, peer, true);
		return;
	}
	if (ahead >= WF_UDP_WINDOW) {
		wf_udp_count(engine, beyond_window, 1);
		return;
	}
	if (!in_parts)
		status = engine->port->place(engine, peer, head, payload);
	else if (!take_part(engine, peer, h, payload, &status))
		return;
	if (status != WF_NIC_OK) {
		refuse(engine, peer, head->seq, status);
		return;
	}
	if (wf_unlikely(peer->whole_count))
		wf_udp_part_drop(engine, peer, head->seq);
	if ((int32_t)(head->seq - in->highest) > 0)
		in->highest = head->seq;
	else
		wf_udp_count(engine, reordered, 1);
	note_here(in, head->seq);
	in->pending++;
	note_ts(engine, in, head->ts);
	plan_ack(engine, peer,
		 head->common.flags & WF_UDP_DATA_ACK_NOW || has_gap(in));
}

static void receive_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			const union header *h)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t bits[WF_UDP_ACK_WORDS];
	uint16_t dups = (uint16_t)(h->ack.dups - out->dups);

	wf_udp_count(engine, acks_received, 1);
	memcpy(bits, h->bytes + sizeof(h->ack), (size_t)8 * h->ack.common.kind);
	if (h->ack.rwnd >= 4096)
		out->rwnd = h->ack.rwnd;
	/* A retransmitted packet had arrived after all: wait longer. */
	if (dups && dups < INT16_MAX) {
		out->dups = h->ack.dups;
		if (out->reo_mult < REO_MULT_MOST)
			out->reo_mult *= 2;
		out->reordered_cut = out->cc.cuts;
	}
	wf_udp_out_ack(engine, peer, h->ack.base, bits, h->ack.common.kind,
		       h->ack.ts, h->common.flags & WF_UDP_ACK_LATE);
}

static void receive_nack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 const struct wf_udp_note *note)
{
	uint8_t status = note->common.kind;

	if (status == WF_NIC_OK || status >= WF_NIC_STATUSES) {
		wf_udp_count(engine, bad_field, 1);
		return;
	}
	if (status == WF_NIC_RNR)
		wf_udp_count(engine, rnr_received, 1);
	else
		wf_udp_count(engine, nacks_received, 1);
	wf_udp_out_nack(engine, peer, note->seq, status);
}

/* The peer does not know the connection that we use. Valid if it names it. Only
 * that connection is over: a process that has just started refuses what was
 * meant for its predecessor, and has connected to us already. */
static void receive_reset(struct wf_udp_engine *engine,
			  const struct wf_addr *from, uint64_t cid)
{
	struct wf_udp_peer *peer = wf_udp_peer_find(engine, from);

	if (peer && cid && peer->out.state == WF_UDP_OUT_UP &&
	    peer->out.remote_cid == cid) {
		wf_udp_peer_refused(engine, peer);
	} else if (peer && peer->in.open && peer->in.remote_cid == cid) {
		wf_udp_in_close(engine, peer);
	} else {
		wf_udp_count(engine, bad_cid, 1);
	}
}

/* A peer that closes the receiving end reports what it received: the ack itself
 * may have been lost, and there will be no other. */
static void receive_close(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer,
			  const struct wf_udp_note *note)
{
	uint64_t cid = note->common.dst_cid;

	if (peer->out.cid == cid && peer->out.state == WF_UDP_OUT_UP) {
		/* The other direction has a goodbye of its own. */
		wf_udp_out_ack(engine, peer, note->seq, NULL, 0, note->ts,
			       true);
		wf_udp_peer_refused(engine, peer);
	} else if (peer->in.cid == cid) {
		wf_udp_in_close(engine, peer);
	}
}

static void answer_probe(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 uint32_t size)
{
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_PROBED,
			    .dst_cid = peer->in.remote_cid },
		.seq = size,
	};

	wf_udp_engine_answer(engine, &peer->addr, &peer->in.local, &note.common,
			     sizeof(note));
}

/* A packet of a connection: @peer has its id and its address. */
static void dispatch(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     const union header *h, const uint8_t *payload)
{
	bool to_in = peer->in.cid == h->common.dst_cid;

	wf_udp_peer_heard(engine, peer);
	switch (h->common.type) {
	case WF_UDP_DATA:
		if (to_in)
			receive_data(engine, peer, h, payload);
		break;
	case WF_UDP_PROBE:
		if (to_in)
			answer_probe(engine, peer, h->note.seq);
		break;
	case WF_UDP_PROBED:
		if (!to_in)
			wf_udp_path_probed(engine, peer, h->note.seq);
		break;
	case WF_UDP_PING:
		if (to_in) {
			note_ts(engine, &peer->in, h->note.ts);
			plan_ack(engine, peer, true);
		} else if (peer->out.state == WF_UDP_OUT_UP) {
			wf_udp_peer_ping(engine, peer, peer->out.remote_cid);
		}
		break;
	case WF_UDP_ACK:
		if (!to_in)
			receive_ack(engine, peer, h);
		break;
	case WF_UDP_NACK:
		if (!to_in)
			receive_nack(engine, peer, &h->note);
		break;
	case WF_UDP_CLOSE:
		receive_close(engine, peer, &h->note);
		break;
	}
	wf_udp_peer_arm(engine, peer);
}

/* -- checks ----------------------------------------------------------------- */

/* Bytes of the header, 0: impossible lengths. */
static size_t header_len(const struct wf_udp_common *common, size_t len)
{
	size_t head;
	switch (common->type) {
	case WF_UDP_INIT:
	case WF_UDP_COOKIE:
	case WF_UDP_OPEN:
	case WF_UDP_ACCEPT:
		return len == sizeof(struct wf_udp_hello) ? len : 0;
	case WF_UDP_RESET:
	case WF_UDP_CLOSE:
	case WF_UDP_NACK:
	case WF_UDP_PING:
	case WF_UDP_PROBED:
		return len == sizeof(struct wf_udp_note) ? len : 0;
	case WF_UDP_PROBE:
		return len >= sizeof(struct wf_udp_note) ?
			       sizeof(struct wf_udp_note) :
			       0;
	case WF_UDP_ACK:
		return common->kind <= WF_UDP_ACK_WORDS &&
				       len == sizeof(struct wf_udp_ack) +
						       (size_t)8 *
							       common->kind ?
			       len :
			       0;
	case WF_UDP_DATA:
		head = sizeof(struct wf_udp_data);
		if (common->flags & WF_UDP_DATA_PART)
			head += sizeof(struct wf_udp_part);
		return len >= head ? head : 0;
	}
	return 0;
}

static void stranger(struct wf_udp_engine *engine, const struct wf_addr *from,
		     const union header *h)
{
	wf_udp_count(engine, bad_cid, 1);
	if (h->common.type == WF_UDP_DATA || h->common.type == WF_UDP_PING)
		reset(engine, from, h->common.dst_cid);
}

void wf_udp_engine_receive(struct wf_udp_engine *engine, uint64_t now,
			   const struct wf_addr *from,
			   const struct wf_addr *here, const uint8_t *bytes,
			   size_t len)
{
	struct wf_udp_peer *peer = NULL;
	size_t head, payload;
	union header h;
	uint32_t crc;

	engine->now = now;
	if (wf_unlikely(engine->set.any))
		engine->here = *here;
	if (len < sizeof(struct wf_udp_common)) {
		wf_udp_count(engine, bad_short, 1);
		return;
	}
	memcpy(&h, bytes, sizeof(struct wf_udp_common));
	if (h.common.magic != WF_UDP_MAGIC || !h.common.type ||
	    h.common.type >= WF_UDP_TYPES) {
		wf_udp_count(engine, bad_magic, 1);
		return;
	}
	head = header_len(&h.common, len);
	if (head)
		memcpy(&h, bytes, head);
	payload = len - head;
	if (!head || (h.common.type == WF_UDP_DATA && h.data.len != payload) ||
	    (h.common.type == WF_UDP_PROBE && h.note.seq != len)) {
		wf_udp_count(engine, bad_short, 1);
		return;
	}
	if (h.common.type >= WF_UDP_CLOSE)
		peer = wf_udp_peer_by_cid(engine, h.common.dst_cid);
	crc = wf_udp_sum_head(&h, head);
	if (peer && h.common.type == WF_UDP_DATA && peer->in.crc)
		crc = wf_udp_sum_crc(crc, bytes + head, payload);
	if (crc != h.common.crc &&
	    (peer || h.common.type != WF_UDP_DATA ||
	     wf_udp_sum_crc(crc, bytes + head, payload) != h.common.crc)) {
		wf_udp_count(engine, bad_crc, 1);
		return;
	}
	if (h.common.type <= WF_UDP_ACCEPT)
		wf_udp_hello_receive(engine, from, &h.hello);
	else if (h.common.type == WF_UDP_RESET)
		receive_reset(engine, from, h.common.dst_cid);
	else if (!peer)
		stranger(engine, from, &h);
	else if (!wf_base_addr_equal(&peer->addr, from))
		wf_udp_count(engine, bad_addr, 1);
	else
		dispatch(engine, peer, &h, bytes + head);
}
