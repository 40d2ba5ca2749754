/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs: short messages to one peer that are one request and are written by one
 * call; and short messages of a peer that arrive together. On the wire a run is
 * a series of ordinary frames.
 *
 * The frames of a run that we send lie behind each other, with their heads, in
 * memory of the user. Another message can be added while the run is the last
 * request in its channel's queue and the kernel has no part of it. The channel
 * counts the frames of a run one by one; the request ends with the last of
 * them.
 */
#include <errno.h>
#include <string.h>

#include "nic/tcp/stream.h"

/* Longer messages are copied sooner by themselves. */
#define SHORT_MAX 1024u
/* Into one receive; each has room for that. */
#define TAKE_MOST (16u << 10)

static_assert(offsetof(struct wf_tcp_head, len) == WF_NIC_RUN_LEN_AT,
	      "the user knows where the length is");

/* -- ours -------------------------------------------------------------------- */

static uint8_t *bytes_of(const struct wf_tcp_op *op)
{
	return (uint8_t *)(uintptr_t)op->req.sge[0].addr;
}

void wf_tcp_run_catch_up(const struct wf_nic_sge *sge,
			 const struct wf_nic_wr *wr)
{
	if (wr->late_len)
		memcpy((uint8_t *)sge->addr + sge->len - wr->late_len, wr->late,
		       wr->late_len);
}

static void fill_head(const struct wf_nic_qp *qp, uint16_t dst_qpn,
		      uint32_t qkey, const uint32_t ack[2], void *at,
		      uint32_t len)
{
	const struct wf_tcp_head head = {
		.magic = WF_TCP_MAGIC,
		.kind = WF_TCP_SEND,
		.status = qp->rnr_retry,
		.len = len - (uint32_t)sizeof(head),
		.ack = { ack[0], ack[1] },
		.dst_qpn = dst_qpn,
		.src_qpn = qp->num,
		.qkey = qkey,
	};

	memcpy(at, &head, sizeof(head));
}

static void write_head(const struct wf_tcp_op *op, uint8_t *at, uint32_t len)
{
	static const uint32_t none[2];

	fill_head(op->qp, op->req.dst_qpn, op->req.qkey, none, at, len);
}

ssize_t wf_tcp_run_write(struct wf_tcp_chan *chan, const struct wf_nic_qp *qp,
			 const struct wf_nic_wr *wr,
			 const struct wf_nic_sge *sge, bool *full)
{
	const struct iovec iov[2] = {
		{ sge->addr, sge->len - wr->late_len },
		{ (void *)wr->late, wr->late_len },
	};
	uint32_t ack[2];

	wf_tcp_ack_stamp(chan, ack);
	fill_head(qp, wr->qpn, wr->qkey, ack, sge->addr, sge->len);
	return wf_tcp_stream_send(chan->conn, iov, wr->late_len ? 2 : 1,
				  sge->len, full);
}

void wf_tcp_run_begin(struct wf_tcp_op *op)
{
	op->run = 1;
	write_head(op, bytes_of(op), op->req.len);
}

/* The peer gets what was posted in its order: as long as anything waits in the
 * ring, nothing is added. */
struct wf_tcp_op *wf_tcp_run_open(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, uint16_t ah)
{
	const struct wf_nic_ah *handle = wf_nic_ah_find(&dev->nic, ah);
	struct wf_tcp_peer *peer = handle ? handle->dev : NULL;
	struct wf_tcp_chan *chan;
	struct wf_tcp_op *op;

	if (!peer || wf_base_list_empty(&peer->chans[WF_TCP_SMALL].todo) ||
	    wf_queue_work_poll(&qp->sq_work))
		return NULL;
	chan = &peer->chans[WF_TCP_SMALL];
	op = wf_container_of(chan->todo.prev, struct wf_tcp_op, link);
	if (!op->run || op->qp != qp || op->req.req_id != req_id ||
	    op->run == UINT16_MAX)
		return NULL;
	/* It has begun to leave; or some of it has left before, and the rest
	 * goes again. */
	if (op->cut || op->sent || op->status ||
	    (chan->todo.next == &op->link && chan->conn && chan->conn->part))
		return NULL;
	return op;
}

void wf_tcp_run_add(struct wf_tcp_dev *dev, struct wf_tcp_op *op, uint32_t len)
{
	write_head(op, bytes_of(op) + op->req.len, len);
	op->req.len += len;
	op->req.sge[0].len += len;
	op->run++;
	dev->held_back += len;
	wf_tcp_count(dev, tx_msgs, 1);
}

void wf_tcp_run_stamp(const struct wf_tcp_op *op, const uint32_t ack[2])
{
	uint8_t *at = bytes_of(op), *end = at + op->req.len;

	while (at < end) {
		memcpy(at + offsetof(struct wf_tcp_head, ack), ack,
		       2 * sizeof(*ack));
		at += sizeof(struct wf_tcp_head) + wf_nic_run_len(at);
	}
}

