/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and closing a page of counters.
 */
#include "base/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfd.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"

static struct wf_stats_page *map_page(int *fd)
{
	void *page = NULL;

	*fd = wf_base_memfd_create(WF_STATS_FILE, WF_STATS_BYTES);
	if (*fd < 0)
		return NULL;
	if (!wf_os_mmap(&page, WF_STATS_BYTES, PROT_READ | PROT_WRITE,
			MAP_SHARED, *fd)) {
		/* Only this mapping can write. A kernel without this seal lets
		 * readers write as well, and nothing depends on that. */
		(void)wf_base_memfd_seal_writing(*fd);
		return page;
	}
	wf_os_close(*fd);
	*fd = -1;
	return NULL;
}

int wf_base_stats_open(struct wf_stats *stats, const char *kind,
		       const char *name, const char *const *names,
		       unsigned int count)
{
	struct wf_stats_page *page = map_page(&stats->fd);

	assert(count <= WF_STATS_MAX);
	stats->mapped = page;
	if (!page) {
		stats->fd = -1;
		page = calloc(1, WF_STATS_BYTES);
	}
	if (!page)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++)
		snprintf(page->items[i].name, sizeof(page->items[i].name), "%s",
			 names[i]);
	snprintf(page->kind, sizeof(page->kind), "%s", kind);
	snprintf(page->name, sizeof(page->name), "%s", name);
	page->pid = (uint32_t)wf_os_getpid();
	page->started = wf_os_time();
	page->count = (uint16_t)count;
	page->layout = WF_STATS_LAYOUT;
	page->magic = WF_STATS_MAGIC;
	stats->page = page;
	return 0;
}

void wf_base_stats_close(struct wf_stats *stats)
{
	if (!stats->page)
		return;
	if (stats->fd >= 0)
		wf_os_close(stats->fd);
	if (stats->mapped)
		wf_os_munmap(stats->page, WF_STATS_BYTES);
	else
		free(stats->page);
	stats->page = NULL;
	stats->fd = -1;
}

void wf_base_stats_forked(struct wf_stats *stats)
{
	void *page = stats->page;

	if (stats->fd < 0)
		return;
	wf_os_close(stats->fd);
	stats->fd = -1;
	/* At the same place, for pointers to it are everywhere. Cannot fail
	 * for want of room: it replaces what is there. */
	(void)wf_os_mmap(&page, WF_STATS_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
}
