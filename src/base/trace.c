/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and closing a ring of events.
 */
#include "base/trace.h"

#include <stdio.h>

#include "base/memfd.h"
#include "base/place.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"

/* What is there from the beginning; the rest when somebody wants it. */
#define HEAD_BYTES 4096

static void write_addr(char *text, size_t room, const struct wf_addr *addr)
{
	char full[WF_ADDR_STR_LEN];

	wf_base_addr_str(addr, full, sizeof(full));
	snprintf(text, room, "%.*s", (int)room - 1, full);
}

void wf_base_trace_open(struct wf_trace *trace, const struct wf_addr *addr)
{
	struct wf_trace_page *page;
	void *mapped = NULL;
	int fd;

	*trace = (struct wf_trace){ .fd = -1 };
	fd = wf_base_memfd_create_sparse(WF_TRACE_FILE, WF_TRACE_BYTES);
	if (fd < 0)
		return;
	if (wf_base_memfd_reserve(fd, 0, HEAD_BYTES) ||
	    wf_os_mmap(&mapped, WF_TRACE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd)) {
		wf_os_close(fd);
		return;
	}
	page = mapped;
	write_addr(page->name, sizeof(page->name), addr);
	page->place = wf_base_place_of(addr);
	page->pid = (uint32_t)wf_os_getpid();
	page->layout = WF_TRACE_LAYOUT;
	page->magic = WF_TRACE_MAGIC;
	trace->page = page;
	trace->fd = fd;
}

void wf_base_trace_close(struct wf_trace *trace)
{
	if (!trace->page)
		return;
	wf_os_munmap(trace->page, WF_TRACE_BYTES);
	wf_os_close(trace->fd);
	trace->page = NULL;
	trace->fd = -1;
}

void wf_base_trace_forked(struct wf_trace *trace)
{
	wf_base_trace_close(trace);
}

bool wf_base_trace_start(struct wf_trace *trace)
{
	if (!trace->page)
		return false;
	if (!trace->ready)
		trace->ready = !wf_base_memfd_reserve(
			trace->fd, HEAD_BYTES, WF_TRACE_BYTES - HEAD_BYTES);
	return trace->ready;
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
	atomic_store_explicit(&trace->page->channel_count, trace->channel_count,
			      memory_order_release);
	return (uint16_t)(trace->channel_count - 1);
}
