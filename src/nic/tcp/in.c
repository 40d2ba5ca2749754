/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the stream of a connection in large pieces and cuts it into frames in
 * place. It trusts nothing in the stream: invalid data ends the connection. If
 * a part of a payload is still in the socket, that part is read straight to its
 * destination, together with the bytes that follow it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/stream.h"
#include "nic/wqe.h"

/* Reads of one connection in a pass. */
#define ROUNDS 4
/* Bytes of a payload in one call, and the bytes after which a pass reads no more
 * from a connection: others may have a short message. */
#define READ_MOST (512u << 10)
/* How long bytes wait for a receive. Then frames that need one are put aside,
 * so that they do not delay the frames behind them. */
#define CARRY_PATIENCE (1 * WF_NS_PER_MS)
/* Bytes of one peer, and of all, that may be put aside. A peer has no more in
 * flight (out.c); one that sends more is not read for a while. */
#define HELD_MOST (4u << 20)
#define HELD_ALL (256ull << 20)
/* A peer without a handle that stands still in the middle of a long message
 * keeps its memory for so long while others like it wait for some. */
#define STALLED_AFTER (5 * WF_NS_PER_S)
/* So does one whose bytes take longer than this on average: 64 KiB/s. */
#define SLOW_BYTE (WF_NS_PER_S >> 16)
/* Enough bytes for the head of a frame and what precedes its payload in most
 * frames, and no more. */
#define PEEK WF_TCP_SPLIT_ALIGN

/* -- memory that may be taken away ------------------------------------------- */

static void into_nowhere(struct wf_tcp_conn *conn, enum wf_nic_status status)
{
	conn->sink.kind = WF_TCP_SINK_DROP;
	conn->sink.status = (uint8_t)status;
}

static bool read_lives(const struct wf_tcp_dev *dev, uint32_t id)
{
	return wf_queue_ids_live(&dev->read_ids, id);
}

void wf_tcp_in_lose_place(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_head *head = &conn->frame.head;

	if (!conn->sink.has_place)
		return;
	wf_tcp_place_lose(dev, conn->sink.place);
	conn->sink.has_place = false;
	conn->sink.left += head->len - wf_tcp_first_len(head);
}

/* The receive goes back to the queue pair. */
static void lose_receive(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	wf_tcp_in_lose_place(dev, conn);
	wf_tcp_in_forget(dev, conn);
	into_nowhere(conn, WF_NIC_BAD_STATUS);
}

static struct wf_tcp_op *read_of(const struct wf_tcp_dev *dev,
				 const struct wf_tcp_conn *conn)
{
	uint32_t id = conn->frame.rdma.id;

	return read_lives(dev, id) ?
		       dev->reads[wf_queue_ids_index(&dev->read_ids, id)] :
		       NULL;
}

static void lose_read(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_op *op = read_of(dev, conn);

	into_nowhere(conn, WF_NIC_OK);
	if (op)
		wf_tcp_work_end(dev, op, WF_NIC_BAD_LKEY);
}

/* The kernel says that the memory cannot be written. False: it is ours. Bug: the
 * connection was taken to be broken, and over the next one it happened again. */
static bool lose_memory(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	switch (conn->sink.kind) {
	case WF_TCP_SINK_RECV:
		lose_receive(dev, conn);
		return true;
	case WF_TCP_SINK_WRITE:
		into_nowhere(conn, WF_NIC_REM_ADDR);
		return true;
	case WF_TCP_SINK_READ:
		lose_read(dev, conn);
		return true;
	case WF_TCP_SINK_PLACED:
		wf_tcp_place_fail(dev, conn);
		into_nowhere(conn, WF_NIC_OK);
		return true;
	default:
		return false;
	}
}

void wf_tcp_in_check(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_sink *sink = &conn->sink;
	const struct wf_nic_mr_table *mrs = &dev->nic.mrs;
	struct wf_tcp_op *op;

	switch (sink->kind) {
	case WF_TCP_SINK_RECV:
		if (wf_nic_mr_local(mrs,
				    sink->desc.lkey_ctrl & WF_NIC_LKEY_MASK,
				    (uintptr_t)sink->at, sink->left,
				    WF_NIC_LOCAL_WRITE))
			break;
		lose_receive(dev, conn);
		break;
	case WF_TCP_SINK_WRITE:
		wf_tcp_target_check(dev, conn);
		break;
	case WF_TCP_SINK_READ:
		op = read_of(dev, conn);
		if (!op || !wf_nic_mr_local(mrs, op->req.sge[0].lkey,
					    (uintptr_t)sink->at, sink->left,
					    WF_NIC_LOCAL_WRITE))
			lose_read(dev, conn);
		break;
	default:
		break;
	}
}

