/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of a channel: queueing, credit, replies, and what happens
 * when the peer goes away.
 */
#include "shm/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rest.h"
#include "op/iov.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/letter.h"
#include "shm/link.h"
#include "shm/offer.h"
#include "shm/pace.h"
#include "shm/proto.h"
#include "shm/put.h"
#include "shm/remote.h"
#include "shm/share.h"
#include "shm/trace.h"
#include "shm/tx.h"
#include "shm/window.h"
#include "shm/word.h"

/* A lap of slots stays in the first page and a lap of lines is 8 KiB long where
 * the receiver keeps up: both directions stay in a first-level cache of 32 KiB.
 * Measured on a Zen 4 (docs/shm.md). */
#define SLOT_WINDOW WF_SHM_FIRST_SLOTS
#define LINE_WINDOW 128

/* Looks for room before an injected message is copied. A receiver that polls
 * makes room within 1 to 2 us; a copy, and each message behind it, takes more. */
#define LOOKS_BEFORE_COPY 64

/* Slots written between two looks at the credit beyond the window. */
#define SLOT_STEP 32

static struct wf_shm_tx *to_tx(struct wf_list *link)
{
	return wf_container_of(link, struct wf_shm_tx, link);
}

struct wf_shm_out *wf_shm_out_open(struct wf_shm_ep *ep, uint64_t dst,
				   const struct wf_addr *addr)
{
	struct wf_shm_out *out = aligned_alloc(
		WF_LINE, (sizeof(*out) + WF_LINE - 1) & ~(WF_LINE - 1ul));
	uint64_t now = wf_base_clock_ns();

	if (!out)
		return NULL;
	*out = (struct wf_shm_out){
		.ep = ep,
		.dst = dst,
		.addr = *addr,
		.state = WF_SHM_OUT_CONNECTING,
		.sock = { .fd = -1, .ready = wf_shm_conn_out_ready },
		.old = { .fd = -1, .ready = wf_shm_link_old_ready },
		.board = { .memfd = -1 },
		.regs = { .memfd = -1 },
		.chunk = ep->attr.chunk,
		.since = now,
		.deadline = now + ep->attr.connect_timeout_ms * WF_NS_PER_MS,
	};
	wf_base_list_init(&out->pending);
	wf_base_list_init(&out->pending_link);
	wf_base_list_init(&out->waiting_link);
	wf_base_list_add_tail(&ep->all_outs, &out->link);
	ep->connecting++;
	ep->tend_at = 0;
	return out;
}

void wf_shm_out_mark_dead(struct wf_shm_out *out, int err, bool keep)
{
	if (out->state == WF_SHM_OUT_DEAD)
		return;
	if (out->state == WF_SHM_OUT_OPEN)
		out->ep->open_outs--;
	else
		out->ep->connecting--;
	out->state = WF_SHM_OUT_DEAD;
	out->slots_free = 0;
	out->err = err;
	out->keep = keep;
	out->ep->reap = true;
	wf_shm_ep_busy(out->ep);
	wf_transport_host_wake(out->ep->host);
}

static void stop_sharing(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	for (uint32_t bits = out->sharing; bits; bits &= bits - 1) {
		uint32_t index = (uint32_t)__builtin_ctz(bits);

		if (out->shared[index] == tx)
			out->sharing &= ~(1u << index);
	}
}

static void stop_waiting(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	stop_sharing(out, tx);
	wf_base_table_del(&out->waiting, wf_base_table_number(tx->op));
	if (!out->waiting.count)
		wf_base_list_del(&out->waiting_link);
}

static bool is_waiting(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return wf_base_table_get(&out->waiting, wf_base_table_number(tx->op)) ==
	       tx;
}

/* Keeps the receiver from reading our buffers, which the application may unmap
 * after their completion. A receiver in this process that is copying is waited
 * for. Pairs with read_part() (pull.c). */
static void leave(struct wf_shm_out *out)
{
	struct wf_shm_header *header = out->region.header;
	struct wf_rest rest = { 0 };

	if (!out->region.base)
		return;
	wf_shared_store(&header->sender_left, 1, seq_cst);
	while (out->mover.way == WF_SHM_WAY_SELF &&
	       wf_shared_load(&header->reading, seq_cst))
		wf_base_rest(&rest);
}

