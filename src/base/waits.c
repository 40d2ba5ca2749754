/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making, filling in and closing a page of waits.
 */
#include "base/waits.h"

#include <stdio.h>
#include <string.h>

#include "base/memfd.h"
#include "base/place.h"
#include "base/trace_defs.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"

void wf_base_waits_open(struct wf_waits *waits, const struct wf_addr *addr,
			uint64_t now)
{
	struct wf_waits_page *page;
	char text[WF_ADDR_STR_LEN];
	void *mapped = NULL;
	int fd;

	*waits = (struct wf_waits){ .fd = -1 };
	fd = wf_base_memfd_create_sparse(WF_WAITS_FILE, WF_WAITS_FILE_BYTES);
	if (fd < 0)
		return;
	if (wf_base_memfd_reserve(fd, 0, WF_WAITS_BYTES) ||
	    wf_os_mmap(&mapped, WF_WAITS_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd)) {
		wf_os_close(fd);
		return;
	}
	page = mapped;
	wf_base_addr_str(addr, text, sizeof(text));
	snprintf(page->name, sizeof(page->name), "%.*s",
		 (int)sizeof(page->name) - 1, text);
	page->place = wf_base_place_of(addr);
	page->pid = (uint32_t)wf_os_getpid();
	page->opened = now;
	page->layout = WF_WAITS_LAYOUT;
	page->magic = WF_WAITS_MAGIC;
	waits->page = page;
	waits->fd = fd;
	wf_base_waits_polled(waits, now);
}

void wf_base_waits_close(struct wf_waits *waits)
{
	if (!waits->page)
		return;
	wf_os_munmap(waits->page, WF_WAITS_BYTES);
	wf_os_close(waits->fd);
	waits->page = NULL;
	waits->fd = -1;
}

void wf_base_waits_forked(struct wf_waits *waits)
{
	wf_base_waits_close(waits);
}

bool wf_base_waits_begin(struct wf_waits *waits, uint32_t limit, uint64_t now)
{
	if (!waits->page)
		return false;
	waits->bank = &waits->page->banks[!waits->current];
	memset(waits->bank, 0, offsetof(struct wf_waits_bank, waits));
	waits->bank->written = now;
	waits->count = 0;
	waits->limit = limit;
	return true;
}

struct wf_wait *wf_base_waits_add(struct wf_waits *waits,
				  enum wf_wait_kind kind,
				  enum wf_wait_step step, uint64_t since)
{
	struct wf_waits_bank *bank = waits->bank;
	struct wf_wait *wait;

	assert(waits->limit <= WF_WAITS_MAX);
	if (waits->count >= waits->limit) {
		bank->left_out++;
		return NULL;
	}
	wait = &bank->waits[waits->count++];
	bank->count = waits->count;
	*wait = (struct wf_wait){
		.kind = (uint8_t)kind,
		.step = (uint8_t)step,
		.count = 1,
		.since = since,
	};
	return wait;
}

void wf_base_waits_peer(struct wf_wait *wait, const struct wf_addr *addr)
{
	char text[WF_ADDR_STR_LEN];

	wf_base_addr_str(addr, text, sizeof(text));
	snprintf(wait->peer, sizeof(wait->peer), "%.*s",
		 (int)sizeof(wait->peer) - 1, text);
	wait->place = wf_base_place_of(addr);
}

void wf_base_waits_publish(struct wf_waits *waits)
{
	waits->current = !waits->current;
	/* Release: a reader that sees the new number sees the bank. */
	atomic_store_explicit(&waits->page->current, waits->current,
			      memory_order_release);
}
