/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file makes the writes of the hostile peer into its rings. Mostly what a
 * correct peer could write, so that the rest arrives in every state.
 */
#include "ring_world.h"

#include "shm/pull.h"
#include "shm/tx.h"

/* A message that the receiver has asked to be streamed, or none. */
static const struct wf_shm_pull *wanted(struct wf_fuzz_world *w)
{
	struct wf_shm_in *in = wf_fuzz_in_of(w);

	for (uint32_t i = 0; in && i < in->pulls.room; i++) {
		const struct wf_shm_pull *pull =
			wf_base_table_get(&in->pulls, i);

		if (pull && pull->state == WF_SHM_PULL_STREAMED)
			return pull;
	}
	return NULL;
}

/* The parts of a parked message, as the receiver will find them. */
static void write_parts(struct wf_fuzz_world *w, const struct wf_shm_in *in,
			const struct wf_shm_parked *parked)
{
	uint32_t at = in->line_pos;
	struct wf_shm_part *parts =
		(void *)(w->ring_in.data + (size_t)at * WF_LINE);
	uint64_t left = parked->total;

	for (uint32_t i = 0; i < parked->iov_count && i < 4; i++) {
		parts[i].addr = wf_fuzz_take_address(w);
		parts[i].len = i + 1 == parked->iov_count ? left : left / 2;
		left -= parts[i].len;
	}
}

static uint32_t free_op(struct wf_fuzz_world *w, const struct wf_shm_in *in)
{
	uint32_t op = wf_fuzz_take8(w);

	for (int i = 0; i < 256; i++, op++) {
		if (!wf_base_table_get(&in->pulls, wf_base_table_number(op)))
			break;
	}
	return op;
}

/* Usually inside the memory that is open; returns the length of the record. */
static size_t write_rma(struct wf_fuzz_world *w, struct wf_shm_slot *slot,
			uint8_t kind, size_t len)
{
	uint8_t how = wf_fuzz_take8(w);

	slot->rma = (struct wf_shm_rma){
		.addr = how < 220 ? wf_fuzz_take(w, 2) % OPEN_LEN :
				    wf_fuzz_take_size(w),
		.key = how & 1 ? OPEN_KEY :
		       how & 2 ? READ_KEY :
				 how,
		.op = wf_fuzz_take8(w),
		.flags = wf_fuzz_take8(w) & 7,
		.buffer = wf_fuzz_take8(w) % (WF_SHM_RETURNS + (how > 240)),
		.amo_kind = wf_fuzz_take8(w) % 4,
		.amo_op = wf_fuzz_take8(w) % 22,
		.amo_type = wf_fuzz_take8(w) % 22,
	};
	if ((slot->rma.flags & WF_SHM_RMA_WORD) && how < 220) {
		slot->rma.len = 8;
		return 0;
	}
	slot->rma.len = (uint32_t)len % 4200 / 16 * 16;
	if (how > 250)
		slot->rma.len = (uint32_t)wf_fuzz_take_size(w);
	if (kind == WF_SHM_KIND_READ || kind == WF_SHM_KIND_NOTE ||
	    slot->rma.len <= WF_SHM_RMA_BYTES_MAX / 2)
		return 0;
	return kind == WF_SHM_KIND_WRITE ? slot->rma.len % 8193 :
					   2 * slot->rma.len % 8193;
}

/* The part of a slot that its kind needs, as a correct peer could write it,
 * with @len corrected accordingly. */
static uint8_t write_sense(struct wf_fuzz_world *w, const struct wf_shm_in *in,
			   struct wf_shm_slot *slot, uint8_t kind, size_t *len)
{
	const struct wf_shm_pull *pull = wanted(w);
	size_t missing = in->assembly.env.len - in->assembly.have;

