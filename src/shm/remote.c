/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of the protocols for remote memory.
 */
#include "shm/remote.h"

#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "op/iov.h"
#include "shm/conn_defs.h"
#include "shm/ep.h"
#include "shm/put.h"
#include "shm/window.h"

/* Above this a value that was fetched does not fit the reply itself. */
#define REPLY_BYTES 8

struct wf_shm_remote_piece wf_shm_remote_next(const struct wf_shm_tx *tx,
					      uint32_t max)
{
	const struct wf_remote *remote = tx->req->remote;
	const struct wf_shm_done *done = &tx->done;
	const struct wf_remote_seg *seg = &remote->segs[done->seg];
	struct wf_shm_remote_piece piece = { .last = true };

	if (!remote->seg_count)
		return piece;
	piece.addr = seg->addr + done->seg_done;
	piece.key = seg->key;
	piece.len = max;
	if (seg->len - done->seg_done <= max)
		piece.len = (uint32_t)(seg->len - done->seg_done);
	piece.last = done->seg + 1 == remote->seg_count &&
		     done->seg_done + piece.len == seg->len;
	return piece;
}

void wf_shm_remote_advance(struct wf_shm_tx *tx,
			   const struct wf_shm_remote_piece *piece)
{
	struct wf_shm_done *done = &tx->done;

	done->issued = piece->last;
	done->seg_done += piece->len;
	if (!piece->last &&
	    done->seg_done == tx->req->remote->segs[done->seg].len) {
		done->seg++;
		done->seg_done = 0;
	}
}

uint64_t wf_shm_remote_access(const struct wf_tx *req)
{
	if (req->kind == WF_TX_WRITE)
		return FI_REMOTE_WRITE;
	if (req->kind == WF_TX_READ || req->remote->amo_op == FI_ATOMIC_READ)
		return FI_REMOTE_READ;
	return req->remote->amo_kind == WF_OP_AMO_WRITE ?
		       FI_REMOTE_WRITE :
		       FI_REMOTE_WRITE | FI_REMOTE_READ;
}

/* Whether accesses of that kind are reported to the peer's endpoint. */
static bool is_reported(const struct wf_shm_out *out, uint64_t access)
{
	return out->remote_flags &
	       (access & FI_REMOTE_WRITE ? WF_SHM_WELCOME_WRITES :
					   WF_SHM_WELCOME_READS);
}

void *wf_shm_remote_mapped(const struct wf_shm_out *out,
			   const struct wf_tx *req, bool *events)
{
	const struct wf_remote_seg *seg = req->remote->segs;
	uint64_t access = wf_shm_remote_access(req);
	const struct wf_shm_window *w;

	if (req->remote->seg_count != 1 || !seg->len)
		return NULL;
	w = wf_shm_window_find(out->windows, &out->regs.view, seg, access);
	if (!w)
		return NULL;
	*events = w->events || is_reported(out, access);
	return wf_shm_window_at(w, seg);
}

/* There is no memory to map the table now. Operations wait as long as for a
 * connection; afterwards they fail at once, until there is some. The pieces
 * behind them go on. */
static int wait_for_memory(struct wf_shm_out *out, int err)
{
	uint64_t now = wf_base_clock_ns();

	if (!out->regs_until) {
		uint64_t ms = out->ep->attr.connect_timeout_ms;

		out->regs_until = now + ms * WF_NS_PER_MS;
		wf_warn("a peer's table of registrations cannot be mapped: %s; "
			"tried for %llu ms",
			strerror(err), (unsigned long long)ms);
	}
	if (now >= out->regs_until)
		return -FI_ENOMEM;
	out->ep->starved = true;
	wf_transport_host_wake(out->ep->host);
	return -EAGAIN;
}

/* The first access. Not inlined: once for a channel. 0; -EAGAIN: try again later;
 * -FI_ENOMEM: that was done long enough; -EPROTO: what the peer sent cannot be
 * mapped, ever. */
static __attribute__((noinline)) int map_regs(struct wf_shm_out *out)
{
	int err = wf_shm_regs_map(&out->regs);

	if (!err)
		return 0;
	if (err == -ENOMEM || err == -EAGAIN || err == -ENFILE)
		return wait_for_memory(out, -err);
	wf_warn("the peer's table of registrations is invalid: %s",
		strerror(-err));
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_protocol_errors, 1);
	wf_shm_out_mark_dead(out, EPROTO, false);
	return -EPROTO;
}

int wf_shm_remote_check(struct wf_shm_out *out, const struct wf_shm_tx *tx,
			struct iovec *to, size_t *count, bool *events)
{
	const struct wf_remote *remote = tx->req->remote;
	uint64_t access = wf_shm_remote_access(tx->req);
	bool has_table = !(out->remote_flags & WF_SHM_WELCOME_NO_TABLE);

