/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes frames: one call sends the frames of many requests. Small payloads are
 * copied behind their heads; the kernel reads large ones where they lie. Bytes
 * that the kernel does not accept are kept and sent when it has room.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/stream.h"

/* A payload up to this length is copied behind its head, which is cheaper than
 * another entry of the vector. */
#define COPY_MAX 1024u
#define IOVS 96u
#define FRAMES 256u
/* Of messages, per peer: so many bytes may be on their way, or wait over there
 * for a receive. */
#define WINDOW (2u << 20)

/* One call of the kernel: while it takes a long payload, a message that the user
 * has meanwhile cannot leave. It can go on for as long as the peer reads. A piece
 * of 1 MiB and what is before it are one call. */
#define CALL_MOST ((1u << 20) + WF_TCP_STAGE)

/* Between the two pieces of a message. */
static const uint8_t nothing[WF_TCP_SPLIT_ALIGN];

struct batch {
	struct iovec iov[IOVS];
	uint32_t heads[FRAMES]; /* of the frames that begin here, in dev->out */
	unsigned int count;
	unsigned int frames;
	size_t bytes;
	size_t rest; /* bytes of the frame that was begun before */
	uint32_t staged;
	uint32_t ack[2]; /* of all heads: nothing is read while it is filled */
};

void wf_tcp_out_activate(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	if (chan->active || chan->state != WF_TCP_UP || chan->conn->full ||
	    chan->conn->ended)
		return;
	chan->active = true;
	/* Short messages do not wait for calls with long payloads. */
	if (chan->index == WF_TCP_SMALL)
		wf_base_list_add_head(&dev->active, &chan->active_link);
	else
		wf_base_list_add_tail(&dev->active, &chan->active_link);
}

static void deactivate(struct wf_tcp_chan *chan)
{
	if (!chan->active)
		return;
	chan->active = false;
	wf_base_list_del(&chan->active_link);
}

/* -- frames ------------------------------------------------------------------ */

static uint32_t head_len(const struct wf_tcp_op *op)
{
	if (op->run)
		return 0; /* they are in its payload */
	return op->kind == WF_TCP_OP_SEND || op->kind == WF_TCP_OP_NACK ?
		       sizeof(struct wf_tcp_head) :
		       sizeof(struct wf_tcp_frame);
}

static void build(const struct wf_tcp_op *op, const uint32_t ack[2],
		  struct wf_tcp_frame *frame)
{
	static const uint8_t kinds[] = {
		[WF_TCP_OP_SEND] = WF_TCP_SEND,
		[WF_TCP_OP_WRITE] = WF_TCP_WRITE,
		[WF_TCP_OP_READ] = WF_TCP_READ,
		[WF_TCP_OP_SERVE] = WF_TCP_DATA,
		[WF_TCP_OP_NACK] = WF_TCP_NACK,
	};
	const struct wf_nic_request *req = &op->req;

	frame->head = (struct wf_tcp_head){
		.magic = WF_TCP_MAGIC,
		.kind = kinds[op->kind],
		.flags = req->has_imm ? WF_TCP_HAS_IMM : 0,
		.status = op->qp ? op->qp->rnr_retry : 0,
		.len = wf_tcp_op_payload(op),
		.ack = { ack[0], ack[1] },
		.dst_qpn = req->dst_qpn,
		.src_qpn = op->src_qpn,
		.qkey = req->qkey,
		.imm = req->imm,
	};
	if (op->kind == WF_TCP_OP_SEND) {
		frame->head.flags |= op->lone ? WF_TCP_WAITS : 0;
		if (wf_unlikely(op->split)) {
			frame->head.flags |= WF_TCP_SPLIT;
			frame->head.arg = req->sge[0].len;
		}
		return;
	}
	frame->rdma = (struct wf_tcp_rdma){
		.addr = req->raddr,
		.key = req->rkey,
		.id = op->read_id,
	};
	if (req->user_key && op->kind != WF_TCP_OP_SERVE)
		frame->head.flags |= WF_TCP_USER_KEY;
	if (op->kind == WF_TCP_OP_READ) {
		frame->head.arg = req->len;
	} else if (op->kind == WF_TCP_OP_SERVE) {
		frame->head.status = op->status;
		if (op->status)
			frame->head.kind = WF_TCP_FAIL;
	} else if (op->kind == WF_TCP_OP_NACK) {
		frame->head.status = op->status;
		frame->head.arg = op->seq;
		frame->head.imm = req->op;
	}
}