	if (in->assembly.have) {
		*len = *len && *len < missing ? *len : missing;
		*len = *len > WF_SHM_RECORD_MAX ? WF_SHM_RECORD_MAX : *len;
		return WF_SHM_KIND_NEXT;
	}
	if (kind >= WF_SHM_KIND_WRITE && kind < WF_SHM_KIND_MAX) {
		*len = write_rma(w, slot, kind, *len);
		return kind;
	}
	if (pull && kind >= WF_SHM_KIND_STREAM) {
		slot->stream.op = pull->op;
		slot->stream.offset = pull->have;
		missing = pull->want - pull->have;
		*len = *len && *len < missing ? *len : missing;
		/* Sometimes a little too much. */
		if (wf_fuzz_take8(w) < 20)
			*len = missing + 1 + wf_fuzz_take8(w);
		*len = *len > WF_SHM_RECORD_MAX ? WF_SHM_RECORD_MAX : *len;
		return WF_SHM_KIND_STREAM;
	}
	if (kind == WF_SHM_KIND_FIRST) {
		*len = *len ? *len : 1;
		slot->eager.total = *len + 1 + wf_fuzz_take_size(w) % 20000;
		return kind;
	}
	if (kind >= WF_SHM_KIND_NEXT) {
		slot->parked.total = wf_fuzz_take_size(w);
		slot->parked.op = free_op(w, in);
		slot->parked.iov_count =
			1 + wf_fuzz_take8(w) % WF_SHM_SHARE_IOV;
		slot->parked.addr = wf_fuzz_take_address(w);
		*len = 0;
		if (slot->parked.iov_count > 1) {
			write_parts(w, in, &slot->parked);
			*len = slot->parked.iov_count *
			       sizeof(struct wf_shm_part);
		}
		return WF_SHM_KIND_PARKED;
	}
	return kind == WF_SHM_KIND_EAGER ? kind : WF_SHM_KIND_INLINE;
}

static void write_nonsense(struct wf_fuzz_world *w, struct wf_shm_slot *slot)
{
	slot->parked.total = wf_fuzz_take_size(w);
	slot->parked.op = wf_fuzz_take8(w);
	slot->parked.iov_count = wf_fuzz_take8(w) % 6;
	slot->parked.addr = wf_fuzz_take_address(w);
}

void wf_fuzz_op_slot(struct wf_fuzz_world *w)
{
	uint8_t kind = wf_fuzz_take8(w) % (WF_SHM_KIND_MAX + 1);
	uint8_t flags = wf_fuzz_take8(w) & 0x1f;
	bool sense = wf_fuzz_take8(w) < 245;
	size_t len = wf_fuzz_take_size(w) % (WF_SHM_RECORD_MAX + 1);
	struct wf_shm_in *in = wf_fuzz_in_of(w);
	struct wf_shm_slot *slot;

	if (!in || w->written - in->next >= in->slot_count)
		return;
	slot = &w->ring_in.slots[w->write_pos++];
	if ((flags & WF_SHM_SLOT_TURN) || w->write_pos == in->slot_count)
		w->write_pos = 0;
	slot->tag = wf_fuzz_take8(w) & 1;
	if (sense)
		kind = write_sense(w, in, slot, kind, &len);
	else
		write_nonsense(w, slot);
	if (sense && kind == WF_SHM_KIND_INLINE)
		len %= WF_SHM_INLINE_MAX + 1;
	else if (!sense && wf_fuzz_take8(w) < 100)
		len = wf_fuzz_take(w, 2);
	atomic_store(&slot->word,
		     WF_SHM_WORD(++w->written, (uint16_t)len, kind, flags));
	wf_fuzz_stats.slots++;
	/* Only sometimes several at once, because validity depends on what was
	 * taken. */
	if (wf_fuzz_take8(w) < 220)
		wf_core_progress(&w->to_core);
}

void wf_fuzz_op_data(struct wf_fuzz_world *w)
{
	struct wf_shm_part parts[WF_SHM_SHARE_IOV];
	struct wf_shm_in *in = wf_fuzz_in_of(w);
	size_t at = wf_fuzz_take(w, 2) % (((size_t)WF_LINE << LINES_LOG2) - 64);

	/* Usually where the next record is read. */
	if (in && wf_fuzz_take8(w) < 200)
		at = (size_t)in->line_pos * WF_LINE;
	for (int i = 0; i < WF_SHM_SHARE_IOV; i++) {
		parts[i].addr = wf_fuzz_take(w, 4);
		parts[i].len = wf_fuzz_take_size(w);
	}
	if (at + sizeof(parts) <= (size_t)WF_LINE << LINES_LOG2)
		memcpy(w->ring_in.data + at, parts, sizeof(parts));
}

