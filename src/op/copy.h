/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying a few bytes (about a hundred at most) without a call: overlapping
 * moves, each of one size, so that the length costs few branches.
 */
#ifndef WF_OP_COPY_H
#define WF_OP_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void wf_op_copy_small(uint8_t *to, const uint8_t *from,
				    size_t len)
{
	if (len >= 16) {
		for (size_t at = 0; at + 16 < len; at += 16)
			memcpy(to + at, from + at, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

#endif
