/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out a frame of a peer: puts a message into a posted receive, bytes
 * into or out of registered memory, or data into a read of ours. The count of
 * the channel ensures that each frame is carried out once; the application
 * takes no part. The destination of a payload is known before the payload
 * arrives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "nic/wqe.h"

/* How long a frame may wait for a receive, per try that its sender allows. */
#define RNR_WAIT (1 * WF_NS_PER_MS)
#define RETRY_MOST 256
/* Refusals that a peer may leave unread. It has no more frames in flight than
 * half of this (out.c), each with a head at least: one that goes beyond does
 * not keep to that. */
#define REFUSALS_MOST 65536u
/* Announced by peers without a handle, and not here yet. More of them have to
 * wait: each could announce a long message and never send it. */
#define ANNOUNCED_ALL (32u << 20)
#define REFUSALS_ALL 262144u /* then peers without a handle have to go */

/* -- receives ---------------------------------------------------------------- */

/* Takes what was posted off the ring. The receive that was posted last is used
 * first: its memory is still in the cache, and the others need not be touched
 * unless many messages come at once. Returns how many there are. */
static uint32_t gather_receives(struct wf_nic_qp *qp)
{
	struct wf_tcp_qp *mine = qp->dev;
	int ready;

	if (!qp->rq.ring || qp->flushed)
		return 0;
	for (ready = wf_queue_work_poll(&qp->rq_work); ready > 0; ready--)
		wf_queue_work_take(&qp->rq_work, &mine->spare[mine->spares++]);
	return mine->spares;
}

/* The next receive, not taken yet. False: none, or the completion would have no
 * place. */
static bool peek_receive(struct wf_nic_qp *qp, struct wf_nic_rx_desc *desc)
{
	const struct wf_tcp_qp *mine = qp->dev;

	if (!wf_nic_cq_has_room(qp->recv_cq) || !gather_receives(qp))
		return false;
	*desc = mine->spare[mine->spares - 1];
	return true;
}

static void take_receive(struct wf_nic_qp *qp)
{
	struct wf_tcp_qp *mine = qp->dev;

	mine->spares--;
}

static void complete(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		     struct wf_nic_qp *qp, const struct wf_nic_rx_desc *desc,
		     const struct wf_tcp_head *head, enum wf_nic_opcode op,
		     enum wf_nic_status status)
{
	bool imm = head->flags & WF_TCP_HAS_IMM;
	uint32_t len = status == WF_NIC_OK ? head->len : 0;
	const struct wf_nic_cqe cqe = {
		.req_id = desc->req_id,
		.status = (uint8_t)status,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, op, imm),
		.qpn = qp->num,
		.length = (uint16_t)len,
		.length_hi = (uint16_t)(len >> 16),
		.ah = peer->ah,
		.src_qpn = head->src_qpn,
		.imm = imm ? head->imm : 0,
	};

	if (peer->ah == WF_NIC_AH_UNKNOWN)
		wf_nic_qp_note_socket(qp, desc->req_id, &peer->addr);
	wf_tcp_work_complete(dev, qp, &cqe);
	wf_tcp_count(dev, rx_msgs, 1);
	dev->delivered = true;
}

void wf_tcp_target_announce(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
			    struct wf_nic_qp *qp,
			    const struct wf_nic_rx_desc *desc,
			    const struct wf_tcp_head *head, uint32_t number)
{
	const struct wf_nic_cqe cqe = {
		.req_id = desc->req_id,
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ, WF_NIC_OP_ASK, false),
		.qpn = qp->num,
		.length = (uint16_t)head->arg,
		.ah = peer->ah,
		.src_qpn = head->src_qpn,
		.imm = number,
		.more = head->len - wf_tcp_first_len(head),
	};

	if (peer->ah == WF_NIC_AH_UNKNOWN)
		wf_nic_qp_note_socket(qp, desc->req_id, &peer->addr);
	wf_tcp_work_complete(dev, qp, &cqe);
	wf_tcp_count(dev, rx_msgs, 1);
	dev->delivered = true;
}

