/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message sizes as people write them: "64", "4K", "1M", lists and ranges.
 */
#ifndef WF_TOOLS_BENCH_SIZE_H
#define WF_TOOLS_BENCH_SIZE_H

#include "tools/bench/plan.h"

enum { WF_TOOLS_SIZE_TEXT = 24 };

/*
 * Reads "8,64,1K-64K": numbers with K, M or G (powers of 1024), ranges by
 * powers of two. Sorted, without duplicates. Returns 0, -EINVAL for text that
 * cannot be read, -ERANGE for a size outside 1 B to 1 GiB, -E2BIG for too many.
 */
int wf_tools_size_list(const char *text, struct wf_tools_sizes *sizes);

/* "64", "4K", "1M": exact, so that it can be read again. Returns buf. */
const char *wf_tools_size_text(size_t size, char buf[WF_TOOLS_SIZE_TEXT]);

#endif