void wf_tcp_in_forget(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_sink *sink = &conn->sink;

	if (sink->kind == WF_TCP_SINK_RECV) {
		struct wf_tcp_qp *mine = sink->qp->dev;

		mine->spare[mine->spares++] = sink->desc;
	}
	if (sink->kind == WF_TCP_SINK_HELD && !sink->held->asked) {
		wf_tcp_target_filled(dev, sink->held);
		free(sink->held);
	}
	if (sink->has_place)
		wf_tcp_place_lose(dev, sink->place);
	sink->has_place = false;
	sink->kind = WF_TCP_SINK_NONE;
	wf_base_list_del(&conn->sink_link);
}

/* -- frames ------------------------------------------------------------------ */

static bool is_sane(const struct wf_tcp_dev *dev,
		    const struct wf_tcp_head *head)
{
	switch (head->kind) {
	case WF_TCP_SEND:
		if (wf_unlikely(head->flags & WF_TCP_SPLIT))
			return head->arg &&
			       head->arg <= dev->nic.caps.max_recv &&
			       wf_tcp_split_at(head->arg) < head->len &&
			       head->len <=
				       WF_TCP_PLACED_MAX + WF_TCP_SPLIT_ALIGN;
		return head->len <= dev->nic.caps.max_recv;
	case WF_TCP_WRITE:
	case WF_TCP_DATA:
		return head->len <= dev->nic.caps.max_rdma;
	default:
		return !head->len;
	}
}

static void spoil(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	wf_tcp_count(dev, bad_field, 1);
	wf_tcp_conn_broken(dev, conn, EPROTO);
}

static void end_frame(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	if (conn->sink.has_place && conn->sink.kind == WF_TCP_SINK_RECV) {
		wf_tcp_place_ask(dev, conn);
		return;
	}
	wf_tcp_count(dev, rx_packets, 1);
	wf_tcp_target_end(dev, conn);
	if (conn->dead)
		return;
	wf_base_list_del(&conn->sink_link);
	conn->sink.kind = WF_TCP_SINK_NONE;
	conn->head_len = 0;
}

/* Handles a frame that is only a head, and is not counted. */
static void take_note(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_chan *chan = conn->chan;

	conn->head_len = 0;
	if (conn->frame.head.kind == WF_TCP_BYE) {
		wf_tcp_peer_end_life(dev, chan->peer, WF_NIC_ABORT, false);
	} else if (conn->frame.head.kind == WF_TCP_REST) {
		wf_tcp_conn_drop(dev, chan);
		if (wf_tcp_chan_is_needed(dev, chan))
			wf_tcp_conn_want(dev, chan);
	} else {
		wf_tcp_count(dev, acks_received, 1);
		if (wf_unlikely(conn->frame.head.flags & WF_TCP_ASKS)) {
			chan->answers = true;
			wf_tcp_ack_owe(dev, chan->peer, UINT32_MAX);
		}
	}
}

/* The head has arrived. -EAGAIN: the frame has to wait for a receive. */
static int begin_frame(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		       bool may_wait)
{
	const struct wf_tcp_head *head = &conn->frame.head;
	struct wf_tcp_chan *small = &conn->chan->peer->chans[WF_TCP_SMALL];
	struct wf_tcp_chan *bulk = conn->chan->index > WF_TCP_BULK ?
					   conn->chan :
					   small + WF_TCP_BULK;
	int ret;

	if ((head->ack[0] != small->known &&
	     !wf_tcp_settle_heard(dev, small, head->ack[0])) ||
	    (head->ack[1] != bulk->known &&
	     !wf_tcp_settle_heard(dev, bulk, head->ack[1]))) {
		spoil(dev, conn);
		return 0;
	}
	if (!wf_tcp_is_counted(head->kind)) {
		take_note(dev, conn);
		return 0;
	}
	conn->sink.has_place = false;
	ret = wf_tcp_target_begin(dev, conn, may_wait);
	if (ret == -EAGAIN || conn->dead)
		return ret;
	if (ret) {
		spoil(dev, conn);
		return 0;
	}
	if (head->kind == WF_TCP_SEND)
		conn->splits = head->flags & WF_TCP_SPLIT;
	conn->sink.left =
		conn->sink.has_place ? wf_tcp_first_len(head) : head->len;
	if (!head->len)
		end_frame(dev, conn);
	else if (wf_base_list_empty(&conn->sink_link))
		wf_base_list_add_tail(&dev->sinks, &conn->sink_link);
	return 0;
}