/* -- refusals ---------------------------------------------------------------- */

static bool refuses_too_much(const struct wf_tcp_dev *dev,
			     const struct wf_tcp_peer *peer)
{
	return peer->refusals >= REFUSALS_MOST ||
	       (dev->refusals >= REFUSALS_ALL && !peer->handles);
}

/* Tells the sender of frame @seq of @chan that it was refused. -ENOMEM, or
 * -EDQUOT: the sender does not read refusals. */
static int refuse(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		  uint32_t seq, enum wf_nic_status status)
{
	struct wf_tcp_op *op;

	if (wf_unlikely(refuses_too_much(dev, chan->peer)))
		return -EDQUOT;
	op = wf_base_pool_get(&dev->ops);
	if (!op)
		return -ENOMEM;
	memset(op, 0, sizeof(*op));
	chan->peer->refusals++;
	dev->refusals++;
	wf_base_list_init(&op->qp_link);
	op->kind = WF_TCP_OP_NACK;
	op->status = (uint8_t)status;
	op->seq = seq;
	op->req.op = chan->index;
	wf_tcp_ack_add_nack(&chan->nacks, op);
	wf_tcp_work_queue(dev, op, &chan->peer->chans[WF_TCP_SMALL]);
	if (status == WF_NIC_RNR)
		wf_tcp_count(dev, rnr_sent, 1);
	else
		wf_tcp_count(dev, nacks_sent, 1);
	return 0;
}

/* -- frames that wait -------------------------------------------------------- */

static struct wf_tcp_held *hold(struct wf_tcp_conn *conn, uint32_t bytes)
{
	struct wf_tcp_held *held = malloc(sizeof(*held) + bytes);

	if (!held)
		return NULL;
	held->chan = conn->chan;
	held->frame = conn->frame;
	held->asked = false;
	held->stranger = false;
	return held;
}

/* Returns its cost: a frame without a payload takes memory, too, and that of a
 * write is not kept here. */
static uint32_t held_cost(const struct wf_tcp_held *held)
{
	const struct wf_tcp_head *head = &held->frame.head;

	return (uint32_t)sizeof(*held) +
	       (head->kind == WF_TCP_SEND ? head->len : 0);
}

/* Until there is a receive, however long it takes; a stranger's request is kept
 * no longer than a host that does not answer. */
static bool waits_long(const struct wf_tcp_held *held)
{
	return held->frame.head.kind == WF_TCP_READ ||
	       held->frame.head.status == WF_NIC_RNR_FOREVER;
}

static bool is_late(const struct wf_tcp_dev *dev,
		    const struct wf_tcp_held *held)
{
	return dev->now >= held->until &&
	       !(waits_long(held) && held->chan->peer->handles);
}

void wf_tcp_target_absent(struct wf_tcp_dev *dev, uint64_t ns)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->all_held)
		wf_container_of(pos, struct wf_tcp_held, dev_link)->until += ns;
	wf_list_for_each (pos, tmp, &dev->sinks) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, sink_link);
		uint64_t age = dev->now - conn->came_at;
		struct wf_tcp_held *held;

		conn->came_at += age < ns ? age : ns;
		if (conn->sink.kind != WF_TCP_SINK_HELD)
			continue;
		held = conn->sink.held;
		age = dev->now - held->from;
		held->from += age < ns ? age : ns;
	}
}

static void add_held(struct wf_tcp_dev *dev, struct wf_tcp_held *held)
{
	struct wf_tcp_chan *chan = held->chan;
	uint8_t tries = held->frame.head.status;

	held->seq = chan->taken + 1;
	held->until = dev->now + (waits_long(held) ? dev->dead_ns :
						     (tries + 1u) * RNR_WAIT);
	chan->held_bytes += held_cost(held);
	dev->held_bytes += held_cost(held);
	wf_base_list_add_tail(&chan->held, &held->link);
	wf_base_list_add_tail(&dev->all_held, &held->dev_link);
}