/* Takes every operation off the channel; fails them when @err is set. */
static void drop_all(struct wf_shm_out *out, int err)
{
	struct wf_shm_ep *ep = out->ep;
	struct wf_list *pos, *tmp;

	leave(out);
	wf_shm_ep_busy(ep); /* it may be the one that was asked */
	out->early = NULL;
	for (uint32_t i = 0; out->waiting.count && i < out->waiting.room; i++) {
		struct wf_shm_tx *tx = wf_base_table_get(&out->waiting, i);

		if (!tx)
			continue;
		wf_base_list_del(&tx->link); /* may be pending as well */
		stop_waiting(out, tx);
		if (err)
			wf_shm_tx_fail(ep, tx, err);
		wf_shm_tx_release(ep, tx);
	}
	wf_list_for_each (pos, tmp, &out->pending) {
		wf_base_list_del(pos);
		if (err)
			wf_shm_tx_fail(ep, to_tx(pos), err);
		wf_shm_tx_release(ep, to_tx(pos));
	}
	wf_base_list_del(&out->pending_link);
}

void wf_shm_out_fail_all(struct wf_shm_out *out, int err)
{
	drop_all(out, err);
}

void wf_shm_out_release(struct wf_shm_out *out)
{
	out->early = NULL; /* it waits for the next ring */
	wf_shm_letter_unreserve(&out->room);
	wf_shm_offer_withdraw(out);
	wf_shm_link_drop_out(out);
	wf_shm_region_unmap(&out->region);
	wf_shm_board_close(&out->board);
	wf_shm_window_close_all(out);
	wf_shm_regs_close(&out->regs);
	wf_shm_mover_close(&out->mover);
}

void wf_shm_out_free(struct wf_shm_out *out)
{
	if (out->state == WF_SHM_OUT_CONNECTING ||
	    out->state == WF_SHM_OUT_GREETED)
		out->ep->connecting--;
	out->ep->open_outs -= out->state == WF_SHM_OUT_OPEN;
	drop_all(out, 0);
	wf_shm_stats_count_out(out);
	wf_shm_out_release(out);
	wf_base_table_fini(&out->waiting);
	wf_base_list_del(&out->link);
	free(out);
}

void wf_shm_out_opened(struct wf_shm_out *out)
{
	wf_shm_proto_set_limits(out);
	out->state = WF_SHM_OUT_OPEN;
	out->ep->open_outs++;
	out->ep->connecting--;
	wf_shm_out_push(out);
}

/* Reads the receiver's credit and checks it: it cannot have consumed more than
 * was written, nor less than it said before. */
static bool look_at_credit(struct wf_shm_out *out)
{
	uint64_t credit = wf_shared_load(&out->region.header->credit, acquire);
	uint32_t slots = (uint32_t)credit, lines = (uint32_t)(credit >> 32);

	if (slots - out->slots_done > out->slot_lap.head - out->slots_done ||
	    lines - out->lines_done > out->line_lap.head - out->lines_done) {
		wf_warn("the peer returned more credit than it had");
		wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_protocol_errors,
				 1);
		wf_shm_out_mark_dead(out, EPROTO, false);
		return false;
	}
	if (slots != out->slots_done || lines != out->lines_done)
		wf_transport_host_active(out->ep->host);
	out->slots_done = slots;
	out->lines_done = lines;
	return true;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

/* @err: there is no memory for a part of the ring. The operation that needs it
 * stays pending and is tried again. A sleeping endpoint does that by a timer
 * (doze.c), because the peer may have no reason to wake it. */
static bool is_short(struct wf_shm_out *out, int err)
{
	if (!err)
		return false;
	out->ep->starved = true;
	wf_transport_host_wake(out->ep->host);
	return true;
}

static bool have_lines(struct wf_shm_out *out, uint32_t count)
{
	struct wf_shm_region *region = &out->region;

	return count <= region->lines_ready ||
	       !is_short(out, wf_shm_region_grow_lines(region, count));
}

bool wf_shm_out_has_shares(struct wf_shm_out *out)
{
	return out->region.shares_ready ||
	       !is_short(out, wf_shm_region_grow_shares(&out->region));
}

bool wf_shm_out_has_returns(struct wf_shm_out *out)
{
	return out->region.returns_ready ||
	       !is_short(out, wf_shm_region_grow_returns(&out->region));
}

/* The receiver has read nothing of this lap, so the lap goes on beyond the
 * window. The slot after the last one needs memory, too: the receiver polls it.
 * Not inlined: this happens only where the receiver does not keep up. */
