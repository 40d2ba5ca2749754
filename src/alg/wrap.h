/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frame around deflate data: headers and trailers of zlib (RFC 1950) and
 * gzip (RFC 1952), byte for byte as zlib writes them. deflate/inflate.h reads
 * headers. Stored blocks are written here too, because they need no driver.
 */
#ifndef WF_ALG_WRAP_H
#define WF_ALG_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/wd_comp.h>

#define WF_WRAP_GZIP 10 /* a gzip header without options */
#define WF_WRAP_MAX 10	/* longest header or trailer that is written */

/* Each returns how many bytes it wrote. */
size_t wf_alg_wrap_header(uint8_t *out, int alg, int level, int window);
size_t wf_alg_wrap_trailer(uint8_t *out, int alg, uint32_t check,
			   uint64_t total);

static inline size_t wf_alg_wrap_header_size(int alg)
{
	return alg == WD_COMP_GZIP ? WF_WRAP_GZIP : alg == WD_COMP_ZLIB ? 2 : 0;
}

static inline size_t wf_alg_wrap_trailer_size(int alg)
{
	return alg == WD_COMP_GZIP ? 8 : alg == WD_COMP_ZLIB ? 4 : 0;
}

/* More than a stream says of itself: what a file's header may hold. */
struct wf_wrap_member {
	int level;
	uint32_t mtime;
	const uint8_t *extra; /* extra fields, NULL: none */
	size_t extra_len;
	const char *name; /* NULL: none */
};

/* The header of a gzip member: 10 bytes, 2 and the extra fields, the name and
 * a zero. */
size_t wf_alg_wrap_member(uint8_t *out, const struct wf_wrap_member *member);

/* Returns the bits of enum wf_inflate_wrap for this format, with the checksum
 * compared. */
int wf_alg_wrap_format(int alg);
/* Whether a whole trailer says this. */
bool wf_alg_wrap_trailer_is(const uint8_t *in, int alg, uint32_t check,
			    uint64_t total);

/* Size of @len bytes in stored blocks; one block at least. */
size_t wf_alg_stored_size(size_t len);
/* Writes them; all but the last block are inner ones, that one if @last. */
size_t wf_alg_stored_write(uint8_t *out, const uint8_t *in, size_t len,
			   bool last);

#endif
