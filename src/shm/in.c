/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of a channel: takes messages out of slots, and fills
 * receives or keeps the messages until there is a receive. If there is no
 * memory to keep a message, it stays in the ring until the next poll; nothing
 * is dropped.
 */
#include "shm/in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "op/copy.h"
#include "op/iov.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/offer.h"
#include "shm/pull.h"
#include "shm/serve.h"
#include "shm/trace.h"

/* Chunked messages are far smaller; a larger total is a broken peer. */
#define ASSEMBLY_MAX ((uint64_t)16 << 20)

/* Credit is returned in batches, each a 16th of the slots or a 32nd of the
 * lines: often enough that the sender can start a new lap at the end of its
 * window (out.c), and so rarely that the line with the credit does not move
 * between the caches for every message. */
#define CREDIT_SLOTS_PART 16
#define CREDIT_LINES_PART 32

/* Slots of a burst that are fetched ahead: a line takes that many messages. */
#define AHEAD 4

static const struct wf_ux_ops parcel_ops;

struct wf_shm_in *wf_shm_in_open(struct wf_shm_ep *ep,
				 const struct wf_shm_region *region, int fd,
				 const struct wf_addr *addr, uint64_t src)
{
	struct wf_shm_in *in = aligned_alloc(
		WF_LINE, (sizeof(*in) + WF_LINE - 1) & ~(WF_LINE - 1ul));

	if (!in)
		return NULL;
	*in = (struct wf_shm_in){
		.slot_count = region->slot_count,
		.credit_slots = region->slot_count / CREDIT_SLOTS_PART,
		.credit_lines = region->line_count / CREDIT_LINES_PART,
		.line_count = region->line_count,
		.slots = region->slots,
		.data = region->data,
		.src = src,
		.rxq = ep->rxq,
		.ep = ep,
		.number = ++ep->last_number,
		.sock = { .fd = fd, .ready = wf_shm_link_in_ready },
		.region = *region,
		.features = WF_SHM_FEATURES,
		.addr = *addr,
	};
	wf_base_list_init(&in->parcels);
	wf_base_list_init(&in->busy);
	wf_base_list_init(&in->busy_link);
	wf_base_list_init(&in->again_link);
	wf_shm_reply_init(&in->replies, &in->region);
	return in;
}

void wf_shm_in_nudge(struct wf_shm_in *in)
{
	_Atomic uint32_t *asleep = &in->region.header->sender_asleep;

	/* A sender that is about to sleep may not have seen what we wrote. It
	 * looks again after a barrier (core/sleep.c), so no fence is needed. */
	if (wf_likely(!wf_shared_load(asleep, relaxed)) ||
	    !wf_shared_exchange(asleep, 0, seq_cst))
		return;
	wf_shm_stats_add(&in->ep->stats, WF_SHM_STAT_wakes, 1);
	wf_shm_link_wake_sender(in);
}

void wf_shm_in_busy(struct wf_shm_in *in)
{
	if (!in->is_busy)
		wf_base_list_add_tail(&in->ep->busy_ins, &in->busy_link);
	in->is_busy = true;
	wf_shm_ep_busy(in->ep);
	wf_transport_host_wake(in->ep->host);
}

uint32_t wf_shm_in_reply(struct wf_shm_in *in,
			 const struct wf_shm_kept_reply *reply)
{
	uint32_t place;

	if (!in->region.base)
		return 0; /* in a forked child the ring is not there */
	place = wf_shm_reply_send(&in->replies, reply);
	if (wf_unlikely(in->replies.count))
		wf_shm_in_busy(in);
	wf_shm_in_nudge(in);
	if (wf_unlikely(in->ep->host->trace) &&
	    reply->kind == WF_SHM_REPLY_FINAL)
		wf_shm_trace_reply(in, reply->op);
	return place;
}

/* -- messages without a receive ------------------------------------------ */

static struct wf_shm_parcel *parcel_of(struct wf_ux *ux)
{
	return wf_container_of(ux, struct wf_shm_parcel, ux);
}

static void parcel_free(struct wf_shm_parcel *parcel)
{
	wf_base_list_del(&parcel->link);
	free(parcel);
}