/* One that asks for a place is kept there. */
static void free_held(struct wf_tcp_held *held)
{
	if (!held->asked)
		free(held);
}

static void drop_held(struct wf_tcp_dev *dev, struct wf_tcp_held *held)
{
	held->chan->held_bytes -= held_cost(held);
	dev->held_bytes -= held_cost(held);
	wf_base_list_del(&held->link);
	wf_base_list_del(&held->dev_link);
	free_held(held);
}

void wf_tcp_target_drop_held(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	while (!wf_base_list_empty(&chan->held))
		drop_held(dev, wf_container_of(chan->held.next,
					       struct wf_tcp_held, link));
}

/* -- what each kind needs ---------------------------------------------------- */

/* WF_NIC_RNR: not now. */
static enum wf_nic_status find_qp(struct wf_tcp_dev *dev,
				  const struct wf_tcp_head *head,
				  struct wf_nic_qp **qp)
{
	*qp = wf_nic_qp_find(&dev->nic, head->dst_qpn);
	/* Opened and not ready yet: they are not told to give up. */
	if (!*qp && !dev->nic.had_qp)
		return WF_NIC_RNR;
	if (!*qp || (*qp)->qkey != head->qkey || (*qp)->flushed)
		return WF_NIC_BAD_QPN;
	return WF_NIC_OK;
}

/* Finds a receive for a message and takes it. */
static enum wf_nic_status find_receive(struct wf_tcp_dev *dev,
				       struct wf_tcp_peer *peer,
				       const struct wf_tcp_head *head,
				       struct wf_nic_qp *qp,
				       struct wf_nic_rx_desc *desc)
{
	uint32_t len = wf_tcp_first_len(head);

	if (peer->ah == WF_NIC_AH_UNKNOWN && qp->no_strangers)
		return WF_NIC_RNR;
	if (!peek_receive(qp, desc))
		return WF_NIC_RNR;
	if (len > desc->length)
		return WF_NIC_REM_LEN;
	if (len &&
	    !wf_nic_mr_local(&dev->nic.mrs, desc->lkey_ctrl & WF_NIC_LKEY_MASK,
			     wf_nic_wqe_addr(desc->addr_lo, desc->addr_hi), len,
			     WF_NIC_LOCAL_WRITE)) {
		/* The receive is spoilt, and its owner must hear of it. */
		take_receive(qp);
		complete(dev, peer, qp, desc, head, WF_NIC_OP_SEND,
			 WF_NIC_BAD_LKEY);
		return WF_NIC_BAD_STATUS;
	}
	take_receive(qp);
	return WF_NIC_OK;
}

enum wf_nic_status wf_tcp_target_reach(const struct wf_tcp_dev *dev,
				       const struct wf_tcp_reach *want,
				       void **at)
{
	const struct wf_nic_access access = {
		.key = want->rkey | (uint64_t)want->hi << 32,
		.addr = want->addr,
		.len = want->len,
		.access = want->access,
	};

	*at = (void *)(uintptr_t)want->addr;
	if (want->user_key)
		return dev->find ? dev->find(dev->find_arg, &access, at) :
				   WF_NIC_UNSUPP_OP;
	return wf_nic_mr_remote(&dev->nic.mrs, want->rkey, want->addr,
				want->len, want->access) ?
		       WF_NIC_OK :
		       WF_NIC_REM_ADDR;
}

/* The part of what @frame names from @from on. */
static struct wf_tcp_reach reach_of(const struct wf_tcp_frame *frame,
				    uint32_t from, uint32_t len,
				    unsigned access)
{
	return (struct wf_tcp_reach){
		.user_key = frame->head.flags & WF_TCP_USER_KEY,
		.rkey = frame->rdma.key,
		.hi = frame->head.imm,
		.addr = frame->rdma.addr + from,
		.len = len,
		.access = access,
	};
}