static __attribute__((noinline)) void plan_beyond(struct wf_shm_out *out,
						  uint32_t room)
{
	struct wf_shm_region *region = &out->region;
	uint32_t pos = out->slot_lap.pos;
	uint32_t count = at_most(pos + SLOT_STEP + 1, region->slot_count);

	if (count > region->slots_ready)
		is_short(out, wf_shm_region_grow_slots(region, count));
	out->slots_free = at_most(at_most(room, SLOT_STEP),
				  region->slots_ready - 1 - pos);
}

/* Sets how many slots may be written before the credit must be looked at again.
 * The last slot of the window gets the flag that ends the lap, if the first
 * slot is free again. Otherwise the lap goes on, at most to the end of the
 * ring. */
static void plan_slots(struct wf_shm_out *out)
{
	struct wf_shm_lap *lap = &out->slot_lap;
	uint32_t window = at_most(SLOT_WINDOW, lap->size);
	uint32_t room = wf_shm_lap_free(lap, out->slots_done);

	out->slot_turn = 0;
	if (lap->pos + 1 < window) {
		out->slots_free = at_most(room, window - 1 - lap->pos);
	} else if (wf_shm_lap_may_turn(lap, out->slots_done, 1)) {
		out->slots_free = at_most(room, 1);
		out->slot_turn = WF_SHM_SLOT_TURN;
	} else {
		plan_beyond(out, room);
	}
}

static void try_turn_lines(struct wf_shm_out *out, uint32_t lines)
{
	struct wf_shm_lap *lap = &out->line_lap;

	if (!lap->pos || !wf_shm_lap_may_turn(lap, out->lines_done, lines))
		return;
	wf_shm_lap_turn(lap);
	out->line_turn = WF_SHM_SLOT_DATA_TURN;
}

/* The same for @lines of data, which must be contiguous. Records of a burst (put.c)
 * go on to the end of the ring: with more of them under way, sender and receiver
 * wait less for each other. */
static bool plan_lines(struct wf_shm_out *out, uint32_t lines)
{
	bool burst = wf_shm_put_is_burst(out);
	struct wf_shm_lap *lap = &out->line_lap;
	uint32_t window = burst ? lap->size : at_most(LINE_WINDOW, lap->size);
	uint32_t room;

	if (lap->pos + lines > window)
		try_turn_lines(out, lines);
	room = wf_shm_lap_free(lap, out->lines_done);
	/* Without memory for more of the ring, its start has to do. */
	if (room >= lines && !have_lines(out, lap->pos + lines)) {
		try_turn_lines(out, lines);
		room = wf_shm_lap_free(lap, out->lines_done);
	}
	if (room < lines || !have_lines(out, lap->pos + lines))
		return false;
	out->lines_free = lines;
	window = at_most(window, out->region.lines_ready);
	if (lap->pos + lines < window)
		out->lines_free = at_most(room, window - lap->pos);
	return true;
}

void wf_shm_out_low(struct wf_shm_out *out)
{
	if (out->slot_turn) {
		wf_shm_lap_turn(&out->slot_lap);
		plan_slots(out);
	}
	__builtin_prefetch(&out->region.header->credit);
}

bool wf_shm_out_refresh(struct wf_shm_out *out)
{
	if (out->state != WF_SHM_OUT_OPEN || !wf_base_list_empty(&out->pending))
		return false;
	if (look_at_credit(out))
		plan_slots(out);
	return out->slots_free;
}

bool wf_shm_out_has_room(struct wf_shm_out *out, size_t len)
{
	uint32_t lines = wf_shm_put_lines(len);

	if (wf_shm_put_fits(out, len))
		return true;
	if (out->state != WF_SHM_OUT_OPEN || !look_at_credit(out))
		return false;
	if (!out->slots_free)
		plan_slots(out);
	return out->slots_free &&
	       (lines <= out->lines_free || plan_lines(out, lines));
}

bool wf_shm_out_wait(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct wf_host *host = out->ep->host;
	int64_t number;

	if (!out->region.replies_ready &&
	    is_short(out, wf_shm_region_grow_replies(&out->region)))
		return false;
	number = wf_base_table_add(&out->waiting, tx);
	if (number < 0)
		return false;
	tx->op = (uint32_t)number | out->waiting_turn++ * WF_TABLE_MAX;
	if (out->waiting.count == 1)
		wf_base_list_add_tail(&out->ep->waiting_outs,
				      &out->waiting_link);
	if (host->only && out->state == WF_SHM_OUT_OPEN) {
		/* Nothing else is waited for. */
		host->only = NULL;
		host->asked = out;
	} else if (host->asked != out) {
		wf_shm_ep_busy(out->ep);
	}
	return true;
}

