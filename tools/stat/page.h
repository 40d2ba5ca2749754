/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a page of counters out of the memory of a process, which may be of
 * another build, or hostile. Every number of the result is in range, and every
 * text can be printed.
 */
#ifndef WF_TOOLS_STAT_PAGE_H
#define WF_TOOLS_STAT_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stats_defs.h"

struct wf_tools_counter {
	char name[24];
	uint64_t value;
};

struct wf_tools_page {
	uint32_t pid; /* as its owner calls itself */
	uint64_t started;
	char kind[16];
	char name[56];
	unsigned count;
	struct wf_tools_counter counters[WF_STATS_MAX];
};

/* Reads @raw, WF_STATS_BYTES that may change while they are read. 0, or
 * -EPROTO and in *@why what is wrong with it. */
int wf_tools_page_read(struct wf_tools_page *page,
		       const struct wf_stats_page *raw, const char **why);

/* Where its value is, or NULL if there is no such counter. */
const uint64_t *wf_tools_page_find(const struct wf_tools_page *page,
				   const char *name);

/* Its value, or 0 if there is no such counter (another build). */
uint64_t wf_tools_page_get(const struct wf_tools_page *page, const char *name);

#endif