static void parcel_ack(struct wf_shm_parcel *parcel)
{
	if (parcel->ack && parcel->in)
		wf_shm_in_reply_final(parcel->in, parcel->op, 0);
}

static struct wf_envelope parcel_envelope(const struct wf_shm_parcel *parcel)
{
	return (struct wf_envelope){
		.tag = parcel->ux.tag,
		.data = parcel->ux.data,
		.src = parcel->ux.src,
		.flags = parcel->ux.flags,
		.len = parcel->ux.len,
	};
}

/* Hands a whole parcel to its receive. */
static void parcel_finish(struct wf_shm_parcel *parcel, struct wf_rxq *rxq,
			  struct wf_rx *rx)
{
	struct wf_envelope env = parcel_envelope(parcel);
	size_t len = env.len < rx->len ? env.len : rx->len;

	wf_op_iov_scatter(rx->iov, rx->iov_count, 0, parcel->payload, len);
	wf_match_rxq_done(rxq, rx, &env);
	parcel_ack(parcel);
	parcel_free(parcel);
}

static void parcel_deliver(struct wf_ux *ux, struct wf_rx *rx)
{
	struct wf_shm_parcel *parcel = parcel_of(ux);
	struct wf_rxq *rxq = ux->rxq;
	struct wf_envelope env = parcel_envelope(parcel);

	if (parcel->lost) {
		wf_match_rxq_fail(rxq, rx, &env, FI_ECONNRESET);
		parcel_free(parcel);
	} else if (parcel->have < ux->len) {
		parcel->rx = rx; /* the rest is still to come */
	} else {
		parcel_finish(parcel, rxq, rx);
	}
}

static void parcel_discard(struct wf_ux *ux)
{
	struct wf_shm_parcel *parcel = parcel_of(ux);

	/* Records that have not come yet find no parcel and are dropped. The
	 * sender gets its reply after the last of them: with an earlier one it
	 * would stop in the middle of the message. */
	if (parcel->in && parcel->in->assembly.parcel == parcel)
		parcel->in->assembly.parcel = NULL;
	else
		parcel_ack(parcel);
	parcel_free(parcel);
}

static struct wf_shm_parcel *parcel_keep(struct wf_shm_in *in, bool tagged,
					 const struct wf_envelope *env,
					 const uint8_t *bytes, size_t have)
{
	struct wf_shm_parcel *parcel = malloc(sizeof(*parcel) + env->len);

	if (!parcel)
		return NULL;
	*parcel = (struct wf_shm_parcel){
		.ux = {
			.ops = &parcel_ops,
			.rxq = in->ep->rxq,
			.compq = in->ep->rxq->compq,
			.cntr = in->ep->rxq->cntr,
			.owner = in->ep,
			.reports_all = in->ep->rxq->reports_all,
			.tag = env->tag,
			.data = env->data,
			.src = env->src,
			.flags = env->flags,
			.len = env->len,
		},
		.in = in,
		.have = have,
	};
	memcpy(parcel->payload, bytes, have);
	wf_base_list_add_tail(&in->parcels, &parcel->link);
	wf_match_park(wf_match_rxq_of(in->ep->rxq, tagged), &parcel->ux);
	return parcel;
}

/* -- kinds of slots -------------------------------------------------------- */

/* One slot, copied out of shared memory once. */
struct message {
	size_t len; /* of this record */
	uint8_t kind;
	uint8_t flags;
	uint64_t tag;
	uint64_t data;
	const struct wf_shm_slot *slot; /* for what depends on the kind */
	const uint8_t *bytes;
};

static struct wf_envelope envelope(const struct wf_shm_in *in,
				   const struct message *msg, size_t len)
{
	return (struct wf_envelope){
		.tag = msg->flags & WF_SHM_SLOT_TAGGED ? msg->tag : 0,
		.data = msg->data,
		.src = in->src,
		.flags = msg->flags & WF_SHM_SLOT_DATA ? FI_REMOTE_CQ_DATA : 0,
		.len = len,
	};
}

