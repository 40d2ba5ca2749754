/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of a page of counters. One writer at a time (the owner's
 * lock); readers see values that may be a moment old. Without a descriptor or
 * memory to spare it counts where nobody looks: watching is never worth a
 * failure.
 */
#ifndef WF_BASE_STATS_H
#define WF_BASE_STATS_H

#include <stdbool.h>

#include "base/stats_defs.h"

struct wf_stats {
	struct wf_stats_page *page; /* never NULL once open */
	int fd;			    /* keeps the page findable; -1: none */
	bool mapped;
};

/* @names: one per counter, shorter than 24. 0 or -ENOMEM. */
int wf_base_stats_open(struct wf_stats *stats, const char *kind,
		       const char *name, const char *const *names,
		       unsigned int count);
void wf_base_stats_close(struct wf_stats *stats);

/* In a forked child: the page is the parent's. From here on the child counts
 * into a page that nobody reads. Async-signal-safe. */
void wf_base_stats_forked(struct wf_stats *stats);

static inline void wf_base_stats_set(struct wf_stats *stats, unsigned int item,
				     uint64_t value)
{
	atomic_store_explicit(&stats->page->items[item].value, value,
			      memory_order_relaxed);
}

static inline uint64_t wf_base_stats_get(const struct wf_stats *stats,
					 unsigned int item)
{
	return atomic_load_explicit(&stats->page->items[item].value,
				    memory_order_relaxed);
}

static inline void wf_base_stats_add(struct wf_stats *stats, unsigned int item,
				     uint64_t more)
{
	wf_base_stats_set(stats, item, wf_base_stats_get(stats, item) + more);
}

#endif