void wf_tcp_target_check(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_frame *frame = &conn->frame;
	struct wf_tcp_sink *sink = &conn->sink;
	const struct wf_tcp_reach want =
		reach_of(frame, frame->head.len - sink->left, sink->left,
			 WF_NIC_REMOTE_WRITE);
	enum wf_nic_status status;
	void *at;

	status = wf_tcp_target_reach(dev, &want, &at);
	if (status == WF_NIC_OK) {
		sink->at = at;
		return;
	}
	sink->kind = WF_TCP_SINK_DROP;
	sink->status = (uint8_t)status;
}

static enum wf_nic_status serve(struct wf_tcp_dev *dev,
				struct wf_tcp_peer *peer,
				const struct wf_tcp_frame *frame)
{
	const struct wf_tcp_head *head = &frame->head;
	const struct wf_tcp_reach want =
		reach_of(frame, 0, head->arg, WF_NIC_REMOTE_READ);
	struct wf_nic_qp *qp;
	enum wf_nic_status status = find_qp(dev, head, &qp);
	struct wf_tcp_op *op;
	void *at;

	if (status == WF_NIC_OK && head->arg > dev->nic.caps.max_rdma)
		status = WF_NIC_REM_ADDR;
	if (status == WF_NIC_OK)
		status = wf_tcp_target_reach(dev, &want, &at);
	if (status != WF_NIC_OK)
		return status;
	if (peer->serving >= WF_TCP_SERVE_MOST ||
	    dev->serving >= WF_TCP_SERVE_ALL)
		return WF_NIC_RNR;
	op = wf_base_pool_get(&dev->ops);
	if (!op)
		return WF_NIC_RNR;
	memset(op, 0, sizeof(*op));
	wf_base_list_init(&op->nack_link);
	op->kind = WF_TCP_OP_SERVE;
	op->src_qpn = head->dst_qpn;
	op->read_id = frame->rdma.id;
	op->req.dst_qpn = head->src_qpn;
	op->req.len = head->arg;
	op->req.rkey = want.rkey;
	op->req.raddr = (uintptr_t)at;
	op->req.user_key = want.user_key;
	op->req.imm = want.hi;
	op->req.sge[0].addr = want.addr;
	peer->serving++;
	dev->serving++;
	wf_base_list_add_tail(&peer->served, &op->qp_link);
	wf_tcp_work_serve(dev, op, peer);
	wf_tcp_count(dev, reads_served, 1);
	return WF_NIC_OK;
}

static void drop_into(struct wf_tcp_conn *conn, enum wf_nic_status status)
{
	conn->sink.kind = WF_TCP_SINK_DROP;
	conn->sink.status = (uint8_t)status;
}

static bool is_split(const struct wf_tcp_head *head)
{
	return head->flags & WF_TCP_SPLIT;
}

/* -EAGAIN: it is long, and as much is held as may be. */
static int into_held(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_head *head = &conn->frame.head;
	bool stranger =
		is_split(head) && conn->chan->peer->ah == WF_NIC_AH_UNKNOWN;

	if (wf_unlikely(is_split(head)) &&
	    (!wf_tcp_in_may_hold(dev, head->len) ||
	     (stranger && dev->announced + head->len > ANNOUNCED_ALL)))
		return -EAGAIN;
	conn->sink.held = hold(conn, head->len);
	if (!conn->sink.held)
		return -ENOMEM;
	conn->sink.held->stranger = stranger;
	conn->sink.held->from = dev->now;
	conn->sink.kind = WF_TCP_SINK_HELD;
	conn->sink.at = conn->sink.held->payload;
	dev->filling += head->len;
	dev->announced += stranger ? head->len : 0;
	return 0;
}

void wf_tcp_target_filled(struct wf_tcp_dev *dev,
			  const struct wf_tcp_held *held)
{
	dev->filling -= held->frame.head.len;
	dev->announced -= held->stranger ? held->frame.head.len : 0;
}

