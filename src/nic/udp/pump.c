/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From requests to packets: what may be sent now, in which order, and the bytes
 * of it. Lost packets go first, then ops in turn, a few packets each, so that
 * a small message never waits for all of a large one.
 */
#include <errno.h>
#include <string.h>

#include "nic/udp/dev.h"
#include "nic/udp/sum.h"

#define OVERHEAD 192u  /* what a packet costs beside its payload */
#define OP_QUANTUM 16u /* packets of one op before the next has its turn */
#define COPY_MOST                                                              \
	(WF_UDP_TX_ROOM - (unsigned)sizeof(struct wf_udp_data) -               \
	 (unsigned)sizeof(struct wf_udp_part))

/* Where the bytes of a packet lie. Checked each time it is sent: memory may
 * have been deregistered since. Pieces, or -1: it may not be read any more. */
static int locate(struct wf_udp_dev *dev, const struct wf_udp_op *op,
		  uint32_t off, uint32_t len, struct iovec iov[2])
{
	int n = 0;

	if (!len)
		return 0;
	if (op->req.inlined) {
		iov[0] =
			(struct iovec){ (void *)(uintptr_t)(op->req.data + off),
					len };
		return 1;
	}
	if (op->kind == WF_UDP_OP_SERVE) {
		if (!wf_nic_mr_remote(&dev->nic.mrs, op->req.rkey,
				      op->req.raddr + off, len,
				      WF_NIC_REMOTE_READ))
			return -1;
		iov[0] = (struct iovec){
			(void *)(uintptr_t)(op->req.raddr + off), len
		};
		return 1;
	}
	for (unsigned i = 0; i < op->req.sges && len; i++) {
		const struct wf_nic_local *sge = &op->req.sge[i];
		uint32_t take;

		if (off >= sge->len) {
			off -= sge->len;
			continue;
		}
		take = sge->len - off < len ? sge->len - off : len;
		if (!wf_nic_mr_local(&dev->nic.mrs, sge->lkey, sge->addr + off,
				     take, 0))
			return -1;
		iov[n++] = (struct iovec){ (void *)(uintptr_t)(sge->addr + off),
					   take };
		len -= take;
		off = 0;
	}
	return n;
}

static void fill_op(struct wf_udp_data *head, const struct wf_udp_op *op,
		    const struct wf_udp_slot *slot)
{
	head->dst_qpn = op->req.dst_qpn;
	head->src_qpn = op->src_qpn;
	head->qkey = op->req.qkey;
	switch (slot->data_op) {
	case WF_UDP_SEND:
		head->imm = op->req.imm;
		if (op->req.has_imm)
			head->common.flags |= WF_UDP_DATA_IMM;
		break;
	case WF_UDP_WRITE:
	case WF_UDP_WRITE_IMM:
		head->addr = op->req.raddr + slot->off;
		head->key = op->req.rkey;
		head->imm = op->req.imm;
		head->arg = op->req.len;
		break;
	case WF_UDP_READ:
		head->addr = op->req.raddr;
		head->key = op->req.rkey;
		head->arg = op->req.len;
		head->imm = op->read_id;
		break;
	case WF_UDP_READ_DATA:
		head->addr = slot->off;
		head->key = op->read_id;
		head->arg = op->status;
		break;
	}
}

