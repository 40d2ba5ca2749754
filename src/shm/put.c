/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for messages larger than a slot, and the bell that tells of any.
 */
#include "shm/put.h"

#include <string.h>

#include "os/socket.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/trace.h"

/* Lines of the next record that are made ours in a burst. */
#define OWN_LINES 32

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

void wf_shm_out_ring(struct wf_shm_out *out)
{
	if (wf_unlikely(wf_shm_trace_is_on(out)) && !wf_shm_trace_put(out))
		return;
	if (!wf_shm_board_ring(out->board.board, out->bell))
		return;
	if (wf_unlikely(wf_shm_trace_is_on(out)))
		wf_shm_trace_rang(out);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_wakes, 1);
	/* A full socket is readable at the other end, and so wakes it, too. */
	wf_os_send(wf_shm_link_out_fd(out), "", 1, MSG_DONTWAIT);
}
