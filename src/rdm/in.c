/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets from the device. A packet that cannot be processed because there is
 * no memory, or no room for its completion, stays in its buffer; when all
 * buffers are used, the device tells senders to wait. Only invalid packets are
 * dropped.
 */
#include "rdm/in.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "os/memory.h"
#include "rdm/control.h"
#include "rdm/crowd.h"
#include "rdm/peer.h"
#include "rdm/place.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/trace.h"
#include "wire/packet.h"

static void give(struct wf_rdm_ep *ep, struct wf_rdm_buf *buf)
{
	const struct wf_nic_sge sge = { buf->memory, ep->max_recv,
					ep->bufs_mr.lkey };

	/* There are as many places as buffers. It fails when the queue pair
	 * is being closed. */
	(void)!wf_nic_post_recv(ep->qp, (uint64_t)(buf - ep->bufs), &sge, true);
	ep->unrung = true;
}

int wf_rdm_in_open(struct wf_rdm_ep *ep)
{
	size_t stride = ((size_t)ep->max_recv + 63) / 64 * 64;
	void *memory = NULL;
	int err;

	ep->buf_bytes = stride * ep->buf_count;
	if (wf_os_mmap(&memory, ep->buf_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1))
		return -ENOMEM;
	ep->buf_memory = memory;
	err = wf_nic_mr_reg(ep->nic, memory, ep->buf_bytes, WF_NIC_LOCAL_WRITE,
			    &ep->bufs_mr);
	ep->bufs = calloc(ep->buf_count, sizeof(*ep->bufs));
	if (err || !ep->bufs) {
		wf_rdm_in_close(ep);
		return err ? err : -ENOMEM;
	}
	for (uint32_t i = 0; i < ep->buf_count; i++)
		ep->bufs[i].memory = ep->buf_memory + i * stride;
	return 0;
}

void wf_rdm_in_begin(struct wf_rdm_ep *ep)
{
	for (uint32_t i = 0; i < ep->buf_count; i++)
		give(ep, &ep->bufs[i]);
}

void wf_rdm_in_close(struct wf_rdm_ep *ep)
{
	free(ep->bufs);
	if (ep->buf_memory)
		wf_os_munmap(ep->buf_memory, ep->buf_bytes);
	ep->bufs = NULL;
	ep->buf_memory = NULL;
}

static void drop(struct wf_rdm_peer *peer)
{
	wf_rdm_stat_add(peer->ep, WF_RDM_STAT_bad_packets, 1);
}

/* -- in order -------------------------------------------------------------- */

/* Whether its sender may already have been told that it is delivered, without a
 * packet of ours. */
static bool is_unasked(const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet)
{
	return protocol->is_unasked &&
	       (protocol->kind == WF_TX_SEND ||
		!(wf_wire_packet_kind(packet->type) & WF_WIRE_KIND_DC));
}

/* A request. If it belongs to a life that gets no answers, and needs one, it is
 * not begun: its sender fails it. */
static inline int take(struct wf_rdm_peer *peer,
		       const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet)
{
	if (wf_unlikely(peer->mute) && !is_unasked(protocol, packet)) {
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_stale_packets, 1);
		return 0;
	}
	return protocol->receive(peer, packet);
}

/* A packet whose number had its turn: part of a message that is being
 * assembled, or one that must not be processed twice. */
static int receive_past(struct wf_rdm_peer *peer,
			const struct wf_rdm_protocol *protocol,
			const struct wf_wire_packet *packet)
{
	return protocol->has_more ? take(peer, protocol, packet) : -EPROTO;
}

/* A PEER_ERROR that names a message: nothing more of it comes. */
static int lose(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet)
{
	struct wf_rdm_rx *rx = wf_rdm_rx_find(peer, packet->op_id);

	if (rx && !rx->over)
		wf_rdm_rx_fail(rx, FI_ECANCELED, false);
	return 0;
}

/* 0, -EAGAIN or -EPROTO. @next: it is the message that is expected. */
static int receive_saved(struct wf_rdm_peer *peer, struct wf_rdm_saved *saved,
			 bool next)
{
	const struct wf_rdm_protocol *protocol;
	struct wf_wire_packet packet;
	int err = -EPROTO;

	if (!wf_wire_packet_decode(&packet, saved->bytes, saved->len)) {
		protocol = wf_rdm_protocol_of(packet.type);
		if (!protocol)
			err = lose(peer, &packet);
		else
			err = next ? take(peer, protocol, &packet) :
				     receive_past(peer, protocol, &packet);
	}
	if (err == -EAGAIN)
		return err;
	if (err)
		drop(peer);
	wf_rdm_order_drop(&peer->order, saved);
	return err;
}