static bool can_serve(struct wf_tcp_dev *dev, struct wf_tcp_op *op)
{
	const struct wf_tcp_reach want = {
		.user_key = op->req.user_key,
		.rkey = op->req.rkey,
		.hi = op->req.imm,
		.addr = op->req.sge[0].addr,
		.len = op->req.len,
		.access = WF_NIC_REMOTE_READ,
	};
	void *at;

	if (wf_tcp_target_reach(dev, &want, &at) != WF_NIC_OK)
		return false;
	op->req.raddr = (uintptr_t)at;
	return true;
}

/* Whether the memory of @op may still be read. The op may be freed by this. */
static bool is_there(struct wf_tcp_dev *dev, struct wf_tcp_op *op)
{
	const struct wf_nic_mr_table *mrs = &dev->nic.mrs;
	const struct wf_nic_request *req = &op->req;

	if (op->kind == WF_TCP_OP_SERVE)
		return op->status || can_serve(dev, op);
	if (req->inlined || op->kind > WF_TCP_OP_WRITE)
		return true;
	for (unsigned i = 0; i < req->sges; i++) {
		const struct wf_nic_local *sge = &req->sge[i];

		if (sge->len &&
		    !wf_nic_mr_local(mrs, sge->lkey, sge->addr, sge->len, 0))
			return false;
	}
	return true;
}

/* -- a batch ----------------------------------------------------------------- */

static void add_piece(struct batch *b, const void *at, size_t len)
{
	struct iovec *last = b->count ? &b->iov[b->count - 1] : NULL;

	if (!len)
		return;
	b->bytes += len;
	if (last && (char *)last->iov_base + last->iov_len == at) {
		last->iov_len += len;
		return;
	}
	b->iov[b->count++] = (struct iovec){ (void *)at, len };
}

/* Adds the bytes from *@from on, of @len bytes. */
static void add_part(struct batch *b, const uint8_t *at, uint32_t len,
		     uint32_t *from)
{
	uint32_t skip = *from < len ? *from : len;

	*from -= skip;
	add_piece(b, at + skip, len - skip);
}

/* The bytes of the payload from @from on, where they lie. */
static void add_payload(struct batch *b, const struct wf_tcp_op *op,
			uint32_t from)
{
	const struct wf_nic_request *req = &op->req;

	if (!wf_tcp_op_payload(op))
		return;
	if (op->kind == WF_TCP_OP_SERVE) {
		add_piece(b, (void *)(uintptr_t)(req->raddr + from),
			  req->len - from);
		return;
	}
	if (req->inlined) {
		add_piece(b, req->data + from, req->len - from);
		return;
	}
	for (unsigned i = 0; i < req->sges; i++) {
		const struct wf_nic_local *sge = &req->sge[i];

		add_part(b, (void *)(uintptr_t)sge->addr, sge->len, &from);
		if (!i && op->pad)
			add_part(b, nothing, op->pad, &from);
	}
}

static void copy_payload(const struct wf_tcp_op *op, uint8_t *to)
{
	const struct wf_nic_request *req = &op->req;

	if (op->kind == WF_TCP_OP_SERVE) {
		memcpy(to, (void *)(uintptr_t)req->raddr, req->len);
		return;
	}
	if (req->inlined) {
		memcpy(to, req->data, req->len);
		return;
	}
	for (unsigned i = 0; i < req->sges; i++) {
		if (!req->sge[i].len)
			continue;
		memcpy(to, (void *)(uintptr_t)req->sge[i].addr,
		       req->sge[i].len);
		to += req->sge[i].len;
	}
}