void wf_tcp_run_sent(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     uint32_t bytes)
{
	const uint8_t *from = bytes_of(op);
	uint32_t at = 0, count = 0;

	while (bytes - at >= sizeof(struct wf_tcp_head)) {
		uint32_t all = (uint32_t)sizeof(struct wf_tcp_head) +
			       wf_nic_run_len(from + at);

		if (all > bytes - at)
			break;
		at += all;
		count++;
	}
	op->chan->sent += count - op->sent;
	dev->flying += count - op->sent;
	wf_tcp_count(dev, tx_packets, count - op->sent);
	op->sent = (uint16_t)count;
}

void wf_tcp_run_leave(struct wf_tcp_op *op)
{
	op->run = op->sent;
	op->sent = 0;
	op->where = WF_TCP_FLIGHT;
	wf_base_list_add_tail(&op->chan->flight, &op->link);
}

static uint32_t len_of(const struct wf_tcp_op *op, uint32_t count)
{
	const uint8_t *at = bytes_of(op);

	while (count--)
		at += sizeof(struct wf_tcp_head) + wf_nic_run_len(at);
	return (uint32_t)(at - bytes_of(op));
}

/* The first @count stay in the list of what is counted, as an op that nobody is
 * told of. Those of them that are acknowledged are not counted any more. */
static bool split(struct wf_tcp_dev *dev, struct wf_tcp_op *op, uint32_t count)
{
	struct wf_tcp_op *there = wf_base_pool_get(&dev->ops);

	if (!there)
		return false;
	memset(there, 0, sizeof(*there));
	wf_base_list_init(&there->qp_link);
	wf_base_list_init(&there->nack_link);
	there->kind = WF_TCP_OP_SEND;
	there->where = WF_TCP_FLIGHT;
	there->over = true;
	there->chan = op->chan;
	there->cut = op->cut;
	there->run = (uint16_t)count;
	there->done = op->done;
	wf_base_list_add_head(op->link.prev, &there->link);
	return true;
}

bool wf_tcp_run_cut(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		    uint32_t count)
{
	uint32_t off = op->done + count, bytes;

	/* No user waits for the other messages; or there is no memory to
	 * keep them, and they are reported as lost. */
	if (op->over || (count && !split(dev, op, off))) {
		op->where = WF_TCP_FLIGHT;
		wf_tcp_work_end(dev, op, WF_NIC_ABORT);
		op->run = (uint16_t)off;
		op->sent = 0;
		return !count;
	}
	bytes = len_of(op, off);
	op->cut = (uint16_t)(op->cut + off);
	op->run = (uint16_t)(op->run - off);
	op->sent = 0;
	op->done = 0;
	op->req.len -= bytes;
	op->req.sge[0].len = op->req.len;
	op->req.sge[0].addr += bytes;
	return true;
}

struct wf_tcp_op *wf_tcp_run_find(const struct wf_tcp_chan *chan, uint32_t *at)
{
	const struct wf_list *pos = chan->flight.next;

	for (;;) {
		struct wf_tcp_op *op;

		if (pos == &chan->flight)
			pos = chan->todo.next;
		if (pos == &chan->todo)
			return NULL;
		op = wf_container_of(pos, struct wf_tcp_op, link);
		if (*at - 1 < wf_tcp_op_flying(op)) {
			*at += op->done - 1u;
			return op;
		}
		/* The first of those to be written may have begun to leave. */
		if (op->where == WF_TCP_TODO)
			return NULL;
		*at -= wf_tcp_op_flying(op);
		pos = pos->next;
	}
}

/* The op behind @op, in the order of frames. */
static struct wf_tcp_op *next_of(const struct wf_tcp_op *op)
{
	const struct wf_tcp_chan *chan = op->chan;
	const struct wf_list *next = op->link.next;

	if (next == &chan->flight)
		next = chan->todo.next;
	return next == &chan->todo ?
		       NULL :
		       wf_container_of(next, struct wf_tcp_op, link);
}

/* If a run was cut, the last op of it has the request. */
void wf_tcp_run_refused(struct wf_tcp_op *op, uint32_t at, uint8_t status)
{
	at += op->cut;
	while (op->over) {
		struct wf_tcp_op *next = next_of(op);

		if (!next || !next->run || next->cut != op->cut + op->run)
			return;
		op = next;
	}
	if (!op->status || at < op->good) {
		op->status = status;
		op->good = (uint16_t)at;
	}
}

uint32_t wf_tcp_run_good(const struct wf_tcp_op *op, enum wf_nic_status status)
{
	uint32_t there = op->cut + op->done;

	if (status == WF_NIC_OK)
		return op->cut + op->run;
	return op->status && op->good < there ? op->good : there;
}