void wf_shm_out_enqueue(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	/* wf_shm_out_finish() may have emptied the queue since the last push. */
	if (wf_base_list_empty(&out->pending_link))
		wf_base_list_add_tail(&out->ep->pending_outs,
				      &out->pending_link);
	wf_base_list_add_tail(&out->pending, &tx->link);
	out->slots_free = 0;
	wf_shm_ep_busy(out->ep);
}

/* Whether @tx has to wait for a fence: everything before it must be done first,
 * that is, answered, and read out of the ring by the receiver. */
static bool is_fenced(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	if (!tx->req->fence)
		return false;
	return out->waiting.count || !look_at_credit(out) ||
	       out->slots_done != out->slot_lap.head;
}

/* Tries to get @tx into the ring at once. */
static int try_now(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	if (out->state != WF_SHM_OUT_OPEN ||
	    !wf_base_list_empty(&out->pending) || is_fenced(out, tx))
		return -EAGAIN;
	if (!tx->proto)
		tx->proto = wf_shm_proto_choose(out, tx);
	return tx->proto ? tx->proto->push(out, tx) : -EOPNOTSUPP;
}

/* Completes what try_now() did. An error of an operation on remote memory (a
 * registration that refuses it) is reported by an error completion. */
static int conclude(struct wf_shm_ep *ep, const struct wf_shm_tx *tx, int ret)
{
	if (!ret)
		wf_shm_tx_complete(ep, tx);
	if (!ret || ret == -EAGAIN || !tx->req->remote)
		return ret;
	wf_shm_tx_fail(ep, tx, -ret);
	return 0;
}

/* From the stack: an operation of one record is sent whole or not at all. */
static int send_unkept(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	return conclude(out->ep, tx, try_now(out, tx));
}

/* After the push of a kept operation, which was complete or failed. */
static void end_push(struct wf_shm_out *out, struct wf_shm_tx *tx, int ret)
{
	if (!ret && wf_shm_proto_waits(tx))
		return;
	if (ret)
		wf_shm_tx_fail(out->ep, tx, -ret);
	else
		wf_shm_tx_complete(out->ep, tx);
	wf_shm_tx_release(out->ep, tx);
}

/* Sends a copy of an injected operation that finds no room, or that may need
 * several pushes. The transmit depth limits the number of copies. */
static int send_copy(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	struct wf_shm_tx *kept = wf_shm_tx_keep(out->ep, tx);
	int ret;

	if (!kept)
		return -EAGAIN;
	if (!wf_shm_tx_copy_buffers(kept)) {
		wf_shm_tx_release(out->ep, kept);
		return -EAGAIN;
	}
	ret = try_now(out, kept);
	if (ret == -EAGAIN)
		wf_shm_out_enqueue(out, kept);
	else
		end_push(out, kept, ret);
	return 0;
}

/* A message that is answered, or waits for a fence: one push sends all of it. */
static int inject_kept(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	struct wf_shm_tx *kept = wf_shm_tx_keep(out->ep, tx);
	int ret;

	if (!kept)
		return -EAGAIN;
	ret = try_now(out, kept);
	if (!ret && wf_shm_proto_waits(kept))
		return 0;
	ret = conclude(out->ep, kept, ret);
	wf_shm_tx_release(out->ep, kept);
	return ret;
}

static int inject(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	bool whole;
	int ret;

	if (out->state == WF_SHM_OUT_DEAD)
		return -EAGAIN;
	if (out->state != WF_SHM_OUT_OPEN)
		return wf_shm_early_inject(out, tx);
	tx->proto = wf_shm_proto_choose(out, tx);
	if (!tx->proto)
		return -EOPNOTSUPP;
	whole = !tx->req->fence && wf_shm_proto_is_whole(tx);
	if (!wf_base_list_empty(&out->pending))
		wf_shm_out_push(out);
	for (int looks = 0; looks < LOOKS_BEFORE_COPY; looks++) {
		/* An operation of several pieces could find room for some only. */
		if (!whole && tx->req->remote)
			break;
		ret = whole ? send_unkept(out, tx) : inject_kept(out, tx);
		if (ret != -EAGAIN)
			return ret;
		/* The next protocol may need several pieces. */
		if (tx->req->fence || !tx->proto ||
		    out->state != WF_SHM_OUT_OPEN ||
		    !wf_base_list_empty(&out->pending))
			break;
		wf_base_cpu_relax();
	}
	return send_copy(out, tx);
}