/* Processes packets that came early and whose turn it is now. Without memory
 * they stay where they are, and the peer is served again later. */
static bool catch_up(struct wf_rdm_peer *peer)
{
	struct wf_rdm_order *order = &peer->order;

	while (order->held) {
		struct wf_rdm_saved *saved = wf_rdm_order_past(order);
		bool next = !saved;

		if (next)
			saved = wf_rdm_order_first(order);
		if (!saved)
			break;
		if (receive_saved(peer, saved, next) == -EAGAIN) {
			peer->behind = true;
			wf_rdm_post_activate(peer);
			return false;
		}
		if (next)
			wf_rdm_order_advance(order);
	}
	return true;
}

bool wf_rdm_in_finish(struct wf_rdm_peer *peer)
{
	while (catch_up(peer)) {
		if (!peer->order.held)
			return true;
		wf_rdm_order_skip(&peer->order);
	}
	return false;
}

void wf_rdm_in_catch_up(struct wf_rdm_peer *peer)
{
	peer->behind = false;
	catch_up(peer);
}

static int receive_in_turn(struct wf_rdm_peer *peer,
			   const struct wf_rdm_protocol *protocol,
			   const struct wf_wire_packet *packet,
			   const struct wf_rdm_buf *buf)
{
	struct wf_rdm_order *order = &peer->order;
	int turn, err;

	/* It belongs to a message that had its turn. */
	if (packet->flags & WF_WIRE_NACKED)
		return take(peer, protocol, packet);
	turn = wf_rdm_order_arrive(order, packet->msg_id, buf->bytes, buf->len);
	switch (turn) {
	case WF_RDM_TURN_NOW:
		err = take(peer, protocol, packet);
		if (err == -EAGAIN)
			return err;
		/* Valid or not, its number is used. */
		wf_rdm_order_advance(order);
		if (order->held)
			catch_up(peer);
		return err;
	case WF_RDM_TURN_PAST:
		return receive_past(peer, protocol, packet);
	case WF_RDM_TURN_HELD:
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_reordered, 1);
		wf_rdm_stat_most(peer->ep, WF_RDM_STAT_reorder_depth,
				 order->held);
		return 0;
	default:
		return turn == -ENOMEM ? -EAGAIN : turn;
	}
}

/* The message of this number failed at its sender. It has a turn as others do:
 * its other packets may be kept, or still come. */
static int receive_lost(struct wf_rdm_peer *peer,
			const struct wf_wire_packet *packet,
			const struct wf_rdm_buf *buf)
{
	struct wf_rdm_order *order = &peer->order;
	int turn;

	if (!peer->life.fixed || packet->ref_kind > WF_RDM_REF_SKIP)
		return -EPROTO;
	turn = wf_rdm_order_arrive(order, packet->op_id, buf->bytes, buf->len);
	switch (turn) {
	case WF_RDM_TURN_NOW:
		wf_rdm_order_advance(order);
		if (order->held)
			catch_up(peer);
		return 0;
	case WF_RDM_TURN_PAST:
		lose(peer, packet);
		return 0;
	case WF_RDM_TURN_HELD:
		return 0;
	default:
		return turn == -ENOMEM ? -EAGAIN : turn;
	}
}

/* -- one packet ------------------------------------------------------------ */

static void count(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet)
{
	unsigned int kind = wf_wire_packet_kind(packet->type);

	if ((kind & WF_WIRE_KIND_RTM) && !packet->seg_offset) {
		if (wf_unlikely(peer->ep->host->trace))
			wf_rdm_trace_came(peer, packet);
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_received, 1);
		wf_rdm_stat_add(peer->ep, WF_RDM_STAT_received_bytes,
				packet->msg_length ? packet->msg_length :
						     packet->data_len);
	}
}

/* Refuses a packet, and its bytes that wait for a place. */
static int refuse(struct wf_rdm_ep *ep, const struct wf_rdm_buf *buf)
{
	if (wf_unlikely(buf->more))
		wf_rdm_place_drop(ep, buf);
	return 0;
}

/* The id of a sender that does not change (life.h). A packet has it, or the whole
 * address of its sender, of which it is the key. 0: neither. */
static uint32_t connid_of(const struct wf_wire_packet *packet)
{
	struct wf_addr addr;

	if (packet->flags & WF_WIRE_CONNID)
		return packet->connid;
	if (!(packet->flags & WF_WIRE_RAW_ADDR) ||
	    wf_base_addr_set_raw(&addr, packet->raw_addr, packet->raw_addr_len))
		return 0;
	return addr.efa.qkey;
}

/* The device knows a queue pair by its number, which another process may have
 * had: the id tells which. libfabric's efa sends data without an id until it has
 * our handshake: that is of the one whom the device knows. -EAGAIN: there is no
 * memory for it. */
