/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes, maps and closes a ring of events.
 */
#include "base/trace.h"

#include <stdio.h>

#include "base/memfd.h"
#include "base/place.h"
#include "os/memory.h"
#include "os/process.h"

static void write_addr(char *text, size_t room, const struct wf_addr *addr)
{
	char full[WF_ADDR_STR_LEN];

	wf_base_addr_str(addr, full, sizeof(full));
	snprintf(text, room, "%.*s", (int)room - 1, full);
}

void wf_base_trace_open(struct wf_trace *trace, const struct wf_waits *waits,
			const struct wf_addr *addr)
{
	struct wf_trace_front *front;
	void *mapped = NULL;

	*trace = (struct wf_trace){ .fd = waits->fd };
	if (!waits->page ||
	    wf_base_memfd_reserve(waits->fd, WF_TRACE_AT, sizeof(*front)) ||
	    wf_os_mmap_at(&mapped, sizeof(*front), PROT_READ | PROT_WRITE,
			  MAP_SHARED, waits->fd, WF_TRACE_AT))
		return;
	front = mapped;
	write_addr(front->name, sizeof(front->name), addr);
	front->place = wf_base_place_of(addr);
	front->pid = (uint32_t)wf_os_getpid();
	front->layout = WF_TRACE_LAYOUT;
	front->magic = WF_TRACE_MAGIC;
	trace->front = front;
}

void wf_base_trace_close(struct wf_trace *trace)
{
	if (trace->page)
		wf_os_munmap(trace->page, WF_TRACE_BYTES);
	if (trace->front)
		wf_os_munmap(trace->front, sizeof(*trace->front));
	*trace = (struct wf_trace){ .fd = -1 };
}

void wf_base_trace_forked(struct wf_trace *trace)
{
	wf_base_trace_close(trace);
}

bool wf_base_trace_start(struct wf_trace *trace)
{
	void *mapped = NULL;

	if (trace->page)
		return true;
	if (!trace->front ||
	    wf_base_memfd_reserve(trace->fd, WF_TRACE_AT, WF_TRACE_BYTES) ||
	    wf_os_mmap_at(&mapped, WF_TRACE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, trace->fd, WF_TRACE_AT))
		return false;
	trace->page = mapped;
	return true;
}

uint16_t wf_base_trace_channel(struct wf_trace *trace,
			       const struct wf_addr *addr)
{
	struct wf_trace_channel *channel;

	if (trace->channel_count == WF_TRACE_CHANNELS)
		return WF_TRACE_NO_CHANNEL;
	channel = &trace->page->channels[trace->channel_count++];
	if (addr->sa.sa_family != AF_UNSPEC) {
		write_addr(channel->peer, sizeof(channel->peer), addr);
		channel->place = wf_base_place_of(addr);
	}
	/* Release: the channel is there before its number is used. */
	atomic_store_explicit(&trace->page->front.channel_count,
			      trace->channel_count, memory_order_release);
	return (uint16_t)(trace->channel_count - 1);
}