uint32_t wf_shm_out_stamp(const struct wf_shm_out *out)
{
	return out->stamps ? wf_shm_pace_stamp(wf_base_clock_ns()) : 0;
}

int wf_shm_out_send(struct wf_shm_out *out, const struct wf_tx *req)
{
	struct wf_shm_tx tx, *kept;
	int ret;

	if (req->len > WF_SHM_PUT_MAX)
		wf_shm_proto_choose_way(out, req);
	wf_shm_tx_init(&tx, req);
	if (req->inject)
		return inject(out, &tx);
	if (out->state == WF_SHM_OUT_OPEN && !req->fence) {
		tx.proto = wf_shm_proto_choose(out, &tx);
		if (!tx.proto)
			return -EOPNOTSUPP;
		if (wf_shm_proto_is_whole(&tx)) {
			ret = send_unkept(out, &tx);
			if (ret != -EAGAIN)
				return ret;
		}
	}
	kept = wf_shm_tx_keep(out->ep, &tx);
	if (!kept)
		return -EAGAIN;
	ret = try_now(out, kept);
	if (ret == -EAGAIN)
		wf_shm_out_enqueue(out, kept);
	else
		end_push(out, kept, ret);
	return 0;
}

bool wf_shm_out_holds_copies(const struct wf_shm_out *out)
{
	const struct wf_list *pos;

	if (out->state == WF_SHM_OUT_DEAD)
		return false;
	for (pos = out->pending.next; pos != &out->pending; pos = pos->next) {
		if (wf_container_of(pos, struct wf_shm_tx, link)->bounce)
			return true;
	}
	return false;
}

void wf_shm_out_keep_copies(struct wf_shm_out *out)
{
	struct wf_list *pos, *tmp;
	bool broken = false;

	wf_list_for_each (pos, tmp, &out->pending) {
		struct wf_shm_tx *tx = to_tx(pos);

		/* Nothing can follow a message that is partly in the ring. */
		broken |= tx->pushed && !tx->stream && !tx->bounce;
		if (tx->bounce && !broken)
			continue;
		wf_base_list_del(pos);
		if (!is_waiting(out, tx))
			wf_shm_tx_release(out->ep, tx);
	}
}

/* Pushes the first pending message. 0: another one is the first now. */
static int push_first(struct wf_shm_out *out)
{
	struct wf_shm_tx *tx = to_tx(out->pending.next);
	int ret;

	if (!tx->pushed && !tx->stream && is_fenced(out, tx))
		return -EAGAIN;
	if (!tx->proto)
		tx->proto = wf_shm_proto_choose(out, tx);
	ret = tx->proto ? tx->proto->push(out, tx) : -EOPNOTSUPP;
	if (ret == -EAGAIN) {
		/* Others may overtake a stream, which is matched already. */
		if (tx->stream && out->pending.prev != &tx->link) {
			wf_base_list_del(&tx->link);
			wf_base_list_add_tail(&out->pending, &tx->link);
			return wf_shm_out_has_room(out, out->chunk) ? 0 :
								      -EAGAIN;
		}
		return ret;
	}
	wf_base_list_del(&tx->link);
	end_push(out, tx, ret);
	return 0;
}

void wf_shm_out_push(struct wf_shm_out *out)
{
	while (out->state == WF_SHM_OUT_OPEN &&
	       !wf_base_list_empty(&out->pending) &&
	       wf_op_compq_room(out->ep->txq)) {
		if (push_first(out))
			break;
	}
	if (wf_base_list_empty(&out->pending))
		wf_base_list_del(&out->pending_link);
	else
		out->slots_free = 0; /* so that the fast path overtakes none */
}

static void start_stream(struct wf_shm_out *out, struct wf_shm_tx *tx,
			 uint64_t len)
{
	stop_sharing(out, tx);
	tx->stream = true;
	tx->pushed = 0;
	tx->help.len = len;
	wf_shm_out_enqueue(out, tx);
}