static void write_share(struct wf_fuzz_world *w, struct wf_shm_share *share,
			size_t len)
{
	uint8_t how = wf_fuzz_take8(w);

	/* First a valid value, then a slightly wrong one. */
	if (len) {
		atomic_store(&share->claimed, 0);
		share->iov_count = 1 + wf_fuzz_take8(w) % WF_SHM_SHARE_IOV;
		share->chunk = 4096 + wf_fuzz_take(w, 2);
		share->len = len - (how & 0x80 ? wf_fuzz_take8(w) % len : 0);
		for (uint32_t i = 0; i < WF_SHM_SHARE_IOV; i++) {
			share->iov[i].addr = wf_fuzz_take_address(w);
			share->iov[i].len = len;
		}
		if (how & 0x70)
			return;
	}
	if (how & 1)
		atomic_store(&share->claimed, (uint32_t)wf_fuzz_take_size(w));
	if (how & 2)
		atomic_store(&share->sender_done,
			     (uint32_t)wf_fuzz_take_size(w));
	if (how & 4)
		atomic_store(&share->sender_failed, (uint32_t)wf_fuzz_take8(w));
	if (how & 8)
		share->iov_count = wf_fuzz_take8(w) % 6;
	if (how & 16)
		share->chunk = wf_fuzz_take_size(w);
	if (how & 32)
		share->len = wf_fuzz_take_size(w);
	if (how & 64)
		share->iov[wf_fuzz_take8(w) % WF_SHM_SHARE_IOV].len =
			wf_fuzz_take_size(w);
}

void wf_fuzz_op_share(struct wf_fuzz_world *w)
{
	struct wf_shm_region *ring =
		wf_fuzz_take8(w) & 1 ? &w->ring_in : &w->ring_out;

	write_share(w, &ring->shares[wf_fuzz_take8(w) % WF_SHM_SHARES], 0);
}

/* An operation of the sender that waits for a reply, or none. */
static const struct wf_shm_tx *waiting(struct wf_fuzz_world *w)
{
	struct wf_shm_out *out = wf_fuzz_out_of(w);
	uint32_t index = wf_fuzz_take8(w);

	for (uint32_t i = 0; out && i < out->waiting.room; i++) {
		const struct wf_shm_tx *tx = wf_base_table_get(
			&out->waiting, (index + i) % out->waiting.room);

		if (tx)
			return tx;
	}
	return NULL;
}

void wf_fuzz_op_reply(struct wf_fuzz_world *w)
{
	struct wf_shm_reply *reply =
		&w->ring_out.replies[w->replied % WF_SHM_REPLIES];
	const struct wf_shm_tx *tx = waiting(w);
	bool sense = wf_fuzz_take8(w) < 245;

	if (sense && !tx)
		return;
	reply->op = sense ? tx->op : (uint32_t)wf_fuzz_take_size(w);
	reply->kind = wf_fuzz_take8(w) % (WF_SHM_REPLY_KIND_MAX + 1);
	reply->status =
		wf_fuzz_take8(w) < 200 ? 0 : (int32_t)wf_fuzz_take(w, 4);
	reply->len = wf_fuzz_take_size(w);
	reply->share = wf_fuzz_take8(w) % (WF_SHM_SHARES + 4);
	if (sense) {
		reply->kind = 1 + reply->kind % WF_SHM_REPLY_FINAL;
		reply->len = tx->req->len;
		if (wf_fuzz_take8(w) < 20)
			reply->len += 1 + wf_fuzz_take8(w);
		write_share(w,
			    &w->ring_out.shares[reply->share % WF_SHM_SHARES],
			    tx->req->len);
	}
	atomic_store(&reply->seq, ++w->replied);
	wf_fuzz_stats.replies++;
	if (wf_fuzz_take8(w) < 128)
		wf_core_progress(&w->from_core);
}

void wf_fuzz_op_credit(struct wf_fuzz_world *w)
{
	struct wf_shm_out *out = wf_fuzz_out_of(w);
	uint64_t credit =
		wf_fuzz_take8(w) < 20 ? wf_fuzz_take(w, 8) :
		out ? (uint64_t)out->line_lap.head << 32 | out->slot_lap.head :
		      0;

	atomic_store(&w->ring_out.header->credit, credit);
}

void wf_fuzz_op_anywhere(struct wf_fuzz_world *w)
{
	struct wf_shm_region *ring =
		wf_fuzz_take8(w) & 1 ? &w->ring_in : &w->ring_out;
	size_t at = wf_fuzz_take(w, 3) % (ring->bytes - 8) & ~(size_t)7;
	uint64_t value = wf_fuzz_take_size(w);

	memcpy((uint8_t *)ring->base + at, &value, sizeof(value));
}