static int begin_send(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		      bool may_wait)
{
	const struct wf_tcp_head *head = &conn->frame.head;
	struct wf_tcp_sink *sink = &conn->sink;
	enum wf_nic_status status = find_qp(dev, head, &sink->qp);
	bool asks = is_split(head);

	/* The user of this device does not answer questions for a place. */
	if (wf_unlikely(asks && !dev->nic.caps.max_placed)) {
		drop_into(conn, WF_NIC_REM_LEN);
		return 0;
	}
	/* A thread works in the owner's place, or too many messages have a
	 * place: there is no answer now. */
	if (wf_unlikely(asks && status == WF_NIC_OK &&
			(dev->attending || !wf_tcp_place_has_room(dev))))
		return into_held(dev, conn);
	/* A peer without a handle gets a receive when its message is here, and
	 * not when the head announces it: it could keep all receives by
	 * sending heads only. */
	if (status == WF_NIC_OK && head->len &&
	    conn->chan->peer->ah == WF_NIC_AH_UNKNOWN)
		return into_held(dev, conn);
	/* Behind those that wait already. */
	if (status == WF_NIC_OK && !wf_base_list_empty(&conn->chan->held))
		status = WF_NIC_RNR;
	if (status == WF_NIC_OK)
		status = find_receive(dev, conn->chan->peer, head, sink->qp,
				      &sink->desc);
	if (status == WF_NIC_RNR)
		return may_wait ? -EAGAIN : into_held(dev, conn);
	if (status != WF_NIC_OK) {
		drop_into(conn, status);
		return 0;
	}
	sink->kind = WF_TCP_SINK_RECV;
	if (asks)
		wf_tcp_place_begin(dev, conn);
	sink->at = (void *)(uintptr_t)wf_nic_wqe_addr(sink->desc.addr_lo,
						      sink->desc.addr_hi);
	return 0;
}

static void begin_write(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_head *head = &conn->frame.head;
	const struct wf_tcp_reach want =
		reach_of(&conn->frame, 0, head->len, WF_NIC_REMOTE_WRITE);
	enum wf_nic_status status = find_qp(dev, head, &conn->sink.qp);
	void *at;

	if (status == WF_NIC_RNR)
		status = WF_NIC_BAD_QPN;
	if (status == WF_NIC_OK)
		status = wf_tcp_target_reach(dev, &want, &at);
	if (status != WF_NIC_OK) {
		drop_into(conn, status);
		return;
	}
	conn->sink.kind = WF_TCP_SINK_WRITE;
	conn->sink.at = at;
}

static struct wf_tcp_op *read_of(struct wf_tcp_dev *dev,
				 const struct wf_tcp_conn *conn)
{
	uint32_t id = conn->frame.rdma.id;
	struct wf_tcp_op *op;

	if (!wf_queue_ids_live(&dev->read_ids, id))
		return NULL;
	op = dev->reads[wf_queue_ids_index(&dev->read_ids, id)];
	return op->chan->peer == conn->chan->peer ? op : NULL;
}

/* Data for a read of ours. One that is over (flushed, failed) is none of ours:
 * the frame is accepted and forgotten. */
static void begin_data(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_op *op = read_of(dev, conn);
	const struct wf_tcp_head *head = &conn->frame.head;

	drop_into(conn, WF_NIC_OK);
	if (!op)
		return;
	if (head->kind == WF_TCP_FAIL) {
		wf_tcp_work_end(dev, op,
				head->status && head->status < WF_NIC_STATUSES ?
					(enum wf_nic_status)head->status :
					WF_NIC_BAD_STATUS);
		return;
	}
	if (head->len != op->req.len) {
		wf_tcp_count(dev, bad_field, 1);
		wf_tcp_work_end(dev, op, WF_NIC_BAD_STATUS);
		return;
	}
	conn->sink.kind = WF_TCP_SINK_READ;
	conn->sink.at = (void *)(uintptr_t)op->req.sge[0].addr;
	conn->sink.left = head->len;
	if (head->len)
		wf_tcp_in_check(dev, conn);
}

