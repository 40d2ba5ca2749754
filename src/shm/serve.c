/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on remote memory at their target.
 */
#include "shm/serve.h"

#include <errno.h>

#include <rdma/fabric.h>

#include "op/serve.h"
#include "shm/ep.h"

/* Remote CQ data comes alone: it takes no receive. */
static void report_data(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	const struct wf_comp comp = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = req->total,
		.data = req->data,
		.src = in->src,
	};

	if (!in->rxq->compq->discards)
		wf_op_compq_push(in->rxq->compq, &comp);
}

/* The operation ends here, well or not. */
static void conclude(struct wf_shm_in *in, const struct wf_shm_request *req,
		     bool write)
{
	struct wf_shm_ep *ep = in->ep;
	bool failed = in->remote_status;

	in->remote_status = 0;
	if (failed)
		return;
	wf_op_cntr_add(write ? ep->remote_writes : ep->remote_reads, 1);
	if (write && (req->flags & WF_SHM_SLOT_DATA))
		report_data(in, req);
}

static void reply(struct wf_shm_in *in, const struct wf_shm_request *req,
		  uint64_t value)
{
	const struct wf_shm_kept_reply answer = {
		.op = req->rma.op,
		.kind = WF_SHM_REPLY_FINAL,
		.status = in->remote_status,
		.share = req->rma.buffer,
		.len = value,
	};

	if (req->flags & WF_SHM_SLOT_ACK)
		wf_shm_in_reply(in, &answer);
}

/* The bytes of one piece. After a piece that was refused the others are, too:
 * their operation counts nowhere. */
static struct wf_served served(const struct wf_shm_in *in,
			       const struct wf_shm_request *req)
{
	return (struct wf_served){
		.addr = req->rma.addr,
		.len = req->rma.len,
		.key = req->rma.key,
		.last = (req->rma.flags & WF_SHM_RMA_LAST) &&
			!in->remote_status,
	};
}

/* An endpoint without remote access lends nothing, whatever others of its domain
 * have registered. Its welcome says so; the peer may not have listened. */
static int may_serve(const struct wf_shm_in *in,
		     const struct wf_shm_request *req)
{
	if (in->ep->host->is_target || !req->rma.len)
		return 0;
	return -FI_EKEYREJECTED;
}

static void note_refusal(struct wf_shm_in *in, int err)
{
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_served, 1);
	if (!err)
		return;
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_keys_rejected, 1);
	in->remote_status = -err;
}

int wf_shm_serve_write(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	struct wf_served at = served(in, req);
	int err = may_serve(in, req);

	/* Only the last piece is answered: a peer that asks for an answer
	 * before would be owed a reply for ever. */
	if (req->rma.len > req->bytes_len ||
	    ((req->flags & WF_SHM_SLOT_ACK) &&
	     !(req->rma.flags & WF_SHM_RMA_LAST)))
		return -EPROTO;
	if (!in->remote_status && !err)
		err = wf_op_serve_put(in->ep->regs, &at, req->bytes);
	note_refusal(in, err);
	if (req->rma.flags & WF_SHM_RMA_LAST) {
		reply(in, req, 0);
		conclude(in, req, true);
	}
	return 0;
}

static uint8_t *return_of(const struct wf_shm_in *in,
			  const struct wf_shm_request *req)
{
	return in->region.returns + (size_t)req->rma.buffer * WF_SHM_RETURN_MAX;
}

int wf_shm_serve_read(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	struct wf_served at = served(in, req);
	int err = may_serve(in, req);

	if (req->rma.len > WF_SHM_RETURN_MAX ||
	    req->rma.buffer >= WF_SHM_RETURNS ||
	    !(req->flags & WF_SHM_SLOT_ACK))
		return -EPROTO;
	if (!err)
		err = wf_op_serve_get(in->ep->regs, &at, return_of(in, req));
	note_refusal(in, err);
	reply(in, req, 0);
	if (req->rma.flags & WF_SHM_RMA_LAST)
		conclude(in, req, false);
	return 0;
}

int wf_shm_serve_atomic(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	const struct wf_shm_rma *rma = &req->rma;
	struct wf_served at = served(in, req);
	uint64_t value = 0;
	struct wf_served_amo amo = {
		.kind = rma->amo_kind,
		.op = rma->amo_op,
		.type = rma->amo_type,
		.operand = req->bytes,
		.compare = req->bytes + rma->len,
		.result = (uint8_t *)&value,
	};
	int bytes = wf_op_serve_amo_bytes(&amo, rma->len);
	bool fetches = amo.kind != WF_OP_AMO_WRITE;
	int err = may_serve(in, req);

	if (bytes < 0 || (size_t)bytes > req->bytes_len ||
	    (fetches && !(req->flags & WF_SHM_SLOT_ACK)))
		return -EPROTO;
	if (fetches && rma->len > sizeof(value)) {
		if (rma->buffer >= WF_SHM_RETURNS)
			return -EPROTO;
		amo.result = return_of(in, req);
	}
	if (!err)
		err = wf_op_serve_amo(in->ep->regs, &at, &amo);
	note_refusal(in, err);
	reply(in, req, value);
	/* fi_ep_bind(3): for an endpoint what fetches is a read; for a region
	 * (op/serve.c) what modifies is a write. */
	if (rma->flags & WF_SHM_RMA_LAST)
		conclude(in, req, !fetches);
	return 0;
}

int wf_shm_serve_word(struct wf_shm_in *in, const struct wf_shm_slot *slot,
		      uint64_t word)
{
	const uint64_t bytes[2] = { slot->data, slot->spare };
	const struct wf_shm_request req = {
		.rma = slot->rma,
		.flags = WF_SHM_WORD_FLAGS(word),
		.bytes = (const uint8_t *)bytes,
		.bytes_len = sizeof(bytes),
	};

	if (WF_SHM_WORD_LEN(word) || req.rma.len != sizeof(bytes[0]))
		return -EPROTO;
	/* The sender has this line, because it polls it: to get it takes as long
	 * as what follows. */
	wf_shm_reply_prefetch(&in->replies);
	return wf_shm_serve_atomic(in, &req);
}

int wf_shm_serve_note(struct wf_shm_in *in, const struct wf_shm_request *req)
{
	bool write = req->rma.flags & WF_SHM_RMA_WRITE;

	if (!(req->rma.flags & WF_SHM_RMA_LAST) ||
	    (req->flags & WF_SHM_SLOT_ACK))
		return -EPROTO;
	if (!in->remote_status)
		wf_op_serve_note(in->ep->regs, req->rma.key, write);
	conclude(in, req, write);
	return 0;
}

static_assert(WF_OP_SERVE_AMO_MAX == WF_SHM_RETURN_MAX,
	      "an operation is no larger than what it returns");