/* Takes bytes of the head of the next frame. Returns how many were used;
 * *@whole: the head is complete. */
static uint32_t take_head(struct wf_tcp_conn *conn, const uint8_t *bytes,
			  uint32_t len, bool *whole)
{
	uint8_t *to = (uint8_t *)&conn->frame;
	uint32_t used = 0;

	for (;;) {
		uint32_t need = sizeof(struct wf_tcp_head), part;

		if (conn->head_len >= need)
			need = wf_tcp_frame_len(conn->frame.head.kind);
		part = need - conn->head_len;
		*whole = conn->head_len >= sizeof(struct wf_tcp_head) && !part;
		if (*whole || used == len)
			return used;
		part = part < len - used ? part : len - used;
		memcpy(to + conn->head_len, bytes + used, part);
		conn->head_len = (uint8_t)(conn->head_len + part);
		used += part;
		if (conn->head_len == sizeof(struct wf_tcp_head) &&
		    (conn->frame.head.magic != WF_TCP_MAGIC ||
		     !conn->frame.head.kind ||
		     conn->frame.head.kind >= WF_TCP_KINDS)) {
			*whole = true;
			return used;
		}
	}
}

static uint32_t take_payload(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			     const uint8_t *bytes, uint32_t len)
{
	struct wf_tcp_sink *sink = &conn->sink;
	uint32_t part = len < sink->left ? len : sink->left;

	if (sink->kind != WF_TCP_SINK_DROP) {
		memcpy(sink->at, bytes, part);
		sink->at += part;
	}
	sink->left -= part;
	if (!sink->left)
		end_frame(dev, conn);
	return part;
}

static bool is_asked(const struct wf_tcp_conn *conn)
{
	return conn->sink.kind == WF_TCP_SINK_ASKED;
}

bool wf_tcp_in_may_hold(const struct wf_tcp_dev *dev, uint32_t len)
{
	return dev->held_bytes + dev->filling + dev->kept_bytes + len <=
	       HELD_ALL;
}

/* Whether the user has not yet said where the payload goes, and the bytes have
 * to wait for that. */
static bool awaits_place(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 bool may_wait)
{
	if (!is_asked(conn))
		return false;
	if ((may_wait && !dev->attending) ||
	    !wf_tcp_in_may_hold(dev, conn->sink.left))
		return true;
	/* The peer sends frames again that were not counted. */
	if (wf_tcp_place_keep(dev, conn))
		wf_tcp_conn_broken(dev, conn, ENOMEM);
	return false;
}

/* Returns the bytes that were used; fewer when a frame has to wait for a receive
 * or for a place. */
static uint32_t parse(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		      const uint8_t *bytes, uint32_t len, bool may_wait)
{
	uint32_t at = 0;
	bool whole;

	while (!conn->dead && (at < len || conn->waits || is_asked(conn))) {
		if (wf_unlikely(is_asked(conn))) {
			if (awaits_place(dev, conn, may_wait))
				return at;
			continue;
		}
		if (conn->sink.kind) {
			at += take_payload(dev, conn, bytes + at, len - at);
			continue;
		}
		if (!conn->waits) {
			if (!conn->head_len) {
				uint32_t used = wf_tcp_run_hear(
					dev, conn, bytes + at, len - at);

				if (!used)
					used = wf_tcp_run_take(dev, conn,
							       bytes + at,
							       len - at);
				at += used;
				if (used)
					continue;
			}
			at += take_head(conn, bytes + at, len - at, &whole);
			if (!whole)
				break;
			if (conn->frame.head.magic != WF_TCP_MAGIC ||
			    !conn->frame.head.kind ||
			    conn->frame.head.kind >= WF_TCP_KINDS ||
			    !is_sane(dev, &conn->frame.head)) {
				spoil(dev, conn);
				break;
			}
		}
		conn->waits = begin_frame(dev, conn, may_wait) == -EAGAIN;
		if (conn->waits)
			return at;
	}
	return conn->dead ? len : at;
}

