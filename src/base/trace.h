/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of a ring of events (trace_defs.h). One writer at a time (the
 * endpoint's lock). Without a page of waits there is no ring, and nobody can turn
 * it on.
 */
#ifndef WF_BASE_TRACE_H
#define WF_BASE_TRACE_H

#include <stdbool.h>

#include "base/addr.h"
#include "base/trace_defs.h"
#include "base/waits.h"
#include "os/inline.h"

struct wf_trace {
	struct wf_trace_front *front; /* NULL: none */
	struct wf_trace_page *page;   /* NULL: was never turned on */
	uint64_t written;
	uint32_t channel_count;
	int fd; /* of the waits */
};

/* For the endpoint that peers call @addr, in the file of its @waits, which is
 * closed after the ring. */
void wf_base_trace_open(struct wf_trace *trace, const struct wf_waits *waits,
			const struct wf_addr *addr);
void wf_base_trace_close(struct wf_trace *trace);

/* In a forked child: the ring is the parent's. Async-signal-safe. */
void wf_base_trace_forked(struct wf_trace *trace);

/* Takes and maps the memory; false: there is none. */
bool wf_base_trace_start(struct wf_trace *trace);

/* A number for a channel to or from @addr. */
uint16_t wf_base_trace_channel(struct wf_trace *trace,
			       const struct wf_addr *addr);

/* Whether somebody wants events now. */
static inline bool wf_base_trace_wanted(const struct wf_trace *trace,
					uint64_t now)
{
	return trace->front && atomic_load_explicit(&trace->front->wanted,
						    memory_order_relaxed) > now;
}

static inline void wf_base_trace_emit(struct wf_trace *trace,
				      enum wf_trace_type type, uint16_t channel,
				      uint32_t seq, uint8_t kind, uint64_t tag,
				      uint64_t len)
{
	struct wf_trace_event *event =
		&trace->page->events[trace->written % WF_TRACE_EVENTS];

	event->ticks = wf_os_ticks();
	event->tag = tag;
	event->len = len;
	event->seq = seq;
	event->channel = channel;
	event->type = (uint8_t)type;
	event->kind = kind;
	/* Release: a reader that sees the number sees the event. */
	atomic_store_explicit(&trace->page->front.written, ++trace->written,
			      memory_order_release);
}

/* An event without a channel. */
static inline void wf_base_trace_note(struct wf_trace *trace,
				      enum wf_trace_type type)
{
	wf_base_trace_emit(trace, type, WF_TRACE_NO_CHANNEL, 0, 0, 0, 0);
}

#endif