void wf_shm_out_finish(struct wf_shm_out *out, struct wf_shm_tx *tx, int status)
{
	struct wf_shm_ep *ep = out->ep;

	/* It may still be in the pending queue when the receiver gave up. */
	wf_base_list_del(&tx->link);
	stop_waiting(out, tx);
	if (wf_unlikely(wf_shm_trace_is_on(out)))
		wf_shm_trace_end(out, tx->op);
	if (status)
		wf_shm_tx_fail(ep, tx, status);
	else
		wf_shm_tx_complete(ep, tx);
	wf_shm_tx_release(ep, tx);
}

static bool start_share(struct wf_shm_out *out, struct wf_shm_tx *tx,
			uint32_t share)
{
	if (share >= WF_SHM_SHARES || (out->sharing & 1u << share) ||
	    !wf_shm_share_join(&out->region.shares[share], tx))
		return false;
	out->shared[share] = tx;
	out->sharing |= 1u << share;
	return true;
}

/* False if the reply is invalid. */
static bool handle_reply(struct wf_shm_out *out,
			 const struct wf_shm_reply *reply)
{
	struct wf_shm_tx *tx = wf_base_table_get(
		&out->waiting, wf_base_table_number(reply->op));

	if (!tx || tx->op != reply->op)
		return false;
	if (tx->fetched)
		return wf_shm_word_reply(out, tx, reply);
	if (tx->req->remote)
		return wf_shm_remote_reply(out, tx, reply);
	switch (reply->kind) {
	case WF_SHM_REPLY_SHARE:
		return tx->proto->parks && !tx->stream &&
		       start_share(out, tx, reply->share);
	case WF_SHM_REPLY_STREAM:
		if (!tx->proto->parks || tx->stream ||
		    reply->len > tx->req->len)
			return false;
		start_stream(out, tx, reply->len);
		return true;
	case WF_SHM_REPLY_FINAL:
		wf_shm_out_finish(out, tx, reply->status);
		return true;
	default:
		return false;
	}
}

static void help_sharing(struct wf_shm_out *out)
{
	for (uint32_t bits = out->sharing; bits; bits &= bits - 1) {
		uint32_t index = (uint32_t)__builtin_ctz(bits);

		if (!wf_shm_share_help(&out->region.shares[index], &out->mover,
				       out->shared[index]))
			out->sharing &= ~(1u << index);
	}
}

/* A status of the peer may be any number. */
static int checked_status(int status)
{
	return status < 0 || status > WF_COMP_ERR_MAX ? EPROTO : status;
}

int wf_shm_out_poll(struct wf_shm_out *out)
{
	int count = 0;

	while (out->state == WF_SHM_OUT_OPEN && out->waiting.count &&
	       wf_op_compq_room(out->ep->txq)) {
		const struct wf_shm_reply *at =
			&out->region.replies[out->reply_tail % WF_SHM_REPLIES];
		struct wf_shm_reply reply;

		if (!wf_shm_out_has_reply(out))
			break;
		reply.op = at->op;
		reply.kind = at->kind;
		reply.status = checked_status(at->status);
		reply.len = at->len;
		reply.share = at->share;
		out->reply_tail++;
		count++;
		if (!handle_reply(out, &reply)) {
			wf_warn("the peer sent an invalid reply");
			wf_shm_stats_add(&out->ep->stats,
					 WF_SHM_STAT_protocol_errors, 1);
			wf_shm_out_mark_dead(out, EPROTO, false);
			return count;
		}
	}
	/* Only now: the receiver may then use shares again that have ended. */
	if (count) {
		wf_shared_store(&out->region.header->replies_seen,
				out->reply_tail, release);
		wf_transport_host_active(out->ep->host);
	}
	if (out->sharing)
		help_sharing(out);
	return count;
}

bool wf_shm_out_settle(struct wf_shm_out *out)
{
	if (out->state != WF_SHM_OUT_OPEN)
		return true;
	wf_shm_out_poll(out);
	return out->state != WF_SHM_OUT_OPEN || !out->waiting.count ||
	       !wf_shm_out_has_reply(out);
}

bool wf_shm_out_has_work(const struct wf_shm_out *out)
{
	uint64_t credit;

	if (out->state != WF_SHM_OUT_OPEN)
		return false;
	if (out->sharing || (out->waiting.count && wf_shm_out_has_reply(out)))
		return true;
	if (wf_base_list_empty(&out->pending))
		return false;
	credit = wf_shared_load(&out->region.header->credit, acquire);
	return credit != ((uint64_t)out->lines_done << 32 | out->slots_done);
}