int wf_tcp_target_begin(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			bool may_wait)
{
	enum wf_nic_status status;

	switch (conn->frame.head.kind) {
	case WF_TCP_SEND:
		return begin_send(dev, conn, may_wait);
	case WF_TCP_WRITE:
		begin_write(dev, conn);
		return 0;
	case WF_TCP_DATA:
	case WF_TCP_FAIL:
		begin_data(dev, conn);
		return 0;
	case WF_TCP_READ:
		status = serve(dev, conn->chan->peer, &conn->frame);
		if (status == WF_NIC_RNR)
			return into_held(dev, conn);
		drop_into(conn, status);
		return 0;
	default: /* NACK */
		if (conn->frame.head.imm >= WF_TCP_CHANNELS)
			return -EPROTO;
		wf_tcp_settle_refused(
			dev, &conn->chan->peer->chans[conn->frame.head.imm],
			conn->frame.head.arg, conn->frame.head.status);
		drop_into(conn, WF_NIC_OK);
		return 0;
	}
}

/* -- the end of a frame ------------------------------------------------------ */

/* Notifies the target's application of a write. False: there is no receive for
 * the notification. */
static bool tell_written(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
			 const struct wf_tcp_head *head, struct wf_nic_qp *qp)
{
	struct wf_nic_rx_desc desc;

	if (!peek_receive(qp, &desc))
		return false;
	take_receive(qp);
	complete(dev, peer, qp, &desc, head, WF_NIC_OP_WRITE, WF_NIC_OK);
	return true;
}

/* Messages that ask come in order: where one that asks goes depends on those
 * before it. Others may come in any order. */
static bool is_in_turn(const struct wf_tcp_held *held)
{
	const struct wf_list *all = &held->chan->held;

	return wf_base_list_empty(all) || all->next == &held->link;
}

static enum wf_nic_status deliver(struct wf_tcp_dev *dev,
				  struct wf_tcp_held *held)
{
	struct wf_tcp_peer *peer = held->chan->peer;
	const struct wf_tcp_head *head = &held->frame.head;
	struct wf_nic_rx_desc desc;
	enum wf_nic_status status;
	struct wf_nic_qp *qp;

	if (head->kind == WF_TCP_READ)
		return serve(dev, peer, &held->frame);
	status = find_qp(dev, head, &qp);
	if (status != WF_NIC_OK)
		return status;
	if (head->kind == WF_TCP_WRITE)
		return tell_written(dev, peer, head, qp) ? WF_NIC_OK :
							   WF_NIC_RNR;
	if (is_split(head) &&
	    (!wf_tcp_place_has_room(dev) || !is_in_turn(held)))
		return WF_NIC_RNR;
	status = find_receive(dev, peer, head, qp, &desc);
	if (status != WF_NIC_OK)
		return status;
	if (head->len)
		memcpy((void *)(uintptr_t)wf_nic_wqe_addr(desc.addr_lo,
							  desc.addr_hi),
		       held->payload, wf_tcp_first_len(head));
	if (is_split(head)) {
		wf_tcp_target_announce(dev, peer, qp, &desc, head,
				       wf_tcp_place_whole(dev, qp, held));
		return WF_NIC_OK;
	}
	complete(dev, peer, qp, &desc, head, WF_NIC_OP_SEND, WF_NIC_OK);
	return WF_NIC_OK;
}

/* The payload is in sink->held. */
static int end_held(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_chan *chan = conn->chan;
	struct wf_tcp_held *held = conn->sink.held;
	enum wf_nic_status status = WF_NIC_RNR;

	conn->sink.kind = WF_TCP_SINK_NONE;
	if (held->asked) {
		wf_tcp_place_kept(dev, held);
		return 0;
	}
	wf_tcp_target_filled(dev, held);
	if (wf_base_list_empty(&chan->held))
		status = deliver(dev, held);
	if (status == WF_NIC_RNR) {
		add_held(dev, held);
		return 0;
	}
	free_held(held);
	return status == WF_NIC_OK ? 0 :
				     refuse(dev, chan, chan->taken + 1, status);
}

