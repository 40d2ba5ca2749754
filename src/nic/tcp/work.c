/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: taken off the ring of a queue pair, given to a channel, ended with
 * one completion each.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"

/* Payloads of RDMA from here on have the other channel. */
#define BULK_MIN (32u << 10)

static struct wf_tcp_qp *qp_of(struct wf_nic_qp *qp)
{
	return qp->dev;
}

void wf_tcp_work_complete(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe)
{
	wf_nic_soft_complete(&dev->soft, qp, qp_of(qp)->stuck, cqe);
}

void wf_tcp_work_free(struct wf_tcp_dev *dev, struct wf_tcp_op *op)
{
	wf_base_pool_put(&dev->ops, op);
}

/* Takes it out of a queue before it was sent. False: it is a run of which some was;
 * that is counted. */
static bool unqueue(struct wf_tcp_dev *dev, struct wf_tcp_op *op)
{
	struct wf_tcp_chan *chan = op->chan;
	struct wf_tcp_conn *conn = chan->conn;
	bool begun = conn && conn->part && chan->todo.next == &op->link;
	bool leaves = op->sent != op->done;

	wf_base_list_del(&op->link);
	op->where = WF_TCP_NOWHERE;
	if (wf_unlikely(leaves))
		wf_tcp_run_leave(op);
	/* Its head may have been filled in when the kernel had no room. */
	wf_tcp_ack_again(dev, chan->peer);
	/* Half of its frame has left, and the other half cannot follow: other
	 * frames go over another connection. */
	if (begun) {
		conn->part = 0;
		wf_tcp_conn_broken(dev, conn, ECANCELED);
	}
	return !leaves;
}

void wf_tcp_work_end(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     enum wf_nic_status status)
{
	if (!op->over) {
		op->over = true;
		wf_base_list_del(&op->qp_link);
		if (op->kind == WF_TCP_OP_READ)
			wf_queue_ids_put(&dev->read_ids, op->read_id);
		if (op->kind == WF_TCP_OP_SERVE) {
			op->chan->peer->serving--;
			dev->serving--;
		}
		if (op->kind == WF_TCP_OP_NACK) {
			wf_base_list_del(&op->nack_link);
			op->chan->peer->refusals--;
			dev->refusals--;
		}
		if (op->qp && !op->quiet)
			dev->loud--;
		if (op->qp && op->run)
			wf_nic_soft_done_run(
				&dev->soft, op->qp, qp_of(op->qp)->stuck,
				op->req.req_id, status, op->cut + op->run,
				wf_tcp_run_good(op, status));
		else if (op->qp)
			wf_nic_soft_done(&dev->soft, op->qp,
					 qp_of(op->qp)->stuck, op->req.req_id,
					 (enum wf_nic_opcode)op->req.op,
					 status);
		op->qp = NULL;
	}
	if (op->where == WF_TCP_TODO && !unqueue(dev, op))
		return;
	/* In flight it is still counted. */
	if (op->where == WF_TCP_FLIGHT)
		return;
	wf_base_list_del(&op->link);
	wf_tcp_work_free(dev, op);
}

static struct wf_tcp_chan *choose(const struct wf_tcp_op *op,
				  struct wf_tcp_peer *peer)
{
	bool bulk =
		(op->kind == WF_TCP_OP_WRITE || op->kind == WF_TCP_OP_SERVE) &&
		op->req.len >= BULK_MIN;

	/* The other end of our own connections cannot open one. */
	if (peer->mirror && peer->chans[WF_TCP_BULK].state != WF_TCP_UP)
		bulk = false;
	if (wf_unlikely(bulk && peer->rails))
		return wf_tcp_rail_choose(peer);
	return &peer->chans[bulk ? WF_TCP_BULK : WF_TCP_SMALL];
}

void wf_tcp_work_queue(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_chan *chan)
{
	op->chan = chan;
	op->where = WF_TCP_TODO;
	wf_base_list_add_tail(&chan->todo, &op->link);
	if (wf_likely(chan->state == WF_TCP_UP))
		wf_tcp_out_activate(dev, chan);
	else
		wf_tcp_conn_want(dev, chan);
}

void wf_tcp_work_serve(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_peer *peer)
{
	wf_tcp_work_queue(dev, op, choose(op, peer));
}

/* Whether the next descriptor has to wait for the end of some read. */
static bool must_wait(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	if (wf_likely(dev->read_ids.in_use < WF_TCP_READS_MOST) ||
	    wf_nic_soft_next_op(qp) != WF_NIC_OP_READ)
		return false;
	dev->ring_waits = true;
	return true;
}