	*count = 0;
	*events = is_reported(out, access);
	if (wf_unlikely(!out->regs.view.entries) && has_table) {
		int err = map_regs(out);

		if (err)
			return err;
	}
	for (uint32_t i = 0; i < remote->seg_count; i++) {
		const struct wf_reg_access want = {
			.addr = remote->segs[i].addr,
			.len = remote->segs[i].len,
			.key = remote->segs[i].key,
			.access = access,
		};
		struct wf_reg_target target;
		int err;

		/* Nothing is touched: no key is needed. */
		if (!want.len)
			continue;
		err = has_table ?
			      wf_op_reg_find_known(&out->regs.view, &out->known,
						   &want, &target) :
			      -ENOENT;
		if (err == -EAGAIN)
			return err;
		if (err) {
			wf_shm_stats_add(&out->ep->stats,
					 WF_SHM_STAT_keys_rejected, 1);
			return -FI_EKEYREJECTED;
		}
		*events |= target.flags & WF_REG_EVENTS;
		/* From the next operation on. */
		if (wf_unlikely(target.flags & WF_REG_FILE))
			wf_shm_window_open(out, want.key);
		for (uint32_t j = 0; j < target.seg_count; j++)
			to[(*count)++] = target.segs[j];
	}
	return 0;
}

size_t wf_shm_remote_record(size_t bytes)
{
	return bytes <= WF_SHM_RMA_BYTES_MAX ? 0 : bytes;
}

void wf_shm_remote_put(struct wf_shm_out *out, const struct wf_shm_tx *tx,
		       const struct wf_shm_remote_piece *piece,
		       enum wf_shm_kind kind, uint8_t buffer, size_t bytes,
		       void (*fill)(const struct wf_shm_tx *tx, uint8_t *to,
				    uint32_t len))
{
	const struct wf_tx *req = tx->req;
	const struct wf_remote *remote = req->remote;
	size_t record = wf_shm_remote_record(bytes);
	struct wf_shm_slot *slot = wf_shm_put_slot(out);
	uint8_t *to = slot->rma_bytes;
	uint8_t flags = tx->slot_flags & (uint8_t)~WF_SHM_SLOT_ACK;

	if (!piece->last)
		flags = 0;
	/* A write is acknowledged as a whole, a note not at all. */
	if ((tx->slot_flags & WF_SHM_SLOT_ACK) && kind != WF_SHM_KIND_NOTE &&
	    (piece->last || kind != WF_SHM_KIND_WRITE))
		flags |= WF_SHM_SLOT_ACK;
	if (record)
		to = wf_shm_put_record(out, record);
	slot->tag = req->len;
	slot->data = req->data;
	slot->rma = (struct wf_shm_rma){
		.addr = piece->addr,
		.key = piece->key,
		.op = tx->op,
		.len = piece->len,
		.flags = (piece->last ? WF_SHM_RMA_LAST : 0) |
			 (req->kind == WF_TX_READ ? 0 : WF_SHM_RMA_WRITE),
		.buffer = buffer,
		.amo_kind = remote->amo_kind,
		.amo_op = remote->amo_op,
		.amo_type = remote->amo_type,
	};
	if (bytes)
		fill(tx, to, piece->len);
	wf_shm_put_publish(out, slot, record, kind,
			   flags | (record ? wf_shm_put_turn(out) : 0));
}

int wf_shm_remote_take_return(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	if (!wf_shm_out_has_returns(out))
		return -1;
	for (int i = 0; i < WF_SHM_RETURNS; i++) {
		if (out->returns[i])
			continue;
		out->returns[i] = tx;
		return i;
	}
	return -1;
}

/* Takes what came back out of the ring. False when the reply is not about a
 * piece that waits. */
static bool take_bytes(struct wf_shm_out *out, struct wf_shm_tx *tx,
		       const struct wf_shm_reply *reply)
{
	const struct wf_tx *req = tx->req;
	const struct wf_remote *remote = req->remote;
	struct wf_shm_done *done = &tx->done;
	bool atomic = req->kind == WF_TX_ATOMIC;
	const struct iovec *to = atomic ? remote->result : req->iov;
	size_t count = atomic ? remote->result_count : req->iov_count;
	uint64_t left = wf_op_iov_len(to, count) - done->answered;
	uint64_t len = left;

	/* Pieces were cut in order, at the ends of segments and at the size of
	 * a return. */
	for (uint64_t i = 0, at = 0; i < remote->seg_count; i++) {
		at += remote->segs[i].len;
		if (at <= done->answered)
			continue;
		if (at - done->answered < len)
			len = at - done->answered;
		break;
	}
	if (len > WF_SHM_RETURN_MAX)
		len = WF_SHM_RETURN_MAX;
	if (atomic && len <= REPLY_BYTES) {
		if (!reply->status)
			wf_op_iov_scatter(to, count, done->answered,
					  &reply->len, len);
	} else {
		if (reply->share >= WF_SHM_RETURNS ||
		    out->returns[reply->share] != tx)
			return false;
		out->returns[reply->share] = NULL;
		if (!reply->status)
			wf_op_iov_scatter(to, count, done->answered,
					  out->region.returns +
						  (size_t)reply->share *
							  WF_SHM_RETURN_MAX,
					  len);
	}
	done->answered += len;
	return true;
}

bool wf_shm_remote_reply(struct wf_shm_out *out, struct wf_shm_tx *tx,
			 const struct wf_shm_reply *reply)
{
	struct wf_shm_done *done = &tx->done;
	bool returns = tx->req->kind == WF_TX_READ ||
		       (tx->req->kind == WF_TX_ATOMIC &&
			tx->req->remote->amo_kind != WF_OP_AMO_WRITE);

	if (reply->kind != WF_SHM_REPLY_FINAL || !done->outstanding)
		return false;
	if (returns && !take_bytes(out, tx, reply))
		return false;
	done->outstanding--;
	if (reply->status && !done->status)
		done->status = reply->status;
	if (done->issued && !done->outstanding)
		wf_shm_out_finish(out, tx, done->status);
	return true;
}