static int on_whole(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_rxq *rxq = in->ep->rxq;
	bool tagged = msg->flags & WF_SHM_SLOT_TAGGED;
	struct wf_envelope env = envelope(in, msg, msg->len);
	struct wf_rx *rx =
		wf_match_rxq_take(rxq, tagged, env.tag, env.src, env.len);
	struct wf_shm_parcel *parcel;
	size_t len;

	if (wf_unlikely(!rx)) {
		parcel = parcel_keep(in, tagged, &env, msg->bytes, msg->len);
		if (!parcel)
			return -EAGAIN;
		parcel->ack = msg->flags & WF_SHM_SLOT_ACK;
		parcel->op = msg->slot->eager.op;
		if (msg->kind == WF_SHM_KIND_EAGER)
			wf_shm_pull_paced(in, env.len,
					  wf_shm_pace_way(msg->flags), 0);
		return 0;
	}
	len = env.len < rx->len ? env.len : rx->len;
	wf_op_iov_scatter(rx->iov, rx->iov_count, 0, msg->bytes, len);
	wf_match_rxq_done(rxq, rx, &env);
	if (wf_unlikely(msg->flags & WF_SHM_SLOT_ACK))
		wf_shm_in_reply_final(in, msg->slot->eager.op, 0);
	if (msg->kind == WF_SHM_KIND_EAGER)
		wf_shm_pull_paced_eager(in, msg->slot, msg->flags, env.len);
	return 0;
}

/* Puts a record at its place in the receive; the part that does not fit is
 * dropped and reported as truncation at the end. */
static void place(const struct wf_rx *rx, size_t at, const uint8_t *bytes,
		  size_t len)
{
	if (at >= rx->len)
		return;
	if (len > rx->len - at)
		len = rx->len - at;
	wf_op_iov_scatter(rx->iov, rx->iov_count, at, bytes, len);
}

static int on_first(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_shm_assembly *as = &in->assembly;
	bool tagged = msg->flags & WF_SHM_SLOT_TAGGED;
	uint64_t total = msg->slot->eager.total;

	if (as->have || !msg->len || total <= msg->len || total > ASSEMBLY_MAX)
		return -EPROTO;
	as->env = envelope(in, msg, total);
	as->op = msg->slot->eager.op;
	as->stamp = msg->slot->eager.stamp;
	as->way = wf_shm_pace_way(msg->flags);
	as->ack = msg->flags & WF_SHM_SLOT_ACK;
	as->parcel = NULL;
	as->since = 0;
	as->rx = wf_match_rxq_take(in->ep->rxq, tagged, as->env.tag,
				   as->env.src, total);
	if (as->rx) {
		place(as->rx, 0, msg->bytes, msg->len);
	} else {
		as->parcel =
			parcel_keep(in, tagged, &as->env, msg->bytes, msg->len);
		if (!as->parcel)
			return -EAGAIN;
		as->parcel->ack = as->ack;
		as->parcel->op = as->op;
	}
	as->have = msg->len;
	return 0;
}

static void finish_assembly(struct wf_shm_in *in)
{
	struct wf_shm_assembly *as = &in->assembly;

	as->have = 0;
	if (as->parcel) {
		if (as->parcel->rx)
			parcel_finish(as->parcel, in->ep->rxq, as->parcel->rx);
		as->parcel = NULL;
		/* The message is acknowledged when the parcel is delivered. */
		wf_shm_pull_paced(in, as->env.len, as->way, 0);
		return;
	}
	if (as->rx)
		wf_match_rxq_done(in->ep->rxq, as->rx, &as->env);
	as->rx = NULL;
	if (as->ack)
		wf_shm_in_reply_final(in, as->op, 0);
	wf_shm_pull_paced(in, as->env.len, as->way, as->stamp);
}

static int on_next(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_shm_assembly *as = &in->assembly;

	if (!as->have || !msg->len || msg->len > as->env.len - as->have)
		return -EPROTO;
	if (as->rx) {
		place(as->rx, as->have, msg->bytes, msg->len);
	} else if (as->parcel) {
		memcpy(as->parcel->payload + as->have, msg->bytes, msg->len);
		as->parcel->have += msg->len;
	}
	as->have += msg->len;
	if (as->have == as->env.len)
		finish_assembly(in);
	return 0;
}

