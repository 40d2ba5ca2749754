/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where a deflate block may begin in data of which nothing before it is
 * known: the start of every piece that is decompressed ahead of its turn. The
 * result is a guess until the data before it has been decompressed.
 */
#ifndef WF_DEFLATE_FIND_H
#define WF_DEFLATE_FIND_H

#include <stddef.h>
#include <stdint.h>

#define WF_FIND_NONE UINT64_MAX

/*
 * The first bit in [@from, @to) at which a dynamic block (RFC 1951 3.2.7) that
 * is not the last of its stream may begin: its header is one that inflate
 * accepts. WF_FIND_NONE if there is none. Reads nothing behind in[len]; the
 * last few bytes of @in are not searched.
 */
uint64_t wf_deflate_find_block(const uint8_t *in, size_t len, uint64_t from,
			       uint64_t to);

/* The first byte in [@from, @to) at which a gzip member may begin. */
uint64_t wf_deflate_find_member(const uint8_t *in, size_t len, uint64_t from,
				uint64_t to);

#endif