/* Whether the second piece has to go to a place, because no receive holds it.
 * One that a receive holds is there as soon without. */
static bool is_split(const struct wf_tcp_dev *dev,
		     const struct wf_nic_request *req)
{
	return wf_unlikely(req->len > dev->nic.caps.max_msg) &&
	       req->op == WF_NIC_OP_SEND;
}

/* Makes @op one of @qp's. Returns the channel that it takes. */
static struct wf_tcp_chan *adopt(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				 struct wf_tcp_op *op, struct wf_tcp_peer *peer)
{
	op->qp = qp;
	op->src_qpn = qp->num;
	if (is_split(dev, &op->req)) {
		op->split = true;
		op->pad = (uint8_t)(wf_tcp_split_at(op->req.sge[0].len) -
				    op->req.sge[0].len);
	}
	if (!op->quiet)
		dev->loud++;
	peer->used_at = dev->now;
	dev->held_back += op->req.len;
	wf_base_list_add_tail(&qp_of(qp)->ops, &op->qp_link);
	return choose(op, peer);
}

static enum wf_nic_status check_send(struct wf_tcp_dev *dev,
				     const struct wf_nic_sge *sge, int count,
				     struct wf_nic_request *req)
{
	uint32_t most = dev->nic.caps.max_msg;

	req->sges = (uint8_t)count;
	for (int i = 0; i < count; i++) {
		struct wf_nic_local *to = &req->sge[i];

		if (i && dev->nic.caps.max_placed && req->len)
			most = dev->nic.caps.max_placed;
		to->addr = (uintptr_t)sge[i].addr;
		to->len = sge[i].len;
		to->lkey = sge[i].lkey;
		if (to->len > most - req->len)
			return WF_NIC_LOCAL_LEN;
		req->len += to->len;
		if (to->len && !wf_nic_mr_local(&dev->nic.mrs, to->lkey,
						to->addr, to->len, 0))
			return WF_NIC_BAD_LKEY;
	}
	return WF_NIC_OK;
}

static void describe(struct wf_tcp_op *op, uint16_t req_id,
		     const struct wf_nic_wr *wr)
{
	memset(op, 0, offsetof(struct wf_tcp_op, req.sge));
	wf_base_list_init(&op->nack_link);
	op->quiet = wr->flags & WF_NIC_WR_QUIET;
	op->req.req_id = req_id;
	op->req.has_imm = wr->flags & WF_NIC_WR_IMM;
	op->req.imm = op->req.has_imm ? wr->imm : 0;
	op->req.dst_qpn = wr->qpn;
	op->req.ah = wr->ah;
	op->req.qkey = wr->qkey;
}

struct wf_tcp_op *wf_tcp_work_send(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				   uint16_t req_id, const struct wf_nic_wr *wr,
				   const struct wf_nic_sge *sge, int count,
				   int *err)
{
	struct wf_nic_ah *ah = wf_nic_ah_find(&dev->nic, wr->ah);
	struct wf_tcp_op *op = wf_base_pool_get(&dev->ops);
	enum wf_nic_status status;

	*err = op ? 0 : -ENOMEM;
	if (!op)
		return NULL;
	wf_tcp_count(dev, tx_msgs, 1);
	describe(op, req_id, wr);
	status = check_send(dev, sge, count, &op->req);
	if (!ah)
		status = WF_NIC_BAD_AH;
	else if (wf_unlikely(((struct wf_tcp_peer *)ah->dev)->lost))
		status = WF_NIC_ABORT;
	if (wf_unlikely(status != WF_NIC_OK)) {
		wf_nic_soft_done(&dev->soft, qp, qp_of(qp)->stuck, req_id,
				 WF_NIC_OP_SEND, status);
		wf_tcp_work_free(dev, op);
		return NULL;
	}
	op->chan = adopt(dev, qp, op, ah->dev);
	if (wr->flags & WF_NIC_WR_RUN) {
		wf_tcp_run_catch_up(sge, wr);
		wf_tcp_run_begin(op);
	}
	return op;
}