static int on_parked(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_shm_parked parked = msg->slot->parked;
	struct wf_shm_part parts[WF_SHM_SHARE_IOV];
	size_t bytes = parked.iov_count * sizeof(parts[0]);

	if (!parked.iov_count || parked.iov_count > WF_SHM_SHARE_IOV ||
	    msg->len != (parked.iov_count > 1 ? bytes : 0))
		return -EPROTO;
	parts[0] = (struct wf_shm_part){ parked.addr, parked.total };
	if (parked.iov_count > 1)
		memcpy(parts, msg->bytes, bytes);
	return wf_shm_pull_arrive(
		in, &parked, parts, msg->flags,
		msg->flags & WF_SHM_SLOT_TAGGED ? msg->tag : 0, msg->data);
}

static int on_stream(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_shm_stream stream = msg->slot->stream;

	return wf_shm_pull_stream(in, &stream, msg->bytes, msg->len);
}

static int on_remote(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_shm_request req = {
		.rma = msg->slot->rma,
		.total = msg->tag,
		.data = msg->data,
		.flags = msg->flags,
		.bytes = msg->bytes,
		.bytes_len = msg->len,
	};

	if (!msg->len) {
		req.bytes = msg->slot->rma_bytes;
		req.bytes_len = WF_SHM_RMA_BYTES_MAX;
	}
	switch (msg->kind) {
	case WF_SHM_KIND_WRITE:
		return wf_shm_serve_write(in, &req);
	case WF_SHM_KIND_READ:
		return wf_shm_serve_read(in, &req);
	case WF_SHM_KIND_ATOMIC:
		return wf_shm_serve_atomic(in, &req);
	default:
		return wf_shm_serve_note(in, &req);
	}
}

static int dispatch(struct wf_shm_in *in, const struct message *msg)
{
	switch (msg->kind) {
	case WF_SHM_KIND_INLINE:
	case WF_SHM_KIND_EAGER:
		return on_whole(in, msg);
	case WF_SHM_KIND_FIRST:
		return on_first(in, msg);
	case WF_SHM_KIND_NEXT:
		return on_next(in, msg);
	case WF_SHM_KIND_PARKED:
		return on_parked(in, msg);
	case WF_SHM_KIND_STREAM:
		return on_stream(in, msg);
	case WF_SHM_KIND_WRITE:
	case WF_SHM_KIND_READ:
	case WF_SHM_KIND_ATOMIC:
	case WF_SHM_KIND_NOTE:
		return on_remote(in, msg);
	default:
		return -EPROTO;
	}
}

/* -- the ring -------------------------------------------------------------- */

static inline uint32_t lines_of(size_t len)
{
	return (uint32_t)(len + WF_LINE - 1) / WF_LINE;
}

static void return_credit(struct wf_shm_in *in)
{
	uint64_t credit = (uint64_t)in->lines << 32 | in->next;

	in->credited = in->next;
	in->credited_lines = in->lines;
	/* Release: our reads come before the sender overwrites the slots. */
	wf_shared_store(&in->region.header->credit, credit, release);
	wf_shm_in_nudge(in);
}

void wf_shm_in_credit(struct wf_shm_in *in)
{
	if (in->next != in->credited || in->lines != in->credited_lines)
		return_credit(in);
}

/* Where a record of @lines is: after the last one, or at the start. NULL if it
 * would reach beyond the end of the ring. */
static inline const uint8_t *record_at(const struct wf_shm_in *in,
				       uint8_t flags, uint32_t lines)
{
	uint32_t pos = flags & WF_SHM_SLOT_DATA_TURN ? 0 : in->line_pos;

	if (wf_unlikely(pos + lines > in->line_count))
		return NULL;
	return in->data + (size_t)pos * WF_LINE;
}

static inline void slot_consumed(struct wf_shm_in *in, uint8_t flags)
{
	in->next++;
	in->slot_pos++;
	if (wf_unlikely((flags & WF_SHM_SLOT_TURN) ||
			in->slot_pos == in->slot_count))
		in->slot_pos = 0;
	if (wf_unlikely(in->next - in->credited >= in->credit_slots))
		return_credit(in);
}