/* -- bytes that wait --------------------------------------------------------- */

static void keep(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		 const uint8_t *bytes, uint32_t len)
{
	/* At least one, so that it is seen to be there. */
	conn->carry = malloc(len + 1);
	if (!conn->carry) {
		/* The peer sends frames again that were not counted. */
		wf_tcp_conn_broken(dev, conn, ENOMEM);
		return;
	}
	memcpy(conn->carry, bytes, len);
	conn->carry_at = 0;
	conn->carry_len = len;
	conn->carry_from = dev->now;
	wf_base_list_add_tail(&dev->carriers, &conn->wait_link);
}

/* Data in the socket must not wake us any more; the end of the connection
 * must. */
static void stop_reading(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	if (conn->deaf || wf_tcp_hot_attach(dev, conn) ||
	    wf_tcp_sock_watch_end(dev, conn->fd, conn, conn->watches))
		return;
	conn->deaf = true;
	wf_base_list_add_tail(&dev->deaf, &conn->deaf_link);
}

int wf_tcp_in_resume(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	bool may_wait = dev->now < conn->carry_from + CARRY_PATIENCE;
	uint32_t used = parse(dev, conn, conn->carry + conn->carry_at,
			      conn->carry_len - conn->carry_at, may_wait);

	if (conn->dead)
		return 1;
	conn->carry_at += used;
	if (used)
		conn->carry_from = dev->now;
	if (conn->waits || is_asked(conn)) {
		/* For memory, then. */
		if (wf_unlikely(!may_wait))
			stop_reading(dev, conn);
		return used > 0;
	}
	free(conn->carry);
	conn->carry = NULL;
	wf_base_list_del(&conn->wait_link);
	return 1;
}

bool wf_tcp_in_is_blind(const struct wf_tcp_dev *dev)
{
	const struct wf_list *pos;

	for (pos = dev->carriers.next; pos != &dev->carriers; pos = pos->next) {
		if (!wf_container_of(pos, struct wf_tcp_conn, wait_link)->deaf)
			return true;
	}
	return false;
}

void wf_tcp_in_bytes(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		     const uint8_t *bytes, uint32_t len)
{
	uint32_t used = parse(dev, conn, bytes, len, true);

	if (!conn->dead && (conn->waits || is_asked(conn)))
		keep(dev, conn, bytes + used, len - used);
}

/* -- reading ----------------------------------------------------------------- */

/* 0: nothing was there; -1: the connection is over. */
static ssize_t take_result(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			   ssize_t got)
{
	if (got == -EAGAIN || got == -EINTR) {
		wf_tcp_count(dev, rx_empty, 1);
		return 0;
	}
	if (got <= 0) {
		wf_tcp_conn_broken(dev, conn,
				   conn->ended ? conn->ended : (int)-got);
		return -1;
	}
	wf_tcp_count(dev, rx_calls, 1);
	wf_tcp_count(dev, rx_bytes, (uint64_t)got);
	return got;
}

