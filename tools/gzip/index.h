/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index that weft gzip leaves in a file: in the extra field of the gzip
 * header (RFC 1952 2.3.1.1), subfield "WF". Restart points lie every `span`
 * bytes of plain data; the index holds the compressed length between each and
 * the next. Little endian:
 *
 *	 0	"WF"
 *	 2	length of what follows (16 bits)
 *	 4	version, 1
 *	 5	3 zero bytes
 *	 8	span (32 bits)
 *	12	how many lengths count (32 bits)
 *	16	lengths (32 bits each); those that do not count are zero
 */
#ifndef WF_TOOLS_GZIP_INDEX_H
#define WF_TOOLS_GZIP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_GZIP_INDEX_HEAD 16
#define WF_GZIP_INDEX_MAX ((65535 - WF_GZIP_INDEX_HEAD) / 4)

struct wf_gzip_index {
	uint32_t span;
	uint32_t room; /* lengths there is place for */
	uint32_t count;
	uint64_t last; /* where the segment being written began */
	uint32_t skip; /* points to leave out between two that count */
	uint32_t skipped;
	uint32_t lengths[WF_GZIP_INDEX_MAX];
};

size_t wf_tools_gzip_index_size(const struct wf_gzip_index *index);
void wf_tools_gzip_index_write(const struct wf_gzip_index *index, uint8_t *out);
/* A restart point at offset @at of the compressed data. When there is no more
 * place, every second point is forgotten. */
void wf_tools_gzip_index_add(struct wf_gzip_index *index, uint64_t at);
/* From an extra field; false if it holds none that makes sense. */
bool wf_tools_gzip_index_read(struct wf_gzip_index *index, const uint8_t *extra,
			      size_t len);

#endif