static inline void record_consumed(struct wf_shm_in *in, uint8_t flags,
				   uint32_t lines)
{
	if (flags & WF_SHM_SLOT_DATA_TURN)
		in->line_pos = 0;
	in->expect_pair = false;
	/* A copy here of lines that are written around the caches only delays
	 * them. */
	in->expect_lines = flags & WF_SHM_SLOT_AROUND ? 0 : lines;
	in->line_pos += lines;
	in->lines += lines;
	if (wf_unlikely(in->lines - in->credited_lines >= in->credit_lines))
		return_credit(in);
}

/* The fast path: a message that arrived whole and finds a plain receive.
 * False: nothing was done. */
static inline bool take_plain(struct wf_shm_in *in,
			      const struct wf_shm_slot *slot, uint64_t word)
{
	static const size_t most[4] = {
		[WF_SHM_KIND_INLINE] = WF_SHM_INLINE_MAX,
		[WF_SHM_KIND_EAGER] = WF_SHM_RECORD_MAX,
	};
	uint8_t kind = WF_SHM_WORD_KIND(word);
	uint8_t flags = WF_SHM_WORD_FLAGS(word);
	bool tagged = flags & WF_SHM_SLOT_TAGGED;
	struct wf_rxq *rxq = in->rxq;
	const struct wf_envelope env = {
		.tag = tagged ? slot->tag : 0,
		.data = slot->data,
		.src = in->src,
		.flags = flags & WF_SHM_SLOT_DATA ? FI_REMOTE_CQ_DATA : 0,
		.len = WF_SHM_WORD_LEN(word),
	};
	uint32_t lines = lines_of(env.len);
	const uint8_t *bytes = slot->payload;
	struct wf_rx *rx;

	if (wf_unlikely((flags & WF_SHM_SLOT_ACK) || env.len > most[kind & 3] ||
			(uint8_t)(kind - WF_SHM_KIND_INLINE) > 1))
		return false;
	if (kind == WF_SHM_KIND_EAGER)
		bytes = record_at(in, flags, lines);
	if (wf_unlikely(!bytes))
		return false;
	rx = wf_match_take_plain(wf_match_rxq_of(rxq, tagged), env.tag, env.src,
				 env.len);
	if (wf_unlikely(!rx))
		return false;
	if (kind == WF_SHM_KIND_INLINE) {
		wf_op_copy_small(rx->iov[0].iov_base, bytes, env.len);
		in->expect_pair = env.len > WF_SHM_LINE_MAX;
		in->expect_lines = 0;
		in->bytes += env.len;
	} else {
		memcpy(rx->iov[0].iov_base, bytes, env.len);
		record_consumed(in, flags, lines);
		in->eager++;
		in->eager_bytes += env.len;
		if (env.len >= WF_SHM_PACE_LEAST &&
		    wf_unlikely(!wf_shm_pace_pass(&in->pace, env.len)))
			wf_shm_pull_paced_eager(in, slot, flags, env.len);
	}
	wf_match_rxq_done_plain(rxq, rx, &env);
	slot_consumed(in, flags);
	return true;
}

/* Counts a slot by its kind. Parked messages and operations on our memory are
 * counted where they are done. */
static void count(struct wf_shm_in *in, const struct message *msg)
{
	struct wf_stats *stats = &in->ep->stats;

	if (msg->kind == WF_SHM_KIND_INLINE) {
		in->bytes += msg->len;
	} else if (msg->kind == WF_SHM_KIND_EAGER) {
		in->eager++;
		in->eager_bytes += msg->len;
	} else {
		in->parts++;
	}
	if (msg->kind == WF_SHM_KIND_FIRST)
		wf_shm_stats_add(stats, WF_SHM_STAT_received_chunked, 1);
	if (msg->kind == WF_SHM_KIND_FIRST || msg->kind == WF_SHM_KIND_NEXT)
		wf_shm_stats_add(stats, WF_SHM_STAT_received_chunked_bytes,
				 msg->len);
}