static uint32_t sum(const struct wf_udp_data *head,
		    const struct wf_udp_part *part, const struct iovec *iov,
		    int n)
{
	uint32_t crc = wf_udp_sum_crc(0, head, 4);

	crc = wf_udp_sum_crc(crc, &head->common.dst_cid, sizeof(*head) - 8);
	if (part)
		crc = wf_udp_sum_crc(crc, part, sizeof(*part));
	for (int i = 0; i < n; i++)
		crc = wf_udp_sum_crc(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

static void *place(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		   struct wf_udp_slot *slot, size_t total)
{
	bool alone = peer->out.no_gso;
	void *room;

	if (wf_unlikely(dev->sock.any))
		dev->sock.from = peer->local;
	room = wf_udp_sock_packet(&dev->sock, &peer->addr, total, alone, slot);
	if (room)
		return room;
	if (wf_udp_dev_flush(dev))
		return NULL;
	return wf_udp_sock_packet(&dev->sock, &peer->addr, total, alone, slot);
}

/* Puts the packet into the batch, or @len bytes of it if there is a @part. */
static void build(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		  struct wf_udp_slot *slot, bool ack_now, void *room,
		  const struct wf_udp_part *part, uint16_t len,
		  const struct iovec *iov, int pieces)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_data head = {
		.common = { .magic = WF_UDP_MAGIC,
			    .type = WF_UDP_DATA,
			    .flags = ack_now ? WF_UDP_DATA_ACK_NOW : 0,
			    .kind = slot->data_op,
			    .dst_cid = out->remote_cid },
		.seq = slot->seq,
		.ts = wf_udp_dev_us(dev),
	};
	uint8_t *at = room;

	if (slot->op)
		fill_op(&head, slot->op, slot);
	if (wf_udp_in_fill_ack(dev, peer, &head))
		head.common.flags |= WF_UDP_DATA_ACKS;
	head.len = len;
	if (part)
		head.common.flags |= WF_UDP_DATA_PART;
	head.common.crc = sum(&head, part, iov, out->crc ? pieces : 0);
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	if (part) {
		memcpy(at, part, sizeof(*part));
		at += sizeof(*part);
	}
	if (len <= COPY_MOST) {
		for (int i = 0; i < pieces; i++) {
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
			at += iov[i].iov_len;
		}
		pieces = 0;
	}
	wf_udp_sock_piece(&dev->sock, room, (size_t)(at - (uint8_t *)room));
	for (int i = 0; i < pieces; i++)
		wf_udp_sock_piece(&dev->sock, iov[i].iov_base, iov[i].iov_len);
}

static void note_sent(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      struct wf_udp_slot *slot)
{
	struct wf_udp_out *out = &peer->out;

	if (slot->tries) {
		wf_udp_count(dev, retransmits, 1);
		wf_udp_count(dev, retransmit_bytes, slot->len);
	}
	if (slot->tries < UINT8_MAX)
		slot->tries++;
	if (slot->tries > 1 && slot->state == WF_UDP_SLOT_FLIGHT)
		out->in_flight -= slot->cost; /* a probe */
	/* A probe is not the beginning of anything. */
	if (wf_base_list_empty(&out->flight))
		out->busy_at = dev->now;
	wf_base_list_unlink(&slot->link);
	wf_base_list_add_tail(&out->flight, &slot->link);
	slot->state = WF_UDP_SLOT_FLIGHT;
	slot->sent_at = dev->now;
	slot->sent_no = ++out->sent_no;
	out->in_flight += slot->cost;
	wf_udp_cc_sent(&out->cc, slot->cost, dev->now);
}

static void leave_list(struct wf_udp_op *op)
{
	if (op->in_list)
		wf_base_list_unlink(&op->link);
	op->in_list = false;
}

/* The memory that a peer reads is no longer registered: this packet says so,
 * and no other is made. */
static int stop_serving(struct wf_udp_slot *slot)
{
	slot->op->status = WF_NIC_REM_ADDR;
	slot->op->made = true;
	slot->len = 0;
	leave_list(slot->op);
	return 0;
}

/* It was made for a wider path, or is a message that has to be one packet. */
static int send_parts(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      struct wf_udp_slot *slot, bool ack_now)
{
	struct wf_udp_part part = { .off = 0, .total = slot->len };
	uint32_t most = (peer->out.seg - (uint32_t)sizeof(part)) /
			WF_UDP_PART_UNIT * WF_UDP_PART_UNIT;

	for (uint32_t off = 0; off < slot->len; off += most) {
		uint32_t left = slot->len - off;
		uint16_t len = (uint16_t)(left < most ? left : most);
		struct iovec iov[2];
		int pieces = locate(dev, slot->op, slot->off + off, len, iov);
		void *room =
			place(dev, peer, slot,
			      sizeof(struct wf_udp_data) + sizeof(part) + len);

		if (!room || pieces < 0)
			return -EAGAIN;
		part.off = (uint16_t)off;
		build(dev, peer, slot, ack_now, room, &part, len, iov, pieces);
	}
	return 0;
}

int wf_udp_pump_slot(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		     struct wf_udp_slot *slot, bool ack_now)
{
	struct iovec iov[2];
	int pieces = 0;
	void *room;

	if (slot->op) {
		pieces = locate(dev, slot->op, slot->off, slot->len, iov);
		if (pieces < 0 && slot->op->kind == WF_UDP_OP_SERVE)
			pieces = stop_serving(slot);
		else if (pieces < 0)
			wf_udp_work_end(dev, slot->op, WF_NIC_BAD_LKEY);
	}
	if (!slot->op) {
		slot->data_op = WF_UDP_FILLER;
		slot->len = 0;
		pieces = 0;
	}
	if (slot->len > peer->out.seg) {
		if (send_parts(dev, peer, slot, ack_now))
			return -EAGAIN;
	} else {
		room = place(dev, peer, slot,
			     sizeof(struct wf_udp_data) + slot->len);
		if (!room)
			return -EAGAIN;
		build(dev, peer, slot, ack_now, room, NULL, slot->len, iov,
		      pieces);
	}
	note_sent(dev, peer, slot);
	return 0;
}

/* -- new packets ------------------------------------------------------------ */

static struct wf_udp_op *current(struct wf_udp_out *out)
{
	return wf_container_of(out->ops.next, struct wf_udp_op, link);
}

/* What the next packet of @op is. False: not before the others are acked. */
static bool shape(const struct wf_udp_out *out, struct wf_udp_op *op,
		  struct wf_udp_slot *slot)
{
	uint32_t left = op->req.len - op->next;

	slot->off = op->next;
	switch (op->kind) {
	case WF_UDP_OP_SEND:
		slot->data_op = WF_UDP_SEND;
		slot->len = (uint16_t)op->req.len;
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
		if (op->req.has_imm && left <= out->seg) {
			if (op->slots)
				return false;
			slot->data_op = WF_UDP_WRITE_IMM;
		}
		break;
	}
	op->next += slot->len;
	op->made = op->next == op->req.len;
	return true;
}

/* A slot for the next packet of the next op. NULL: none. */
static struct wf_udp_slot *make(struct wf_udp_dev *dev,
				struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_slot *slot;
	struct wf_udp_op *op;

	if (wf_base_list_empty(&out->ops) ||
	    out->next - out->una >= WF_UDP_WINDOW)
		return NULL;
	slot = wf_base_pool_get(&dev->slots);
	if (!slot)
		return NULL;
	op = current(out);
	if (!shape(out, op, slot)) {
		/* Comes back when they are: wf_udp_work_check(). */
		wf_base_pool_put(&dev->slots, slot);
		leave_list(op);
		return wf_base_list_empty(&out->ops) ? NULL : make(dev, peer);
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
			peer->ping_at = dev->now + WF_NS_PER_S;
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

/* Whether the receiver should answer at once: a quarter of the window is out
 * since it was last asked; or nobody was asked and this is the last packet for
 * now (the next does not fit), a repeated one, or the end of something large.
 */
static bool ask(struct wf_udp_out *out, const struct wf_udp_slot *slot,
		uint64_t limit)
{
	bool last = slot->op && slot->op->made && slot->op->req.len > out->seg;

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
static bool may_send(struct wf_udp_dev *dev, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	uint64_t limit = window(out), at;

	if (out->in_flight && out->in_flight + out->seg > limit) {
		if (limit == out->cc.cwnd)
			out->limited = true;
		return false;
	}
	at = wf_udp_cc_pace(&out->cc, dev->now);
	if (at > dev->now) {
		out->pace_at = at;
		return false;
	}
	return true;
}

/* Nothing was made although something could have been: no memory. Nobody else
 * would come back to it. */
static bool starved(const struct wf_udp_out *out)
{
	return !wf_base_list_empty(&out->ops) &&
	       out->next - out->una < WF_UDP_WINDOW;
}

void wf_udp_pump(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		 unsigned quantum)
{
	struct wf_udp_out *out = &peer->out;
	unsigned left = quantum;

	wf_base_list_del(&peer->active);
	if (out->state != WF_UDP_OUT_UP)
		return;
	while (may_send(dev, peer)) {
		struct wf_udp_slot *slot;

		if (!left--) {
			wf_udp_peer_activate(dev, peer);
			break;
		}
		if (!wf_base_list_empty(&out->lost))
			slot = wf_container_of(out->lost.next,
					       struct wf_udp_slot, link);
		else
			slot = make(dev, peer);
		if (!slot) {
			if (out->in_flight < window(out) / 2)
				out->limited = false;
			if (starved(out)) {
				wf_udp_dev_later(dev);
				wf_udp_peer_activate(dev, peer);
			}
			break;
		}
		if (wf_udp_pump_slot(dev, peer, slot,
				     ask(out, slot, window(out)))) {
			wf_udp_peer_activate(dev, peer);
			break;
		}
	}
	wf_udp_out_set_probe(dev, peer);
	wf_udp_peer_arm(dev, peer);
}