/* -- the peer's -------------------------------------------------------------- */

/* Whether a whole short message begins at @bytes. All other frames are left to
 * the functions of in.c. */
static bool is_short(const uint8_t *bytes, uint32_t len,
		     struct wf_tcp_head *head)
{
	if (len < sizeof(*head))
		return false;
	memcpy(head, bytes, sizeof(*head));
	return head->magic == WF_TCP_MAGIC && head->kind == WF_TCP_SEND &&
	       !head->flags && head->len <= SHORT_MAX &&
	       head->len <= len - sizeof(*head);
}

static bool take_acks(struct wf_tcp_dev *dev, struct wf_tcp_chan *small,
		      const struct wf_tcp_head *head)
{
	struct wf_tcp_chan *bulk = small + WF_TCP_BULK;

	return (head->ack[0] == small->known ||
		wf_tcp_settle_heard(dev, small, head->ack[0])) &&
	       (head->ack[1] == bulk->known ||
		wf_tcp_settle_heard(dev, bulk, head->ack[1]));
}

/* Whether a whole message begins at @bytes. One that is too long is for those who
 * look at all frames, too. */
static bool is_whole(const struct wf_tcp_dev *dev, const uint8_t *bytes,
		     uint32_t len, struct wf_tcp_head *head)
{
	if (len < sizeof(*head))
		return false;
	memcpy(head, bytes, sizeof(*head));
	return head->magic == WF_TCP_MAGIC && head->kind == WF_TCP_SEND &&
	       !(head->flags & ~WF_TCP_WAITS) &&
	       head->len <= dev->nic.caps.max_recv &&
	       head->len <= len - sizeof(*head);
}

/* Whether the user may hear this message: it must not overtake completions that
 * the user has not polled. */
static bool hears(const struct wf_tcp_dev *dev, const struct wf_nic_qp *qp,
		  const struct wf_tcp_head *head)
{
	return qp && qp->hear && qp->qkey == head->qkey && !qp->flushed &&
	       wf_base_list_empty(&dev->soft.stuck) &&
	       !wf_queue_cq_ready(&qp->recv_cq->ring);
}

uint32_t wf_tcp_run_hear(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len)
{
	struct wf_tcp_chan *chan = conn->chan;
	uint32_t count = 0, at = 0;
	struct wf_tcp_head head;

	if (!dev->owned || chan->index != WF_TCP_SMALL ||
	    chan->peer->ah == WF_NIC_AH_UNKNOWN ||
	    !wf_base_list_empty(&chan->held))
		return 0;
	while (is_whole(dev, bytes + at, len - at, &head)) {
		const struct wf_nic_qp *qp =
			wf_nic_qp_find(&dev->nic, head.dst_qpn);

		if (!hears(dev, qp, &head) || !take_acks(dev, chan, &head) ||
		    !qp->hear(qp->hear_arg, chan->peer->ah,
			      bytes + at + sizeof(head), head.len))
			break;
		at += (uint32_t)sizeof(head) + head.len;
		count++;
		dev->hastens |= head.flags & WF_TCP_WAITS;
	}
	if (!count)
		return 0;
	dev->delivered = true;
	conn->splits = false;
	chan->taken += count;
	wf_tcp_count(dev, rx_msgs, count);
	wf_tcp_count(dev, rx_packets, count);
	wf_tcp_ack_owe(dev, chan->peer,
		       at + (count - 1) * WF_TCP_ACK_PER_FRAME);
	return at;
}

uint32_t wf_tcp_run_take(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len)
{
	struct wf_tcp_chan *chan = conn->chan;
	struct wf_tcp_head first, head;
	uint32_t count = 0, at = 0;

	/* One whom we do not know does not get a receive so easily: target.c.
	 * A frame that waits comes before those behind it. */
	if (!dev->nic.caps.run_head || len < 2 * sizeof(head) ||
	    chan->index != WF_TCP_SMALL ||
	    chan->peer->ah == WF_NIC_AH_UNKNOWN ||
	    !wf_base_list_empty(&chan->held) || !is_short(bytes, len, &first))
		return 0;
	head = first;
	do {
		uint32_t all = (uint32_t)sizeof(head) + head.len;

		if (all > TAKE_MOST - at || head.dst_qpn != first.dst_qpn ||
		    head.src_qpn != first.src_qpn || head.qkey != first.qkey ||
		    !take_acks(dev, chan, &head))
			break;
		at += all;
		count++;
	} while (is_short(bytes + at, len - at, &head));
	if (count < 2 ||
	    !wf_tcp_target_run(dev, conn, &first, bytes, at, count))
		return 0;
	conn->splits = false;
	chan->taken += count;
	wf_tcp_count(dev, rx_packets, count);
	wf_tcp_ack_owe(dev, chan->peer,
		       at + (count - 1) * WF_TCP_ACK_PER_FRAME);
	return at;
}
