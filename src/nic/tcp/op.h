/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of nic/tcp: requests, each of which is one of ours, one read that we
 * serve, or one refusal. dev.h includes it.
 */
#ifndef WF_NIC_TCP_OP_H
#define WF_NIC_TCP_OP_H

#include "base/list.h"
#include "nic/soft.h"
#include "nic/tcp/frame_defs.h"

struct wf_tcp_chan;
struct wf_tcp_conn;
struct wf_tcp_dev;
struct wf_tcp_peer;

enum wf_tcp_op_kind {
	WF_TCP_OP_SEND,
	WF_TCP_OP_WRITE,
	WF_TCP_OP_READ,
	WF_TCP_OP_SERVE, /* a peer's read */
	WF_TCP_OP_NACK,	 /* a refusal */
};

enum wf_tcp_op_where {
	WF_TCP_NOWHERE, /* READ: all that is left is to wait for the data */
	WF_TCP_TODO,	/* not written, or not all of it */
	WF_TCP_FLIGHT,	/* written, not acknowledged */
};

struct wf_tcp_op {
	struct wf_list link;	  /* chan->todo, chan->flight, peer->reads */
	struct wf_list qp_link;	  /* of its queue pair; SERVE: peer->served */
	struct wf_list nack_link; /* NACK: in a list of the refused's channel */
	struct wf_tcp_chan *chan;
	struct wf_nic_qp *qp; /* NULL: SERVE, NACK, or its request is over */
	uint8_t kind;
	uint8_t where;
	uint8_t status; /* how it ends once it is acknowledged; SERVE: why it
			   cannot be served; NACK: why */
	bool over;	/* its end is not reported: the frame is only counted */
	uint8_t pad;	/* SEND in two pieces: bytes between them */
	bool split;	/* WF_TCP_SPLIT */
	bool quiet;	/* nobody waits for its end */
	bool lone;	/* WF_TCP_WAITS */
	uint16_t src_qpn;
	/* SEND: run.c. */
	uint16_t run;  /* messages in it; 0: it is not a run */
	uint16_t sent; /* of them written and counted, until all are */
	uint16_t done; /* of them acknowledged */
	uint16_t cut;  /* those before them, that are in an op of their own */
	uint16_t good; /* status: those before the first that was refused, with
			  cut */
	uint32_t read_id; /* READ: ours; SERVE: the peer's */
	uint32_t seq;	  /* NACK: of the refused frame */
	/* SERVE: raddr is here. */
	struct wf_nic_request req;
};

/* -- settle.c: the end of requests ------------------------------------------- */

/* The peer says that it has @count of the channel's frames. False: it cannot
 * have. Their requests end in wf_tcp_settle(). */
bool wf_tcp_settle_heard(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			 uint32_t count);
/* The peer refuses frame @seq: its request ends with @status. */
void wf_tcp_settle_refused(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			   uint32_t seq, uint8_t status);
void wf_tcp_settle(struct wf_tcp_dev *dev);

static inline uint32_t wf_tcp_op_payload(const struct wf_tcp_op *op)
{
	if (op->kind == WF_TCP_OP_READ || op->kind == WF_TCP_OP_NACK ||
	    (op->kind == WF_TCP_OP_SERVE && op->status))
		return 0;
	return op->req.len + op->pad;
}

static inline uint32_t wf_tcp_op_frames(const struct wf_tcp_op *op)
{
	return op->run ? op->run : 1;
}

/* Frames of it that are counted and not acknowledged. */
static inline uint32_t wf_tcp_op_flying(const struct wf_tcp_op *op)
{
	if (op->where == WF_TCP_FLIGHT)
		return wf_tcp_op_frames(op) - op->done;
	return op->run && op->where == WF_TCP_TODO ? op->sent - op->done : 0;
}

/* Of the window. Frames without a payload are counted for more than their
 * bytes, because the receiver keeps more for each. A run has its heads in its
 * payload. */
static inline uint32_t wf_tcp_op_cost(const struct wf_tcp_op *op)
{
	return (op->run ? op->run : 2) * (uint32_t)sizeof(struct wf_tcp_head) +
	       wf_tcp_op_payload(op);
}