static int identify(struct wf_rdm_ep *ep, struct wf_rdm_buf *buf,
		    struct wf_wire_packet *packet)
{
	int err;

	packet->connid = connid_of(packet);
	if (wf_unlikely(!packet->connid))
		packet->connid = buf->peer->life.theirs;
	packet->flags |= WF_WIRE_CONNID;
	if (wf_likely(packet->connid == buf->peer->life.theirs))
		return 0;
	buf->from = buf->peer->addr;
	buf->from.efa.qkey = packet->connid;
	buf->peer = wf_rdm_peer_get(ep, &buf->from, true, &err);
	return buf->peer ? 0 : -EAGAIN;
}

/* 0, or -EAGAIN: pass it again. */
static int receive_packet(struct wf_rdm_ep *ep, struct wf_rdm_buf *buf)
{
	const struct wf_rdm_protocol *protocol;
	struct wf_rdm_peer *peer = buf->peer;
	struct wf_wire_packet packet;
	unsigned int kind;
	int err;

	/* Without memory for it: an acknowledged packet must not be dropped. */
	if (wf_unlikely(!peer)) {
		peer = wf_rdm_peer_get(ep, &buf->from, true, &err);
		buf->peer = peer;
	}
	if (wf_unlikely(!peer || (peer->leaving && wf_rdm_crowd_rejoin(peer))))
		return -EAGAIN;
	if (!wf_op_compq_room(ep->rxq->compq))
		return -EAGAIN;
	if (wf_wire_packet_decode(&packet, buf->bytes, buf->len)) {
		drop(peer);
		return refuse(ep, buf);
	}
	if (wf_unlikely(ep->connid)) {
		if (identify(ep, buf, &packet))
			return -EAGAIN;
		peer = buf->peer;
	}
	err = wf_rdm_peer_admit(peer, &packet);
	if (wf_unlikely(err))
		return err == -EAGAIN ? err : refuse(ep, buf);
	kind = wf_wire_packet_kind(packet.type);
	if (wf_unlikely(ep->closing) && (kind & WF_WIRE_KIND_REQUEST))
		return refuse(ep, buf);
	if (wf_unlikely(buf->more)) {
		err = wf_rdm_place_receive(peer, &packet, buf);
		packet.data_len = buf->more;
	} else if (!(kind & WF_WIRE_KIND_REQUEST)) {
		err = packet.type == WF_WIRE_PEER_ERROR &&
				      packet.ref_kind != WF_RDM_REF_OP ?
			      receive_lost(peer, &packet, buf) :
			      wf_rdm_control_receive(peer, &packet);
	} else {
		protocol = wf_rdm_protocol_of(packet.type);
		err = kind & (WF_WIRE_KIND_RTM | WF_WIRE_KIND_RTA) ?
			      receive_in_turn(peer, protocol, &packet, buf) :
			      take(peer, protocol, &packet);
	}
	if (err == -EAGAIN)
		return err;
	if (err) {
		drop(peer);
		return refuse(ep, buf);
	}
	count(peer, &packet);
	return 0;
}

/* The same of all that a buffer has. */
static int receive(struct wf_rdm_ep *ep, struct wf_rdm_buf *buf)
{
	int err;

	if (!buf->left)
		return receive_packet(ep, buf);
	while (buf->left) {
		buf->len = wf_nic_run_len(buf->bytes);
		buf->bytes += ep->run_head;
		err = receive_packet(ep, buf);
		if (err) {
			buf->bytes -= ep->run_head;
			return err;
		}
		buf->bytes += buf->len;
		buf->left -= ep->run_head + buf->len;
	}
	return 0;
}

/* The address of a sender that has no handle: the device may not know all of
 * it. */
static int find_sender(const struct wf_rdm_ep *ep, struct wf_rdm_buf *buf,
		       const struct wf_nic_wc *wc)
{
	struct wf_wire_packet packet;

	if (wf_nic_addr_to_socket(&wc->from, &buf->from))
		return -EPROTO;
	if (!ep->connid)
		return 0;
	if (wf_wire_packet_decode(&packet, buf->bytes, buf->len))
		return -EPROTO;
	buf->from.efa.qkey = connid_of(&packet);
	return buf->from.efa.qkey ? 0 : -EPROTO;
}

