/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and closing a page of counters.
 */
#include "base/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/memfd.h"

static struct wf_stats_page *map_page(int *fd)
{
	void *page;

	*fd = wf_base_memfd_create(WF_STATS_FILE, WF_STATS_BYTES);
	if (*fd < 0)
		return NULL;
	page = mmap(NULL, WF_STATS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    *fd, 0);
	if (page != MAP_FAILED)
		return page;
	close(*fd);
	*fd = -1;
	return NULL;
}

int wf_base_stats_open(struct wf_stats *stats, const char *kind,
		       const char *name, const char *const *names,
		       unsigned int count)
{
	struct wf_stats_page *page = map_page(&stats->fd);

	assert(count <= WF_STATS_MAX);
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
	page->pid = (uint32_t)getpid();
	page->started = (uint64_t)time(NULL);
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
	if (stats->fd >= 0) {
		munmap(stats->page, WF_STATS_BYTES);
		close(stats->fd);
	} else {
		free(stats->page);
	}
	stats->page = NULL;
	stats->fd = -1;
}