/* -- run.c: short messages in one request ------------------------------------ */

/* Writes one message that is in no op yet. As wf_tcp_stream_send(). */
ssize_t wf_tcp_run_write(struct wf_tcp_chan *chan, const struct wf_nic_qp *qp,
			 const struct wf_nic_wr *wr,
			 const struct wf_nic_sge *sge, bool *full);
/* Copies what is late (struct wf_nic_wr) to where it belongs. */
void wf_tcp_run_catch_up(const struct wf_nic_sge *sge,
			 const struct wf_nic_wr *wr);
/* The first message of @op, which is to be a run. */
void wf_tcp_run_begin(struct wf_tcp_op *op);
/* The op of @qp's request @req_id, if a message can be added to it. */
struct wf_tcp_op *wf_tcp_run_open(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, uint16_t ah);
/* Adds the next message, of @len bytes with its head. */
void wf_tcp_run_add(struct wf_tcp_dev *dev, struct wf_tcp_op *op, uint32_t len);
/* Writes the same acknowledgement into all heads of a run that is about to leave. */
void wf_tcp_run_stamp(const struct wf_tcp_op *op, const uint32_t ack[2]);
/* The first @bytes of it were written, and the others follow. */
void wf_tcp_run_sent(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     uint32_t bytes);
/* Ends a run of which only a part was written. Messages that were written and not
 * acknowledged still count. */
void wf_tcp_run_leave(struct wf_tcp_op *op);
/* The peer has the first @count of the messages that are not acknowledged, and not
 * the others. False: they are not to be sent again. */
bool wf_tcp_run_cut(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		    uint32_t count);
/* The op of the channel's frame *@at, from 1 on, of those that are counted and not
 * acknowledged; *@at is which of the op's it is, from 0 on. NULL: none. */
struct wf_tcp_op *wf_tcp_run_find(const struct wf_tcp_chan *chan, uint32_t *at);
/* The peer has refused message @at of @op. */
void wf_tcp_run_refused(struct wf_tcp_op *op, uint32_t at, uint8_t status);
/* Messages of a run that are there, in the end. */
uint32_t wf_tcp_run_good(const struct wf_tcp_op *op, enum wf_nic_status status);
/* Has the user take whole messages where they lie. Returns the bytes that it has
 * used; 0: the next frame is not one that he takes so. */
uint32_t wf_tcp_run_hear(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len);
/* Takes several short messages, all of which are in @bytes, into one receive.
 * Returns the bytes that it has used; 0: the next frame is to be taken by
 * itself. */
uint32_t wf_tcp_run_take(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len);

/* -- work.c: requests -------------------------------------------------------- */

void wf_tcp_work_take(struct wf_tcp_dev *dev, struct wf_nic_qp *qp);
/* A message that is in no ring. NULL: it is queued, has failed, or (*@err) there
 * is no memory for it. Else it is to be queued. */
struct wf_tcp_op *wf_tcp_work_send(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				   uint16_t req_id, const struct wf_nic_wr *wr,
				   const struct wf_nic_sge *sge, int count,
				   int *err);
/* The same of a run that can be written at once: the notes about it are made
 * after that. WF_NIC_RUN_LEFT, WF_NIC_RUN_CLOSED, or WF_NIC_RUN_OPEN: it
 * cannot, and nothing has been done. */
enum wf_nic_run wf_tcp_work_first(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, const struct wf_nic_wr *wr,
				  const struct wf_nic_sge *sge);
/* The end of an op: its completion, and its memory once it is not counted. */
void wf_tcp_work_end(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     enum wf_nic_status status);
/* Frees an op that is in no list any more. */
void wf_tcp_work_free(struct wf_tcp_dev *dev, struct wf_tcp_op *op);
void wf_tcp_work_queue(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_chan *chan);
/* A read of @peer's, by the channel for its length. */
void wf_tcp_work_serve(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_peer *peer);
void wf_tcp_work_flush(struct wf_tcp_dev *dev, struct wf_nic_qp *qp);
void wf_tcp_work_complete(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe);

#endif
