/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for messages larger than a slot.
 */
#include "shm/put.h"

#include <string.h>

#include "shm/ep.h"

/* Lines of the next record that are made ours in a burst. */
#define OWN_LINES 32

/* In a burst, makes the lines of the next record ours while this one is read: the
 * receiver has copies of them, and to write a line that another processor has
 * takes as long as to read it. A program that has polled since the last record
 * may be waiting for an answer. Then the receiver polls, and prefetches the same
 * lines (wf_shm_in_prefetch()). */
static inline void own_next_record(struct wf_shm_out *out, uint32_t lines)
{
	const uint8_t *at = out->data + (size_t)out->line_lap.pos * WF_LINE;
	uint32_t polls = out->ep->host->polls;
	bool burst = out->put_polls == polls;

	out->put_polls = polls;
	/* Those that the receiver has read. */
	if (!burst || lines > out->lines_free)
		return;
	if (lines > OWN_LINES)
		lines = OWN_LINES;
	for (uint32_t i = 0; i < lines; i++)
		wf_base_cpu_own(at + (size_t)i * WF_LINE);
}

bool wf_shm_put_large(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
		      uint64_t data, const void *buf, size_t len)
{
	struct wf_shm_slot *slot;

	if (!wf_shm_put_fits(out, len) && !wf_shm_out_has_room(out, len))
		return false;
	slot = wf_shm_put_slot(out);
	memcpy(wf_shm_put_record(out, len), buf, len);
	slot->tag = tag;
	slot->data = data;
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_EAGER,
			   flags | wf_shm_put_turn(out));
	own_next_record(out, wf_shm_put_lines(len));
	return true;
}
