/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page of counters that another process can read while its owner counts
 * (`weft stat`). It says itself what it holds, so that reader and owner may be
 * of different builds.
 *
 * It is a memfd of this name, found by a reader of the same user in the
 * owner's /proc/<pid>/fd: no file, and nothing that the owner would have to
 * answer.
 */
#ifndef WF_BASE_STATS_DEFS_H
#define WF_BASE_STATS_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WF_STATS_FILE "weft-stats"
#define WF_STATS_MAGIC 0x73746677u /* "wfts" */
#define WF_STATS_LAYOUT 1
#define WF_STATS_BYTES 4096
#define WF_STATS_MAX 120

struct wf_stats_item {
	char name[24]; /* with its 0 */
	_Atomic uint64_t value;
};

struct wf_stats_page {
	uint32_t magic;
	uint16_t layout;
	uint16_t count;
	uint32_t pid;
	uint32_t pad;
	uint64_t started; /* seconds since 1970 */
	char kind[16];	  /* "endpoint" */
	char name[56];	  /* its address */
	uint8_t pad2[32];
	struct wf_stats_item items[WF_STATS_MAX];
};

static_assert(sizeof(struct wf_stats_item) == 32, "two to a line");
static_assert(offsetof(struct wf_stats_page, kind) == 24, "after the numbers");
static_assert(offsetof(struct wf_stats_page, name) == 40, "after the kind");
static_assert(offsetof(struct wf_stats_page, items) == 128, "two lines");
static_assert(sizeof(struct wf_stats_page) <= WF_STATS_BYTES, "one page");

#endif