static int end_write(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_head *head = &conn->frame.head;
	struct wf_tcp_held *held;

	wf_tcp_count(dev, writes_served, 1);
	if (!(head->flags & WF_TCP_HAS_IMM) ||
	    (wf_base_list_empty(&conn->chan->held) &&
	     tell_written(dev, conn->chan->peer, head, conn->sink.qp)))
		return 0;
	held = hold(conn, 0);
	if (!held)
		return -ENOMEM;
	add_held(dev, held);
	return 0;
}

void wf_tcp_target_end(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_chan *chan = conn->chan;
	struct wf_tcp_sink *sink = &conn->sink;
	struct wf_tcp_op *op;
	int err = 0;

	switch (sink->kind) {
	case WF_TCP_SINK_RECV:
		sink->kind = WF_TCP_SINK_NONE;
		complete(dev, chan->peer, sink->qp, &sink->desc,
			 &conn->frame.head, WF_NIC_OP_SEND, WF_NIC_OK);
		break;
	case WF_TCP_SINK_PLACED:
		wf_tcp_place_end(dev, conn);
		break;
	case WF_TCP_SINK_HELD:
		err = end_held(dev, conn);
		break;
	case WF_TCP_SINK_WRITE:
		err = end_write(dev, conn);
		break;
	case WF_TCP_SINK_READ:
		op = read_of(dev, conn);
		if (op)
			wf_tcp_work_end(dev, op, WF_NIC_OK);
		break;
	default:
		if (sink->status != WF_NIC_OK)
			err = refuse(dev, chan, chan->taken + 1,
				     (enum wf_nic_status)sink->status);
		break;
	}
	if (conn->dead)
		return;
	if (wf_unlikely(err == -EDQUOT)) {
		wf_tcp_count(dev, bad_field, 1);
		wf_tcp_peer_end_life(dev, chan->peer, WF_NIC_ABORT, true);
		return;
	}
	if (err) {
		/* The peer sends frames again that were not counted. */
		wf_tcp_conn_broken(dev, conn, -err);
		return;
	}
	chan->taken++;
	dev->hastens |= conn->frame.head.flags & WF_TCP_WAITS;
	wf_tcp_ack_owe(dev, chan->peer, conn->frame.head.len);
}

bool wf_tcp_target_run(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		       const struct wf_tcp_head *head, const uint8_t *bytes,
		       uint32_t len, uint32_t count)
{
	struct wf_tcp_peer *peer = conn->chan->peer;
	struct wf_tcp_head all = *head;
	struct wf_nic_rx_desc desc;
	struct wf_nic_qp *qp;

	all.len = len;
	if (find_qp(dev, head, &qp) != WF_NIC_OK ||
	    find_receive(dev, peer, &all, qp, &desc) != WF_NIC_OK)
		return false;
	memcpy((void *)(uintptr_t)wf_nic_wqe_addr(desc.addr_lo, desc.addr_hi),
	       bytes, len);
	complete(dev, peer, qp, &desc, &all, WF_NIC_OP_RUN, WF_NIC_OK);
	wf_tcp_count(dev, rx_msgs, count - 1);
	return true;
}

/* -- again ------------------------------------------------------------------- */

int wf_tcp_target_retry(struct wf_tcp_dev *dev)
{
	struct wf_list *pos, *tmp;
	int did = 0, left = RETRY_MOST;

	wf_list_for_each (pos, tmp, &dev->all_held) {
		struct wf_tcp_held *held =
			wf_container_of(pos, struct wf_tcp_held, dev_link);
		enum wf_nic_status status = deliver(dev, held);

		if (status == WF_NIC_RNR && !is_late(dev, held)) {
			if (!--left)
				break;
			continue;
		}
		if (status != WF_NIC_OK &&
		    refuse(dev, held->chan, held->seq, status))
			continue;
		wf_tcp_ack_owe(dev, held->chan->peer, held->frame.head.len);
		drop_held(dev, held);
		did++;
	}
	return did;
}
