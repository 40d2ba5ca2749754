/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying a few bytes (about a hundred at most) without a call: overlapping
 * moves, each of one size, so that the length costs few branches. And copying
 * around the caches, for another processor.
 */
#ifndef WF_OP_COPY_H
#define WF_OP_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

#define WF_OP_COPY_SMALL_MAX 128

/* Two runs of @n bytes (a constant), from both ends, that may overlap. */
static inline __attribute__((always_inline)) void
wf_op_copy_ends(uint8_t *to, const uint8_t *from, size_t len, size_t n)
{
	/* cppcheck-suppress ctunullpointer ; NULL comes with a length of 0 */
	memcpy(to, from, n);
	memcpy(to + len - n, from + len - n, n);
}

static inline void wf_op_copy_small(uint8_t *to, const uint8_t *from,
				    size_t len)
{
	if (len > 64) {
		wf_op_copy_ends(to, from, len, 64);
	} else if (len > 32) {
		wf_op_copy_ends(to, from, len, 32);
	} else if (len >= 16) {
		wf_op_copy_ends(to, from, len, 16);
	} else if (len >= 8) {
		wf_op_copy_ends(to, from, len, 8);
	} else if (len >= 4) {
		wf_op_copy_ends(to, from, len, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		/* cppcheck-suppress arrayIndexOutOfBoundsCond ; len is 1 to 3 */
		to[len - 1] = from[len - 1];
	}
}

/* Copies to memory that another processor reads next, around our caches: its
 * lines need not be fetched from there before they are written, nor from here
 * when they are read. That is faster where the caches of the two are far apart,
 * and slower where they are not. @to is aligned to a cache line. All of it is
 * written before any store after the call. */
static inline void wf_op_copy_around(uint8_t *to, const uint8_t *from,
				     size_t len)
{
	size_t at = 0;

	for (; at + WF_LINE <= len; at += WF_LINE)
		wf_os_write_line_around(to + at, from + at);
	if (at < len)
		memcpy(to + at, from + at, len - at);
	wf_os_order_lines();
}

/* Whether a copy by wf_os_copy_string() writes whole lines, without getting them
 * from another processor first: AMD since Zen 5. */
bool wf_op_copy_writes_whole_lines(void);

#endif