/* Returns bytes, 0 for none, -1 when the connection is over. */
static ssize_t read_some(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 bool *drained)
{
	struct wf_tcp_sink *sink = &conn->sink;
	/* A payload with a place is often followed by another one, of which
	 * only the head is read here. Records of TLS are read whole. */
	size_t stage =
		conn->splits && !conn->tls && sink->kind != WF_TCP_SINK_DROP ?
			PEEK :
			WF_TCP_STAGE;
	bool is_long = sink->left > READ_MOST;
	struct iovec iov[2] = {
		{ sink->at, is_long ? READ_MOST : sink->left },
		{ dev->stage, stage },
	};
	bool direct = sink->kind && sink->kind != WF_TCP_SINK_DROP;
	uint32_t part = 0;
	ssize_t got;

	if (!direct)
		got = wf_tcp_stream_recv(conn, &iov[1], 1, stage, drained);
	else if (is_long)
		got = wf_tcp_stream_recv(conn, iov, 1, READ_MOST, drained);
	else
		got = wf_tcp_stream_recv(conn, iov, 2,
					 stage + (size_t)sink->left, drained);
	if (wf_unlikely(got == -EFAULT) && lose_memory(dev, conn))
		return 0;
	got = take_result(dev, conn, got);
	if (got <= 0)
		return got;
	if (direct) {
		part = (size_t)got < sink->left ? (uint32_t)got : sink->left;
		sink->at += part;
		sink->left -= part;
		if (!sink->left)
			end_frame(dev, conn);
	}
	if (!conn->dead && (got > part || is_asked(conn)))
		wf_tcp_in_bytes(dev, conn, dev->stage, (uint32_t)got - part);
	return got;
}

/* A channel of which nothing is put aside is read in any case. */
static bool holds_too_much(const struct wf_tcp_dev *dev,
			   const struct wf_tcp_chan *chan)
{
	return chan->held_bytes > HELD_MOST ||
	       (dev->held_bytes > HELD_ALL && chan->held_bytes);
}

/* Whether it keeps its memory from others: it stands still, or sends a byte now
 * and then. */
static bool is_stalled(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_conn *conn)
{
	const struct wf_tcp_held *held = conn->sink.held;
	uint64_t came = held->frame.head.len - conn->sink.left;

	return dev->now >= conn->came_at + STALLED_AFTER ||
	       dev->now >= held->from + STALLED_AFTER + came * SLOW_BYTE;
}

/* The time in which we did not read is not the sender's. */
static void begin_anew(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_conn *conn)
{
	struct wf_tcp_held *held = conn->sink.held;
	uint64_t came = held->frame.head.len - conn->sink.left;

	held->from = dev->now - came * SLOW_BYTE;
}

static struct wf_tcp_conn *find_stalled(const struct wf_tcp_dev *dev)
{
	const struct wf_list *pos;

	for (pos = dev->sinks.next; pos != &dev->sinks; pos = pos->next) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, sink_link);

		if (conn->sink.kind == WF_TCP_SINK_HELD &&
		    conn->sink.held->stranger && is_stalled(dev, conn))
			return conn;
	}
	return NULL;
}

void wf_tcp_in_listen(struct wf_tcp_dev *dev)
{
	struct wf_tcp_conn *stalled;
	struct wf_list *pos, *tmp;
	bool is_late = false;

	wf_list_for_each (pos, tmp, &dev->deaf) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, deaf_link);

		if (conn->carry && !conn->chan->peer->handles &&
		    dev->now - conn->carry_from >= STALLED_AFTER) {
			conn->carry_from = dev->now;
			is_late = true;
		}
		if (conn->carry || holds_too_much(dev, conn->chan) ||
		    wf_tcp_sock_rewatch(dev, conn->fd, conn, conn->watches))
			continue;
		conn->deaf = false;
		wf_base_list_del(&conn->deaf_link);
		if (conn->sink.kind == WF_TCP_SINK_HELD)
			begin_anew(dev, conn);
	}
	/* The peer sends frames again that were not counted. */
	while (wf_unlikely(is_late) && (stalled = find_stalled(dev)))
		wf_tcp_conn_broken(dev, stalled, ENOBUFS);
}

int wf_tcp_in_read(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	bool drained = false;
	size_t total = 0;
	int did = 0;

	if (wf_unlikely(holds_too_much(dev, conn->chan))) {
		stop_reading(dev, conn);
		return 0;
	}
	for (int i = 0; i < ROUNDS && !drained && total < READ_MOST &&
			!conn->dead && !conn->carry;
	     i++) {
		ssize_t got;

		if (conn->sink.kind)
			wf_tcp_in_check(dev, conn);
		got = read_some(dev, conn, &drained);
		if (got <= 0)
			break;
		total += (size_t)got;
		did++;
	}
	if (did && !conn->dead) {
		conn->chan->peer->used_at = dev->now;
		wf_tcp_conn_warm(dev, conn);
	}
	return did;
}