/* False: the batch is full. */
static bool add_op(struct wf_tcp_dev *dev, struct batch *b,
		   struct wf_tcp_op *op)
{
	uint32_t len = wf_tcp_op_payload(op), head = head_len(op);
	uint8_t *at = dev->out + b->staged;
	struct wf_tcp_frame frame;

	if (b->frames == FRAMES || b->count + 2 + WF_NIC_SGE_MAX > IOVS ||
	    b->staged + sizeof(frame) + COPY_MAX > WF_TCP_STAGE)
		return false;
	if (!b->frames)
		wf_tcp_ack_stamp(op->chan, b->ack);
	if (op->run) {
		wf_tcp_run_stamp(op, b->ack);
	} else {
		build(op, b->ack, &frame);
		memcpy(at, &frame, head);
	}
	b->heads[b->frames++] = b->staged;
	if (len <= COPY_MAX) {
		if (len)
			copy_payload(op, at + head);
		b->staged += head + len;
		add_piece(b, at, head + len);
		return true;
	}
	b->staged += head;
	add_piece(b, at, head);
	add_payload(b, op, 0);
	return true;
}

static struct wf_tcp_op *first_todo(const struct wf_tcp_chan *chan)
{
	return wf_base_list_empty(&chan->todo) ?
		       NULL :
		       wf_container_of(chan->todo.next, struct wf_tcp_op, link);
}

static void add_rest(struct wf_tcp_conn *conn, struct batch *b)
{
	struct wf_tcp_op *op = first_todo(conn->chan);
	uint32_t head = head_len(op);

	if (conn->part < head)
		add_piece(b, (uint8_t *)&conn->part_frame + conn->part,
			  head - conn->part);
	add_payload(b, op, conn->part < head ? 0 : conn->part - head);
	b->rest = b->bytes;
}

static bool has_window(const struct wf_tcp_chan *chan, size_t bytes)
{
	return chan->index != WF_TCP_SMALL || chan->flying + bytes < WINDOW ||
	       wf_base_list_empty(&chan->flight);
}

/* The memory of @op was deregistered, or cannot be read. False: its frame was begun, so the
 * connection cannot be used any more. */
static bool withdraw(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		     struct wf_tcp_op *op)
{
	bool begun = chan->conn->part && first_todo(chan) == op;

	if (op->kind != WF_TCP_OP_SERVE) {
		wf_tcp_work_end(dev, op, WF_NIC_BAD_LKEY);
		return !begun;
	}
	op->status = WF_NIC_REM_ADDR;
	if (begun)
		wf_tcp_conn_broken(dev, chan->conn, ECANCELED);
	return !begun;
}

static void shorten(struct batch *b)
{
	size_t over = b->bytes > CALL_MOST ? b->bytes - CALL_MOST : 0;

	b->bytes -= over;
	while (over && over >= b->iov[b->count - 1].iov_len)
		over -= b->iov[--b->count].iov_len;
	if (over)
		b->iov[b->count - 1].iov_len -= over;
}

/* False: the connection is gone. */
static bool fill(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		 struct batch *b, size_t quantum)
{
	struct wf_tcp_conn *conn = chan->conn;
	struct wf_list *pos, *tmp;
	bool begun = conn->part;

	b->count = 0;
	b->frames = 0;
	b->bytes = 0;
	b->rest = 0;
	b->staged = 0;
	if (begun) {
		if (!is_there(dev, first_todo(chan)))
			return withdraw(dev, chan, first_todo(chan));
		add_rest(conn, b);
	}
	if (conn->note_len)
		add_piece(b, conn->note + conn->note_at,
			  (size_t)(conn->note_len - conn->note_at));
	wf_list_for_each (pos, tmp, &chan->todo) {
		struct wf_tcp_op *op =
			wf_container_of(pos, struct wf_tcp_op, link);

		if (begun) {
			begun = false;
			continue;
		}
		if (!has_window(chan, b->bytes) || b->bytes >= quantum)
			break;
		if (wf_unlikely(!is_there(dev, op))) {
			bool stays = op->kind == WF_TCP_OP_SERVE;

			if (!withdraw(dev, chan, op))
				return false;
			if (!stays)
				continue;
		}
		if (!add_op(dev, b, op))
			break;
	}
	return true;
}

