/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path: writes a small message into the peer's ring. No allocation, no
 * lock of its own, no system call, no indirect call. A message of up to 32
 * bytes takes one line, one of up to 96 bytes two. The word with the sequence
 * is written last (release; pairs with the acquire in wf_shm_in_ready()).
 */
#ifndef WF_SHM_PUT_H
#define WF_SHM_PUT_H

#include "op/copy.h"
#include "os/shared.h"
#include "shm/out.h"

/* The largest message of the fast path; a record has room for as much. */
#define WF_SHM_PUT_MAX 4096

static_assert(WF_SHM_INLINE_MAX <= WF_OP_COPY_SMALL_MAX, "copied in place");

static inline struct wf_shm_slot *wf_shm_put_slot(struct wf_shm_out *out)
{
	return &out->slots[out->slot_lap.pos];
}

/* On the fast path the kind is a constant, and one branch remains. Inline
 * messages are not counted: their number is that of the slots less the other
 * two. */
static inline void wf_shm_put_count(struct wf_shm_out *out, size_t len,
				    enum wf_shm_kind kind)
{
	if (kind == WF_SHM_KIND_INLINE) {
		out->bytes += len;
	} else if (kind == WF_SHM_KIND_EAGER) {
		out->eager++;
		out->eager_bytes += len;
	} else {
		out->parts++;
	}
}

/* Publishes the slot that wf_shm_put_slot() gave. */
static inline void wf_shm_put_publish(struct wf_shm_out *out,
				      struct wf_shm_slot *slot, size_t len,
				      enum wf_shm_kind kind, uint8_t flags)
{
	uint64_t word = WF_SHM_WORD(out->slot_lap.head + 1, len, kind,
				    flags | out->slot_turn);

	wf_shm_lap_take(&out->slot_lap, 1);
	out->slots_free--;
	wf_shm_put_count(out, len, kind);
	wf_shared_store(&slot->word, word, release);
	/* No fence: this load may miss a receiver that stops polling at this
	 * moment. The receiver looks at the ring once more, after a barrier
	 * on all processors (core/sleep.c) or half a millisecond later
	 * (watch.c). */
	if (wf_unlikely(wf_shared_load(out->bell_wanted, relaxed)))
		wf_shm_out_ring(out);
	if (wf_unlikely(out->slots_free <= WF_SHM_OUT_LOW))
		wf_shm_out_low(out);
}

static inline uint32_t wf_shm_put_lines(size_t len)
{
	return (uint32_t)(len + WF_LINE - 1) / WF_LINE;
}

static inline bool wf_shm_put_fits(const struct wf_shm_out *out, size_t len)
{
	return out->slots_free && wf_shm_put_lines(len) <= out->lines_free;
}

/* Takes room for @len bytes in the data area; the caller has made sure that it
 * is there (wf_shm_out_has_room()). Its slot must carry the flag that
 * wf_shm_put_turn() returns. */
static inline uint8_t *wf_shm_put_record(struct wf_shm_out *out, size_t len)
{
	uint32_t lines = wf_shm_put_lines(len);
	uint8_t *at = out->data + (size_t)out->line_lap.pos * WF_LINE;

	wf_shm_lap_take(&out->line_lap, lines);
	out->lines_free -= lines;
	return at;
}

static inline uint8_t wf_shm_put_turn(struct wf_shm_out *out)
{
	uint8_t turn = out->line_turn;

	out->line_turn = 0;
	return turn;
}

/* Copies @len bytes from @at of the vector into a record; @around is what
 * wf_shm_pace_is_around() says. */
void wf_shm_put_bytes(uint8_t *record, const struct iovec *iov, size_t count,
		      size_t at, size_t len, bool around);

/* Fills in the record of a message of kind EAGER. Returns flags of its slot. */
uint8_t wf_shm_put_eager(struct wf_shm_out *out, struct wf_shm_slot *slot,
			 uint8_t *record, const struct iovec *iov, size_t count,
			 size_t len);

/* Whether the program has not polled since the last record. */
bool wf_shm_put_is_burst(const struct wf_shm_out *out);

/* How many of the @lines of the next record a burst makes its own before it writes
 * them. @whole: the processor writes whole lines without getting them first, and
 * the prefetch would only move them between the caches twice. */
uint32_t wf_shm_put_lines_to_own(uint32_t lines, bool whole);

/* Messages larger than a slot up to WF_SHM_PUT_MAX. */
bool wf_shm_put_large(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
		      uint64_t data, const void *buf, size_t len);

/* False: nothing was written, the caller takes the slow path. */
static inline bool wf_shm_put(struct wf_shm_out *out, uint8_t flags,
			      uint64_t tag, uint64_t data, const void *buf,
			      size_t len)
{
	struct wf_shm_slot *slot;

	if (wf_unlikely(!out->slots_free) && !wf_shm_out_refresh(out))
		return false;
	if (len > WF_SHM_INLINE_MAX)
		return wf_shm_put_large(out, flags, tag, data, buf, len);
	slot = wf_shm_put_slot(out);
	slot->tag = tag;
	slot->data = data;
	wf_op_copy_small(slot->payload, buf, len);
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_INLINE, flags);
	return true;
}

#endif
