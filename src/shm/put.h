/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path: a small message straight into the peer's ring. No allocation,
 * no lock of its own, no system call, no indirect call; one line for a message
 * of up to 40 bytes, two up to 104, written once, the word with the sequence
 * last (release; pairs with the acquire in wf_shm_in_ready()).
 */
#ifndef WF_SHM_PUT_H
#define WF_SHM_PUT_H

#include "op/copy.h"
#include "shm/out.h"

/* Up to here a message may take the fast path. */
#define WF_SHM_PUT_MAX 4096

static inline struct wf_shm_slot *wf_shm_put_slot(struct wf_shm_out *out)
{
	return &out->slots[out->head & out->slot_mask];
}

/* Publishes the slot that wf_shm_put_slot() gave. */
static inline void wf_shm_put_publish(struct wf_shm_out *out,
				      struct wf_shm_slot *slot, size_t len,
				      enum wf_shm_kind kind, uint8_t flags)
{
	uint64_t word = WF_SHM_WORD(out->head + 1, len, kind, flags);

	out->head++;
	out->slots_free--;
	atomic_store_explicit(&slot->word, word, memory_order_release);
}

/* Room for @len bytes in the data area, whole; the caller knows that it is
 * there (wf_shm_out_has_room()). Records do not wrap: both sides skip the rest
 * of the area when a record does not fit there. */
static inline uint8_t *wf_shm_put_record(struct wf_shm_out *out, size_t len)
{
	uint32_t lines = (uint32_t)(len + WF_LINE - 1) / WF_LINE;
	uint32_t at = out->line_head & out->line_mask;
	uint32_t skip = 0;

	if (at + lines > out->line_mask + 1)
		skip = out->line_mask + 1 - at;
	out->line_head += skip + lines;
	out->lines_free -= skip + lines;
	return out->data +
	       (size_t)((out->line_head - lines) & out->line_mask) * WF_LINE;
}

static inline bool wf_shm_put_fits(const struct wf_shm_out *out, size_t len)
{
	uint32_t lines = (uint32_t)(len + WF_LINE - 1) / WF_LINE;
	uint32_t at = out->line_head & out->line_mask;

	if (at + lines > out->line_mask + 1)
		lines += out->line_mask + 1 - at;
	return out->slots_free && lines <= out->lines_free;
}

/* Messages larger than a slot up to WF_SHM_PUT_MAX, all or nothing. */
bool wf_shm_put_records(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
			uint64_t data, const void *buf, size_t len);

/* False: nothing was written, take the slow path. */
static inline bool wf_shm_put(struct wf_shm_out *out, uint8_t flags,
			      uint64_t tag, uint64_t data, const void *buf,
			      size_t len)
{
	struct wf_shm_slot *slot;

	if (wf_unlikely(!out->slots_free) && !wf_shm_out_refresh(out))
		return false;
	if (len > WF_SHM_INLINE_MAX)
		return wf_shm_put_records(out, flags, tag, data, buf, len);
	slot = wf_shm_put_slot(out);
	slot->tag = tag;
	slot->data = data;
	wf_op_copy_small(slot->payload, buf, len);
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_INLINE, flags);
	return true;
}

#endif
