/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the header of a gzip member that is all in memory. The library reads
 * and checks it again: nothing here must be taken for true.
 */
#include "tools/gzip/header.h"

#include <string.h>

#define FIXED 10
#define FLAG_EXTRA 4
#define FLAG_NAME 8
#define FLAG_COMMENT 16

size_t wf_tools_gzip_header_parse(const uint8_t *in, size_t len,
				  struct wf_gzip_header *header)
{
	size_t n = FIXED;

	if (len < FIXED || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8)
		return 0;
	*header = (struct wf_gzip_header){
		.flags = in[3],
		.mtime = in[4] | (uint32_t)in[5] << 8 | (uint32_t)in[6] << 16 |
			 (uint32_t)in[7] << 24,
	};
	if (header->flags & FLAG_EXTRA) {
		if (len < n + 2)
			return 0;
		header->extra_len = in[n] | (size_t)in[n + 1] << 8;
		n += 2;
		if (len - n < header->extra_len)
			return 0;
		header->extra = in + n;
		n += header->extra_len;
	}
	for (int bit = FLAG_NAME; bit <= FLAG_COMMENT; bit *= 2) {
		const uint8_t *end;

		if (!(header->flags & bit))
			continue;
		end = len > n ? memchr(in + n, 0, len - n) : NULL;
		if (!end)
			return 0;
		if (bit == FLAG_NAME)
			header->name = (const char *)in + n;
		n = (size_t)(end - in) + 1;
	}
	if (header->flags & WF_GZIP_FLAG_HCRC)
		n += 2;
	return n < len ? n : 0;
}
