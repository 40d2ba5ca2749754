/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for messages larger than a slot, and the bell that tells of any.
 */
#include "shm/put.h"

#include <string.h>

#include "base/clock.h"
#include "op/iov.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/pace.h"
#include "shm/trace.h"

/* Lines of the next record that are made ours in a burst. */
#define OWN_LINES 32

/* Where the processor writes whole lines by itself: of a larger record none, and of
 * one with fewer lines than OWN_LINES_LEAST none. */
#define OWN_LINES_LEAST 8

uint32_t wf_shm_put_lines_to_own(uint32_t lines, bool whole)
{
	if (whole)
		return lines < OWN_LINES_LEAST || lines > OWN_LINES ? 0 : lines;
	return lines < OWN_LINES ? lines : OWN_LINES;
}

static inline void copy_to_record(uint8_t *record, const void *buf, size_t len)
{
	if (wf_op_copy_writes_whole_lines())
		wf_os_copy_string(record, buf, len);
	else
		memcpy(record, buf, len);
}

/* The number of polls is put back when the clock is looked at. */
bool wf_shm_put_is_burst(const struct wf_shm_out *out)
{
	const struct wf_host *host = out->ep->host;

	return out->put_polls == host->polls && out->put_now == host->now;
}

/* In a burst, makes the lines of the next record ours while this one is read: the
 * receiver has copies of them, and to write a line that another processor has
 * takes as long as to read it. A program that has polled since the last record
 * may be waiting for an answer. Then the receiver polls, and prefetches the same
 * lines (wf_shm_in_prefetch()). */
static inline void own_next_record(struct wf_shm_out *out, uint32_t lines)
{
	const uint8_t *at = out->data + (size_t)out->line_lap.pos * WF_LINE;
	const struct wf_host *host = out->ep->host;
	bool burst = wf_shm_put_is_burst(out);

	out->put_polls = host->polls;
	out->put_now = host->now;
	/* Those that the receiver has read. */
	if (!burst || lines > out->lines_free)
		return;
	lines = wf_shm_put_lines_to_own(lines, wf_op_copy_writes_whole_lines());
	for (uint32_t i = 0; i < lines; i++)
		wf_base_cpu_own(at + (size_t)i * WF_LINE);
}

void wf_shm_put_bytes(uint8_t *record, const struct iovec *iov, size_t count,
		      size_t at, size_t len, bool around)
{
	if (around && count == 1)
		wf_op_copy_around(record, (uint8_t *)iov->iov_base + at, len);
	else if (count == 1)
		copy_to_record(record, (uint8_t *)iov->iov_base + at, len);
	else
		wf_op_iov_gather(iov, count, at, record, len);
}

/* The receiver's word for messages of @len bytes; 0: nothing is asked for. */
static inline uint32_t asked_for(const struct wf_shm_out *out, size_t len)
{
	uint32_t told;

	if (len < WF_SHM_PACE_LEAST)
		return 0;
	told = wf_shared_load(&out->region.header->ways, relaxed);
	return told &
	       (WF_SHM_WAYS_STAMP | WF_SHM_WAYS_AROUND(wf_shm_pace_kind(len)));
}

uint8_t wf_shm_put_eager(struct wf_shm_out *out, struct wf_shm_slot *slot,
			 uint8_t *record, const struct iovec *iov, size_t count,
			 size_t len)
{
	uint32_t asked = asked_for(out, len);
	bool around = asked & ~WF_SHM_WAYS_STAMP;
	uint8_t flags = around ? WF_SHM_SLOT_AROUND : 0;

	if (asked & WF_SHM_WAYS_STAMP) {
		flags |= WF_SHM_SLOT_STAMPED;
		slot->eager.stamp = wf_shm_pace_stamp(wf_base_clock_ns());
	}
	wf_shm_put_bytes(record, iov, count, 0, len, around);
	return flags;
}

/* The same, not inlined, for one buffer: the rule is that nothing is asked for.
 */
static __attribute__((noinline)) uint8_t
fill_as_asked(struct wf_shm_out *out, struct wf_shm_slot *slot, uint8_t *record,
	      const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
				   .iov_len = len };

	return wf_shm_put_eager(out, slot, record, &iov, 1, len);
}

bool wf_shm_put_large(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
		      uint64_t data, const void *buf, size_t len)
{
	struct wf_shm_slot *slot;
	uint8_t *record;

	if (!wf_shm_put_fits(out, len) && !wf_shm_out_has_room(out, len))
		return false;
	slot = wf_shm_put_slot(out);
	record = wf_shm_put_record(out, len);
	if (wf_unlikely(asked_for(out, len)))
		flags |= fill_as_asked(out, slot, record, buf, len);
	else
		copy_to_record(record, buf, len);
	slot->tag = tag;
	slot->data = data;
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_EAGER,
			   flags | wf_shm_put_turn(out));
	/* Lines that are written around the caches need not be ours. */
	if (!(flags & WF_SHM_SLOT_AROUND))
		own_next_record(out, wf_shm_put_lines(len));
	return true;
}

void wf_shm_out_ring(struct wf_shm_out *out)
{
	if (wf_unlikely(wf_shm_trace_is_on(out)) && !wf_shm_trace_put(out))
		return;
	if (!wf_shm_board_ring(out->board.board, out->bell))
		return;
	if (wf_unlikely(wf_shm_trace_is_on(out)))
		wf_shm_trace_rang(out);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_wakes, 1);
	wf_shm_link_wake_receiver(out);
}