/* Takes a slot of any kind. 0 if it was consumed. */
static __attribute__((noinline)) int
take_slot(struct wf_shm_in *in, const struct wf_shm_slot *slot, uint64_t word)
{
	struct message msg = {
		.len = WF_SHM_WORD_LEN(word),
		.kind = WF_SHM_WORD_KIND(word),
		.flags = WF_SHM_WORD_FLAGS(word),
		.tag = slot->tag,
		.data = slot->data,
		.slot = slot,
		.bytes = slot->payload,
	};
	bool replied = msg.kind == WF_SHM_KIND_PARKED ||
		       ((msg.kind < WF_SHM_KIND_NEXT ||
			 msg.kind > WF_SHM_KIND_STREAM) &&
			(msg.flags & WF_SHM_SLOT_ACK));
	uint32_t lines = 0;
	int ret;

	/* This slot was never written. Its word is 0, which the caller takes
	 * for a message when the sequence wraps around to 0; slots beyond the
	 * sender's window may stay unwritten until then. */
	if (!word)
		return in->ended ? -EPROTO : -EAGAIN;
	if (msg.kind == WF_SHM_KIND_INLINE) {
		if (msg.len > WF_SHM_INLINE_MAX)
			return -EPROTO;
	} else {
		if (msg.len > WF_SHM_RECORD_MAX)
			return -EPROTO;
		lines = lines_of(msg.len);
		msg.bytes = record_at(in, msg.flags, lines);
		if (!msg.bytes)
			return -EPROTO;
	}
	if (replied && wf_shm_reply_expect(&in->replies))
		return -EAGAIN;
	ret = dispatch(in, &msg);
	if (ret) {
		in->replies.owed -= replied;
		return ret;
	}
	count(in, &msg);
	if (msg.kind != WF_SHM_KIND_INLINE)
		record_consumed(in, msg.flags, lines);
	slot_consumed(in, msg.flags);
	return 0;
}

/* An atomic on 8 bytes that are in the slot (WF_SHM_RMA_WORD): take_slot()
 * without the rest. */
static __attribute__((noinline)) int
take_word(struct wf_shm_in *in, const struct wf_shm_slot *slot, uint64_t word)
{
	uint8_t flags = WF_SHM_WORD_FLAGS(word);
	int ret;

	if ((flags & WF_SHM_SLOT_ACK) && wf_shm_reply_expect(&in->replies))
		return -EAGAIN;
	ret = wf_shm_serve_word(in, slot, word);
	if (ret) {
		in->replies.owed -= !!(flags & WF_SHM_SLOT_ACK);
		return ret;
	}
	in->parts++;
	in->expect_pair = false;
	in->expect_lines = 0;
	slot_consumed(in, flags);
	return 0;
}

/* Whether the slot after the one that @word describes holds a parked message,
 * too. */
static bool is_burst(const struct wf_shm_in *in, uint64_t word)
{
	uint32_t pos = in->slot_pos + 1;

	if ((WF_SHM_WORD_FLAGS(word) & WF_SHM_SLOT_TURN) ||
	    pos == in->slot_count)
		pos = 0;
	word = wf_shared_load(&in->slots[pos].word, relaxed);
	return WF_SHM_WORD_SEQ(word) == in->next + 2 &&
	       WF_SHM_WORD_KIND(word) == WF_SHM_KIND_PARKED;
}

/* Takes parked messages that follow each other, and reads small ones together.
 * Adds their number to *@count and stops when that is @budget. 0, or why one
 * was not taken. */
static int take_parked(struct wf_shm_in *in, uint64_t word, int budget,
		       int *count)
{
	const struct wf_shm_slot *slot = &in->slots[in->slot_pos];
	int ret;

	for (;;) {
		in->burst = is_burst(in, word);
		ret = take_slot(in, slot, word);
		*count += !ret;
		if (ret || !in->burst || *count >= budget ||
		    !wf_op_compq_room(in->rxq->compq))
			break;
		/* The next word: loaded once, then checked. */
		slot = &in->slots[in->slot_pos];
		word = wf_shared_load(&slot->word, acquire);
		if (WF_SHM_WORD_SEQ(word) != in->next + 1 ||
		    WF_SHM_WORD_KIND(word) != WF_SHM_KIND_PARKED)
			break;
	}
	in->burst = false;
	wf_shm_pull_flush(in);
	return ret;
}

