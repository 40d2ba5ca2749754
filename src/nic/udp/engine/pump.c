/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From requests to packets: what may be sent now, in which order, and the bytes
 * of it. Lost packets go first, then ops in turn, a few packets each, so that
 * a small message never waits for all of a large one.
 */
#include <errno.h>
#include <string.h>

#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

#define OVERHEAD 192u  /* what a packet costs beside its payload */
#define OP_QUANTUM 16u /* packets of one op before the next has its turn */

static uint32_t sum(const struct wf_udp_data *head,
		    const struct wf_udp_part *part, const struct iovec *iov,
		    int n)
{
	uint32_t crc = wf_udp_sum_head(head, sizeof(*head));

	if (part)
		crc = wf_udp_sum_crc(crc, part, sizeof(*part));
	for (int i = 0; i < n; i++)
		crc = wf_udp_sum_crc(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

/* Sends the packet, or the @len bytes of it that @part names. -EFAULT: they may
 * not be read any more. */
static int put(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
	       struct wf_udp_slot *slot, bool ack_now,
	       const struct wf_udp_part *part, uint16_t len)
{
	struct wf_udp_out *out = &peer->out;
	struct {
		struct wf_udp_data data;
		struct wf_udp_part part;
	} head;
	struct iovec iov[2];
	struct wf_udp_packet packet = {
		.to = &peer->addr,
		.from = &peer->local,
		.head = &head,
		.head_len = sizeof(head.data),
		.len = len,
		.iov = iov,
		.alone = out->no_gso,
		.slot = slot,
	};
	int pieces = 0;

	head.data = (struct wf_udp_data){
		.common = { .magic = WF_UDP_MAGIC,
			    .type = WF_UDP_DATA,
			    .flags = ack_now ? WF_UDP_DATA_ACK_NOW : 0,
			    .kind = slot->data_op,
			    .dst_cid = out->remote_cid },
		.seq = slot->seq,
		.ts = wf_udp_engine_us(engine),
		.len = len,
	};
	if (slot->op)
		pieces = engine->port->fetch(engine, slot,
					     slot->off + (part ? part->off : 0),
					     len, &head.data, iov);
	if (pieces < 0)
		return -EFAULT;
	if (wf_udp_in_fill_ack(engine, peer, &head.data))
		head.data.common.flags |= WF_UDP_DATA_ACKS;
	if (part) {
		head.data.common.flags |= WF_UDP_DATA_PART;
		head.part = *part;
		packet.head_len = sizeof(head);
	}
	packet.pieces = (uint8_t)pieces;
	head.data.common.crc =
		sum(&head.data, part, iov, out->crc ? pieces : 0);
	if (!engine->port->send(engine, &packet))
		return 0;
	if (head.data.common.flags & WF_UDP_DATA_ACKS)
		wf_udp_in_ack_again(engine, peer);
	return -EAGAIN;
}

static void note_sent(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      struct wf_udp_slot *slot)
{
	struct wf_udp_out *out = &peer->out;

	if (slot->tries) {
		wf_udp_count(engine, retransmits, 1);
		wf_udp_count(engine, retransmit_bytes, slot->len);
	}
	if (slot->tries < UINT8_MAX)
		slot->tries++;
	if (slot->tries > 1 && slot->state == WF_UDP_SLOT_FLIGHT)
		out->in_flight -= slot->cost; /* a probe */
	/* A probe is not the beginning of anything. */
	if (wf_base_list_empty(&out->flight))
		out->busy_at = engine->now;
	wf_base_list_unlink(&slot->link);
	wf_base_list_add_tail(&out->flight, &slot->link);
	slot->state = WF_UDP_SLOT_FLIGHT;
	slot->sent_at = engine->now;
	slot->sent_no = ++out->sent_no;
	out->in_flight += slot->cost;
	wf_udp_cc_sent(&out->cc, slot->cost, engine->now);
}

static void leave_list(struct wf_udp_op *op)
{
	if (op->in_list)
		wf_base_list_unlink(&op->link);
	op->in_list = false;
}

/* Sends a packet in parts. It was made for a path with larger packets, or is a
 * message that must be one packet. */
static int put_parts(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     struct wf_udp_slot *slot, bool ack_now)
{
	struct wf_udp_part part = { .off = 0, .total = slot->len };
	uint32_t most = (peer->out.seg - (uint32_t)sizeof(part)) /
			WF_UDP_PART_UNIT * WF_UDP_PART_UNIT;

	for (uint32_t off = 0; off < slot->len; off += most) {
		uint32_t left = slot->len - off;
		int ret;

		part.off = (uint16_t)off;
		ret = put(engine, peer, slot, ack_now, &part,
			  (uint16_t)(left < most ? left : most));
		if (ret)
			return ret;
	}
	return 0;
}

static inline int put_slot(struct wf_udp_engine *engine,
			   struct wf_udp_peer *peer, struct wf_udp_slot *slot,
			   bool ack_now)
{
	if (!slot->op) {
		slot->data_op = WF_UDP_FILLER;
		slot->len = 0;
	}
	if (slot->len > peer->out.seg)
		return put_parts(engine, peer, slot, ack_now);
	return put(engine, peer, slot, ack_now, NULL, slot->len);
}

/* Memory is no longer registered. For a peer that reads it, this packet says
 * so, and no other is made; a request of ours ends. */
static void lose_memory(struct wf_udp_engine *engine, struct wf_udp_slot *slot)
{
	struct wf_udp_op *op = slot->op;

	if (op->kind != WF_UDP_OP_SERVE) {
		wf_udp_op_end(engine, op, WF_NIC_BAD_LKEY);
		return;
	}
	op->status = WF_NIC_REM_ADDR;
	op->made = true;
	slot->len = 0;
	leave_list(op);
}

int wf_udp_pump_slot(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     struct wf_udp_slot *slot, bool ack_now)
{
	int ret = put_slot(engine, peer, slot, ack_now);

	if (wf_unlikely(ret == -EFAULT)) {
		lose_memory(engine, slot);
		ret = put_slot(engine, peer, slot, ack_now);
	}
	if (!ret)
		note_sent(engine, peer, slot);
	return ret;
}

/* -- new packets ------------------------------------------------------------ */

static struct wf_udp_op *current(struct wf_udp_out *out)
{
	return wf_container_of(out->ops.next, struct wf_udp_op, link);
}

/* The next packet of @op. False: not before the others are acked. */
static bool shape(const struct wf_udp_out *out, struct wf_udp_op *op,
		  struct wf_udp_slot *slot)
{
	uint32_t left = op->len - op->next;

	slot->off = op->next;
	switch (op->kind) {
	case WF_UDP_OP_SEND:
		slot->data_op = WF_UDP_SEND;
		slot->len = (uint16_t)op->len;
		break;
	case WF_UDP_OP_READ:
		slot->data_op = WF_UDP_READ;
		slot->len = 0;
		op->made = true;
		return true;
	case WF_UDP_OP_SERVE:
		slot->data_op = WF_UDP_READ_DATA;
		slot->len = (uint16_t)(left < out->seg ? left : out->seg);
		break;
	case WF_UDP_OP_WRITE:
		slot->data_op = WF_UDP_WRITE;
		slot->len = (uint16_t)(left < out->seg ? left : out->seg);
		/* Packets overtake each other: the immediate data of several
		 * goes when all but the last have arrived. */
		if (op->has_imm && left <= out->seg) {
			if (op->slots)
				return false;
			slot->data_op = WF_UDP_WRITE_IMM;
		}
		break;
	}
	op->next += slot->len;
	op->made = op->next == op->len;
	return true;
}

/* A slot for the next packet of the next op. NULL: none. */
static struct wf_udp_slot *make(struct wf_udp_engine *engine,
				struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_slot *slot;
	struct wf_udp_op *op;

	if (wf_base_list_empty(&out->ops) ||
	    out->next - out->una >= WF_UDP_WINDOW)
		return NULL;
	slot = wf_base_pool_get(&engine->slots);
	if (!slot)
		return NULL;
	op = current(out);
	if (!shape(out, op, slot)) {
		/* Comes back when they are: wf_udp_op_check(). */
		wf_base_pool_put(&engine->slots, slot);
		leave_list(op);
		return wf_base_list_empty(&out->ops) ? NULL :
						       make(engine, peer);
	}
	slot->op = op;
	slot->peer = peer;
	slot->seq = out->next++;
	slot->cost = slot->len + OVERHEAD;
	slot->state = WF_UDP_SLOT_LOST; /* until it is sent */
	slot->tries = 0;
	slot->refusals = 0;
	out->slots[slot->seq % WF_UDP_WINDOW] = slot;
	wf_base_list_add_tail(&out->lost, &slot->link);
	op->slots++;
	if (op->made) {
		leave_list(op);
		if (op->kind == WF_UDP_OP_READ) {
			wf_base_list_add_tail(&peer->reads, &op->link);
			op->in_list = true;
			peer->ping_at = engine->now + WF_NS_PER_S;
		}
	} else if (op->next / out->seg % OP_QUANTUM == 0) {
		wf_base_list_unlink(&op->link);
		wf_base_list_add_tail(&out->ops, &op->link);
	}
	return slot;
}

static uint64_t window(const struct wf_udp_out *out)
{
	return out->cc.cwnd < out->rwnd ? out->cc.cwnd : out->rwnd;
}

/* Whether the receiver should answer at once: a quarter of the window was sent
 * since the last request for an answer; or there was no such request and this
 * is the last packet for now (the next does not fit), a retransmission, or the
 * end of something large. */
static bool ask(struct wf_udp_out *out, const struct wf_udp_slot *slot,
		uint64_t limit)
{
	bool last = slot->op && slot->op->made && slot->op->len > out->seg;

	out->unasked += slot->cost;
	if (out->unasked < limit / 4 && !last &&
	    (out->asked_no > out->acked_no ||
	     (out->in_flight + slot->cost + out->seg <= limit && !slot->tries)))
		return false;
	out->unasked = 0;
	out->asked_no = out->sent_no + 1;
	return true;
}

/* True: another packet may go now. */
static bool may_send(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t limit = window(out), at;

	if (out->in_flight && out->in_flight + out->seg > limit) {
		if (limit == out->cc.cwnd)
			out->limited = true;
		return false;
	}
	at = wf_udp_cc_pace(&out->cc, engine->now);
	if (at > engine->now) {
		out->pace_at = at;
		return false;
	}
	return true;
}

/* Nothing was made although something could have been: no memory. Nothing else
 * would trigger another try. */
static bool starved(const struct wf_udp_out *out)
{
	return !wf_base_list_empty(&out->ops) &&
	       out->next - out->una < WF_UDP_WINDOW;
}

void wf_udp_pump(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		 unsigned quantum)
{
	struct wf_udp_out *out = &peer->out;
	unsigned left = quantum;

	wf_base_list_del(&peer->active);
	if (out->state != WF_UDP_OUT_UP)
		return;
	while (may_send(engine, peer)) {
		struct wf_udp_slot *slot;

		if (!left--) {
			wf_udp_peer_activate(engine, peer);
			break;
		}
		if (!wf_base_list_empty(&out->lost))
			slot = wf_container_of(out->lost.next,
					       struct wf_udp_slot, link);
		else
			slot = make(engine, peer);
		if (!slot) {
			if (out->in_flight < window(out) / 2)
				out->limited = false;
			if (starved(out)) {
				wf_udp_engine_later(engine);
				wf_udp_peer_activate(engine, peer);
			}
			break;
		}
		if (wf_udp_pump_slot(engine, peer, slot,
				     ask(out, slot, window(out)))) {
			wf_udp_peer_activate(engine, peer);
			break;
		}
	}
	wf_udp_out_set_probe(engine, peer);
	wf_udp_peer_arm(engine, peer);
}