/* All of the frame was written. The op is in no list. */
static void fly(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		struct wf_tcp_op *op)
{
	uint32_t count;

	op->where = WF_TCP_FLIGHT;
	wf_base_list_add_tail(&chan->flight, &op->link);
	count = wf_tcp_op_frames(op) - op->sent;
	op->sent = 0;
	chan->sent += count;
	chan->flying += wf_tcp_op_cost(op);
	dev->flying += count;
	wf_tcp_probe_want(dev, chan->peer);
	wf_tcp_count(dev, tx_packets, count);
}

static void written(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		    struct wf_tcp_op *op)
{
	wf_base_list_unlink(&op->link);
	fly(dev, chan, op);
	if (op->kind == WF_TCP_OP_NACK) {
		wf_base_list_unlink(&op->nack_link);
		wf_tcp_ack_add_nack(&chan->peer->chans[op->req.op].nacks_sent,
				    op);
		/* Now the refused frame may be acknowledged. */
		wf_tcp_ack_owe(dev, chan->peer, 0);
	}
}

/* The kernel took @n bytes of the batch. */
static void settle(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		   const struct batch *b, size_t n)
{
	struct wf_tcp_conn *conn = chan->conn;
	size_t note = (size_t)(conn->note_len - conn->note_at);

	if (b->rest) {
		if (n < b->rest) {
			conn->part += (uint32_t)n;
			if (first_todo(chan)->run)
				wf_tcp_run_sent(dev, first_todo(chan),
						conn->part);
			return;
		}
		n -= b->rest;
		conn->part = 0;
		written(dev, chan, first_todo(chan));
	}
	if (n < note) {
		conn->note_at = (uint8_t)(conn->note_at + n);
		return;
	}
	n -= note;
	conn->note_at = 0;
	conn->note_len = 0;
	/* There may have been no room for another acknowledgement, or for the
	 * answer to a probe. */
	if (note && (wf_tcp_ack_has_news(chan) || chan->answers))
		wf_tcp_ack_owe(dev, chan->peer, 0);
	for (unsigned i = 0; i < b->frames && n; i++) {
		struct wf_tcp_op *op = first_todo(chan);
		size_t len = (size_t)head_len(op) + wf_tcp_op_payload(op);

		if (n < len) {
			conn->part = (uint32_t)n;
			memcpy(&conn->part_frame, dev->out + b->heads[i],
			       head_len(op));
			if (op->run)
				wf_tcp_run_sent(dev, op, conn->part);
			return;
		}
		n -= len;
		written(dev, chan, op);
	}
}

/* Asks the kernel to report when there is room. */
static void wait_for_room(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	wf_tcp_count(dev, tx_busy, 1);
	if (wf_tcp_hot_attach(dev, conn))
		return;
	if (!conn->watches &&
	    (conn->deaf ? wf_tcp_sock_watch_end :
			  wf_tcp_sock_rewatch)(dev, conn->fd, conn, true))
		return; /* then each pass tries to write */
	conn->watches = true;
	conn->full = true;
	dev->full_count++;
}

/* If the peer has closed the connection, there may be unread data: its last
 * acknowledgements, and why it closed. That is read before the connection is
 * given up; at its end the kernel reports the end of the connection. */
static void write_failed(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 int err)
{
	if (err != EPIPE && err != ECONNRESET && err != ETIMEDOUT) {
		wf_tcp_conn_broken(dev, conn, err);
		return;
	}
	conn->ended = err;
	deactivate(conn->chan);
}