int wf_shm_in_poll(struct wf_shm_in *in, int budget)
{
	int count = 0;

	while (count < budget && !in->broken) {
		const struct wf_shm_slot *slot = &in->slots[in->slot_pos];
		uint64_t word = wf_shared_load(&slot->word, acquire);
		int ret;

		if (WF_SHM_WORD_SEQ(word) != in->next + 1) {
			wf_shm_in_prefetch(in);
			break;
		}
		if (wf_unlikely(!wf_op_compq_room(in->rxq->compq)))
			break;
		/* In a burst the next slots are already written. */
		if (count) {
			__builtin_prefetch(slot + AHEAD);
			__builtin_prefetch((const char *)(slot + AHEAD) +
					   WF_LINE);
		}
		if (wf_likely(take_plain(in, slot, word))) {
			count++;
			continue;
		}
		if (WF_SHM_WORD_KIND(word) == WF_SHM_KIND_PARKED) {
			ret = take_parked(in, word, budget, &count);
			if (!ret)
				continue;
		} else if (WF_SHM_WORD_KIND(word) == WF_SHM_KIND_ATOMIC &&
			   (slot->rma.flags & WF_SHM_RMA_WORD)) {
			ret = take_word(in, slot, word);
		} else {
			ret = take_slot(in, slot, word);
		}
		if (ret == -EAGAIN)
			break; /* no memory: the slot waits */
		if (wf_unlikely(ret)) {
			wf_warn("the peer wrote an invalid slot");
			wf_shm_stats_add(&in->ep->stats,
					 WF_SHM_STAT_protocol_errors, 1);
			in->broken = true;
			in->ep->reap = true;
			wf_shm_ep_busy(in->ep);
			break;
		}
		count++;
	}
	return count;
}

void wf_shm_in_rename(struct wf_shm_in *in, uint64_t src)
{
	struct wf_list *pos, *tmp;

	in->src = src;
	in->assembly.env.src = src;
	wf_list_for_each (pos, tmp, &in->parcels)
		wf_container_of(pos, struct wf_shm_parcel, link)->ux.src = src;
	for (uint32_t i = 0; i < in->pulls.room; i++) {
		struct wf_shm_pull *pull = wf_base_table_get(&in->pulls, i);

		if (pull)
			pull->ux.src = src;
	}
	wf_match_ux_renamed(&in->rxq->msg);
	wf_match_ux_renamed(&in->rxq->tagged);
}

void wf_shm_in_close(struct wf_shm_in *in, int err)
{
	struct wf_shm_assembly *as = &in->assembly;
	struct wf_list *pos, *tmp;

	/* The endpoint closes, but the shared receives that it was filling stay
	 * open and need a completion. */
	if (!err && in->ep->rxq->shared)
		err = FI_ECANCELED;
	wf_shm_stats_count_in(in);
	if (as->have && as->rx && err)
		wf_match_rxq_fail(in->ep->rxq, as->rx, &as->env, err);
	wf_list_for_each (pos, tmp, &in->parcels) {
		struct wf_shm_parcel *parcel =
			wf_container_of(pos, struct wf_shm_parcel, link);
		struct wf_envelope env = parcel_envelope(parcel);

		parcel->in = NULL;
		wf_base_list_del(&parcel->link);
		parcel->lost = parcel->have < parcel->ux.len;
		if (!parcel->rx)
			continue;
		if (err)
			wf_match_rxq_fail(in->ep->rxq, parcel->rx, &env, err);
		free(parcel);
	}
	for (uint32_t i = 0; i < in->pulls.room; i++) {
		struct wf_shm_pull *pull = wf_base_table_get(&in->pulls, i);

		if (pull)
			wf_shm_pull_orphan(pull, err);
	}
	wf_shm_offer_forget(in);
	wf_shm_link_drop_in(in);
	wf_base_list_del(&in->busy_link);
	wf_base_table_fini(&in->pulls);
	free(in->spare_pull);
	wf_shm_reply_fini(&in->replies);
	wf_shm_region_unmap(&in->region);
	wf_shm_mover_close(&in->mover);
	free(in);
}

static const struct wf_ux_ops parcel_ops = {
	.deliver = parcel_deliver,
	.discard = parcel_discard,
};
