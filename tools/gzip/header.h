/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a gzip member (RFC 1952 2.3), as far as the command wants it.
 */
#ifndef WF_TOOLS_GZIP_HEADER_H
#define WF_TOOLS_GZIP_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct wf_gzip_header {
	uint8_t flags;
	uint32_t mtime;
	const uint8_t *extra;
	size_t extra_len;
	const char *name; /* NULL: none */
};

#define WF_GZIP_FLAG_HCRC 2
#define WF_GZIP_FLAG_RESERVED 0xe0

/* Its length, 0 if it is none or not whole. The pointers are into @in. */
size_t wf_tools_gzip_header_parse(const uint8_t *in, size_t len,
				  struct wf_gzip_header *header);

#endif