void wf_rdm_in_received(struct wf_rdm_ep *ep, const struct wf_nic_wc *wc)
{
	struct wf_rdm_buf *buf = &ep->bufs[wc->wr_id];

	if (wf_unlikely(wc->status)) {
		/* The packet of a receive that failed is lost; the buffer is
		 * not, unless the queue pair takes no more. */
		if (wc->status != WF_NIC_FLUSHED)
			give(ep, buf);
		return;
	}
	buf->bytes = buf->memory;
	buf->len = wc->len;
	buf->left = wc->flags & WF_NIC_WC_RUN ? wc->len : 0;
	buf->more = 0;
	if (wf_unlikely(wc->flags & WF_NIC_WC_ASKS)) {
		buf->more = wc->more;
		buf->place = wc->imm;
	}
	buf->peer = wc->ah < ep->ah_count ? ep->by_ah[wc->ah] : NULL;
	if (wf_unlikely(!buf->peer)) {
		/* The device reports only handles of ours. */
		assert(wc->ah == WF_NIC_AH_UNKNOWN);
		if (find_sender(ep, buf, wc)) {
			/* A sender with an address that cannot be in an AV. */
			wf_rdm_stat_add(ep, WF_RDM_STAT_bad_packets, 1);
			refuse(ep, buf);
			give(ep, buf);
			return;
		}
	}
	if (wf_unlikely(!wf_base_list_empty(&ep->stalled)) ||
	    receive(ep, buf)) {
		wf_base_list_add_tail(&ep->stalled, &buf->link);
		return;
	}
	give(ep, buf);
}

/* A message in one packet, and what its header says. */
struct heard {
	bool tagged;
	uint32_t msg_id;
	uint32_t connid;
	struct wf_envelope env;
	const uint8_t *data;
};

/* False: it is another packet. */
static bool read_other(const uint8_t *bytes, uint32_t len, struct heard *m)
{
	struct wf_wire_packet packet;

	if (!len ||
	    (bytes[0] != WF_WIRE_EAGER_TAGRTM &&
	     bytes[0] != WF_WIRE_EAGER_MSGRTM) ||
	    wf_wire_packet_decode(&packet, bytes, len) ||
	    (packet.flags & (WF_WIRE_CONNID | WF_WIRE_NACKED)) !=
		    WF_WIRE_CONNID)
		return false;
	m->tagged = packet.type == WF_WIRE_EAGER_TAGRTM;
	m->msg_id = packet.msg_id;
	m->connid = packet.connid;
	m->env.tag = packet.tag;
	m->env.data = packet.cq_data;
	m->env.flags = packet.flags & WF_WIRE_CQ_DATA ? FI_REMOTE_CQ_DATA : 0;
	m->env.len = packet.data_len;
	m->data = packet.data;
	return true;
}

static inline bool read_message(const uint8_t *bytes, uint32_t len,
				struct heard *m)
{
	if (wf_unlikely(!wf_wire_packet_get_eager(bytes, len, &m->msg_id,
						  &m->env.tag, &m->connid)))
		return read_other(bytes, len, m);
	m->tagged = true;
	m->env.data = 0;
	m->env.flags = 0;
	m->env.len = len - WF_WIRE_EAGER_HEADER;
	m->data = bytes + WF_WIRE_EAGER_HEADER;
	return true;
}

/* Whether it is the next message of its sender, which is in its ordinary state. */
static bool is_next(const struct wf_rdm_peer *peer, const struct heard *m)
{
	return m->connid == peer->life.theirs && !peer->life.over &&
	       m->msg_id == peer->order.expected && !peer->order.held &&
	       peer->sent_handshake && !peer->gone && !peer->mute &&
	       !peer->leaving;
}

/* Others go by a receive: wf_rdm_in_received(). */
bool wf_rdm_in_hear(void *arg, uint16_t ah, const uint8_t *bytes, uint32_t len)
{
	struct wf_rdm_ep *ep = arg;
	struct wf_rdm_peer *peer = ah < ep->ah_count ? ep->by_ah[ah] : NULL;
	struct heard m;

	if (!peer || !read_message(bytes, len, &m) || !is_next(peer, &m) ||
	    wf_unlikely(ep->closing || ep->connid || ep->host->trace) ||
	    !wf_base_list_empty(&ep->stalled) ||
	    !wf_op_compq_room(ep->rxq->compq))
		return false;
	m.env.src = peer->name;
	if (!wf_rdm_eager_deliver(ep->rxq, m.tagged, &m.env, m.data))
		return false;
	peer->used = ep->now;
	wf_rdm_order_advance(&peer->order);
	wf_rdm_stat_add(ep, WF_RDM_STAT_received, 1);
	wf_rdm_stat_add(ep, WF_RDM_STAT_received_bytes, m.env.len);
	return true;
}

void wf_rdm_in_retry(struct wf_rdm_ep *ep)
{
	while (!wf_base_list_empty(&ep->stalled)) {
		struct wf_rdm_buf *buf = wf_container_of(
			ep->stalled.next, struct wf_rdm_buf, link);

		if (receive(ep, buf))
			return;
		wf_base_list_del(&buf->link);
		give(ep, buf);
	}
}