size_t wf_tcp_out_pump(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		       size_t quantum)
{
	struct wf_tcp_conn *conn = chan->conn;
	bool careful = false;
	size_t total = 0;
	struct batch b;

	if (chan->state != WF_TCP_UP || conn->full || conn->ended) {
		deactivate(chan);
		return 0;
	}
	do {
		bool full;
		ssize_t n;

		if (!fill(dev, chan, &b, careful ? 1 : quantum))
			return total;
		if (!b.bytes && !wf_tcp_stream_holds(conn))
			break;
		shorten(&b);
		n = wf_tcp_stream_send(conn, b.iov, b.count, b.bytes, &full);
		/* Memory that cannot be read: one frame after the other, to see
		 * whose it is. Bug: over the next connection it was the same,
		 * for ever. */
		if (wf_unlikely(n == -EFAULT && (b.frames || b.rest))) {
			if (careful && !withdraw(dev, chan, first_todo(chan)))
				return total;
			careful = true;
			continue;
		}
		if (n < 0) {
			wf_tcp_count(dev, tx_errors, 1);
			write_failed(dev, conn, (int)-n);
			return total;
		}
		wf_tcp_count(dev, tx_calls, 1);
		wf_tcp_count(dev, tx_bytes, (uint64_t)n);
		settle(dev, chan, &b, (size_t)n);
		total += (size_t)n;
		if (wf_unlikely(dev->now >= conn->tune_at))
			wf_tcp_conn_tune(dev, conn);
		if (full) {
			wait_for_room(dev, conn);
			break;
		}
	} while (total < quantum);
	if (conn->full ||
	    (wf_base_list_empty(&chan->todo) && !conn->note_len) ||
	    (!conn->note_len && !conn->part && !has_window(chan, 0)))
		deactivate(chan);
	else
		wf_tcp_out_activate(dev, chan);
	return total;
}

bool wf_tcp_out_is_free(const struct wf_tcp_chan *chan, size_t cost)
{
	const struct wf_tcp_conn *conn = chan->conn;

	return chan->state == WF_TCP_UP && wf_base_list_empty(&chan->todo) &&
	       !conn->full && !conn->ended && !conn->part && !conn->note_len &&
	       has_window(chan, cost);
}

/* The rest of the message is queued. */
static void queue_rest(struct wf_tcp_dev *dev, struct wf_tcp_op *op, ssize_t n)
{
	struct wf_tcp_chan *chan = op->chan;
	struct wf_tcp_conn *conn = chan->conn;
	struct wf_tcp_frame *frame = (struct wf_tcp_frame *)dev->out;

	op->where = WF_TCP_TODO;
	wf_base_list_add_tail(&chan->todo, &op->link);
	if (wf_unlikely(n == -EFAULT)) {
		wf_tcp_out_activate(dev, chan);
		return;
	}
	if (n < 0) {
		wf_tcp_count(dev, tx_errors, 1);
		write_failed(dev, conn, (int)-n);
		return;
	}
	if ((size_t)n == (size_t)head_len(op) + wf_tcp_op_payload(op)) {
		written(dev, chan, op);
	} else if (n) {
		conn->part = (uint32_t)n;
		conn->part_frame.head = frame->head;
	}
	wait_for_room(dev, conn);
	if (!conn->full)
		wf_tcp_out_activate(dev, chan);
}

bool wf_tcp_out_wrote(struct wf_tcp_dev *dev, struct wf_tcp_op *op, ssize_t n,
		      bool full)
{
	size_t all = (size_t)head_len(op) + wf_tcp_op_payload(op);

	if (wf_unlikely(n != (ssize_t)all || full)) {
		queue_rest(dev, op, n);
		return false;
	}
	wf_tcp_count(dev, tx_calls, 1);
	wf_tcp_count(dev, tx_bytes, (uint64_t)n);
	fly(dev, op->chan, op);
	return true;
}

bool wf_tcp_out_now(struct wf_tcp_dev *dev, struct wf_tcp_op *op)
{
	struct batch b;
	bool full;
	ssize_t n;

	if (!wf_tcp_out_is_free(op->chan, wf_tcp_op_cost(op)))
		return false;
	op->lone = !op->quiet && !dev->flying;
	b.count = b.frames = b.staged = 0;
	b.bytes = 0;
	add_op(dev, &b, op);
	n = wf_tcp_stream_send(op->chan->conn, b.iov, b.count, b.bytes, &full);
	wf_tcp_out_wrote(dev, op, n, full);
	return true;
}