enum wf_nic_run wf_tcp_work_first(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, const struct wf_nic_wr *wr,
				  const struct wf_nic_sge *sge)
{
	struct wf_nic_ah *ah = wf_nic_ah_find(&dev->nic, wr->ah);
	struct wf_tcp_peer *peer = ah ? ah->dev : NULL;
	struct wf_tcp_op *op;
	bool full;
	ssize_t n;

	if (!peer || peer->lost || sge->len > dev->nic.caps.max_msg ||
	    !wf_tcp_out_is_free(&peer->chans[WF_TCP_SMALL], sge->len) ||
	    !wf_nic_mr_local(&dev->nic.mrs, sge->lkey, (uintptr_t)sge->addr,
			     sge->len, 0))
		return WF_NIC_RUN_OPEN;
	op = wf_base_pool_get(&dev->ops);
	if (!op)
		return WF_NIC_RUN_OPEN;
	n = wf_tcp_run_write(&peer->chans[WF_TCP_SMALL], qp, wr, sge, &full);
	dev->now = wf_base_clock_ns();
	wf_tcp_run_catch_up(sge, wr);
	wf_tcp_count(dev, tx_msgs, 1);
	describe(op, req_id, wr);
	op->run = 1;
	op->req.sges = 1;
	op->req.len = sge->len;
	op->req.sge[0] = (struct wf_nic_local){ (uintptr_t)sge->addr, sge->len,
						sge->lkey };
	op->chan = adopt(dev, qp, op, peer);
	return wf_tcp_out_wrote(dev, op, n, full) ? WF_NIC_RUN_LEFT :
						    WF_NIC_RUN_CLOSED;
}

/* False: no room for another; the descriptor stays in the ring. */
static bool take_one(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	static const uint8_t kinds[] = {
		[WF_NIC_OP_SEND] = WF_TCP_OP_SEND,
		[WF_NIC_OP_READ] = WF_TCP_OP_READ,
		[WF_NIC_OP_WRITE] = WF_TCP_OP_WRITE,
	};
	struct wf_tcp_peer *peer = NULL;
	enum wf_nic_status status;
	struct wf_tcp_op *op;

	if (must_wait(dev, qp))
		return false;
	op = wf_base_pool_get(&dev->ops);
	if (!op) {
		/* The user has rung for this descriptor and does not ring again:
		 * the next pass looks at the ring. */
		dev->ring_waits = true;
		return false;
	}
	memset(op, 0, offsetof(struct wf_tcp_op, req));
	wf_base_list_init(&op->nack_link);
	status = wf_nic_soft_take(&dev->soft, qp, &op->req);
	if (status == WF_NIC_OK) {
		peer = wf_nic_ah_find(&dev->nic, op->req.ah)->dev;
		if (wf_unlikely(peer->lost))
			status = WF_NIC_ABORT;
	}
	if (status != WF_NIC_OK) {
		wf_nic_soft_done(&dev->soft, qp, qp_of(qp)->stuck,
				 op->req.req_id, (enum wf_nic_opcode)op->req.op,
				 status);
		wf_tcp_work_free(dev, op);
		return true;
	}
	op->kind = kinds[op->req.op];
	if (op->kind == WF_TCP_OP_READ) {
		op->read_id = wf_queue_ids_get(&dev->read_ids);
		dev->reads[wf_queue_ids_index(&dev->read_ids, op->read_id)] =
			op;
	}
	wf_tcp_work_queue(dev, op, adopt(dev, qp, op, peer));
	return true;
}

void wf_tcp_work_take(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	int ready;

	if (qp->flushed)
		return;
	ready = wf_queue_work_poll(&qp->sq_work);
	if (ready < 0) {
		wf_warn("queue pair %u: invalid doorbell", qp->num);
		return;
	}
	while (ready-- && take_one(dev, qp))
		;
}

static void flush_sinks(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->sinks) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, sink_link);
		struct wf_tcp_sink *sink = &conn->sink;

		if ((sink->kind != WF_TCP_SINK_RECV &&
		     sink->kind != WF_TCP_SINK_WRITE) ||
		    sink->qp != qp)
			continue;
		if (sink->kind == WF_TCP_SINK_RECV) {
			wf_tcp_in_lose_place(dev, conn);
			wf_nic_soft_flush_recv(&dev->soft, qp, qp_of(qp)->stuck,
					       &sink->desc);
		}
		sink->kind = WF_TCP_SINK_DROP;
		sink->status = WF_NIC_BAD_QPN;
	}
}

void wf_tcp_work_flush(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	struct wf_tcp_qp *mine = qp_of(qp);

	wf_tcp_settle(dev);
	while (!wf_base_list_empty(&mine->ops))
		wf_tcp_work_end(dev,
				wf_container_of(mine->ops.next,
						struct wf_tcp_op, qp_link),
				WF_NIC_FLUSHED);
	flush_sinks(dev, qp);
	wf_tcp_place_flush(dev, qp);
	while (mine->spares)
		wf_nic_soft_flush_recv(&dev->soft, qp, mine->stuck,
				       &mine->spare[--mine->spares]);
	wf_nic_soft_flush(&dev->soft, qp, mine->stuck);
}
