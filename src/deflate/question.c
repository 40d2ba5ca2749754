/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries and changes between two calls of inflate: the window, bits ahead of
 * the input, the search for a flush, the position of a stream.
 */
#include <string.h>

#include "deflate/check.h"
#include "deflate/cursor.h"
#include "deflate/inflate.h"

/* Roots of zlib's tables. */
#define ZLIB_PRE_BITS 7
#define ZLIB_LIT_BITS 9
#define ZLIB_DIST_BITS 6

unsigned int wf_deflate_inflate_get_dict(const struct wf_inflate *s,
					 uint8_t *dict)
{
	if (s->whave && dict) {
		/* Oldest first; wnext is 0 or at the end of what there is
		 * until the window is full. */
		memcpy(dict, s->window + s->wnext, s->whave - s->wnext);
		memcpy(dict + s->whave - s->wnext, s->window, s->wnext);
	}
	return s->whave;
}

enum wf_inflate_ret wf_deflate_inflate_set_dict(struct wf_inflate *s,
						const uint8_t *dict, size_t len)
{
	if (s->wrap && s->mode != WF_INFLATE_DICT)
		return WF_INFLATE_BAD_CALL;
	if (s->mode == WF_INFLATE_DICT &&
	    (len ? wf_deflate_adler32(1, dict, len) : 1) != s->check)
		return WF_INFLATE_BAD_DATA;
	if (wf_deflate_window_add(s, wf_cursor_end(dict, len), len)) {
		s->mode = WF_INFLATE_LOST;
		return WF_INFLATE_NO_MEMORY;
	}
	s->has_dict = true;
	return WF_INFLATE_OK;
}

enum wf_inflate_ret wf_deflate_inflate_prime(struct wf_inflate *s, int bits,
					     unsigned int value)
{
	if (bits < 0) {
		s->hold = 0;
		s->bits = 0;
		return WF_INFLATE_OK;
	}
	if (bits > 16 || s->bits + (unsigned int)bits > 32)
		return WF_INFLATE_BAD_CALL;
	s->hold |= (uint64_t)(value & ((1u << bits) - 1)) << s->bits;
	s->bits += (unsigned int)bits;
	return WF_INFLATE_OK;
}

/* Looks for the end of a flush: 0 0 ff ff. s->have of these bytes were the
 * last ones so far. Returns how many bytes it looked at. */
static size_t find_flush(struct wf_inflate *s, const uint8_t *in, size_t len)
{
	size_t i = 0;

	while (i < len && s->have < 4) {
		uint8_t byte = in[i++];

		if (byte == (s->have < 2 ? 0 : 0xff))
			s->have++;
		else if (byte)
			s->have = 0;
		else
			/* After 0 0 another 0 keeps two, after ff one. */
			s->have = 4 - s->have;
	}
	return i;
}

enum wf_inflate_ret wf_deflate_inflate_sync(struct wf_inflate *s,
					    struct wf_inflate_io *io)
{
	size_t used;
	int flags;

	if (!io->in_len && s->bits < 8)
		return WF_INFLATE_NO_PROGRESS;
	if (s->mode != WF_INFLATE_SYNC) {
		uint8_t bytes[4];
		size_t len = 0;

		/* Begin in the bytes that are taken already. */
		s->mode = WF_INFLATE_SYNC;
		s->hold >>= s->bits & 7;
		s->bits -= s->bits & 7;
		for (; s->bits; s->bits -= 8) {
			bytes[len++] = (uint8_t)s->hold;
			s->hold >>= 8;
		}
		s->have = 0;
		find_flush(s, bytes, len);
	}
	used = find_flush(s, io->in, io->in_len);
	io->in = wf_cursor_end(io->in, used);
	io->in_len -= used;
	if (s->have != 4)
		return WF_INFLATE_BAD_DATA;
	if (s->flags == -1)
		s->wrap = 0; /* no header came: what follows is raw */
	else
		s->wrap &= (uint8_t)~WF_INFLATE_CHECK; /* a part is missing */
	flags = s->flags;
	wf_deflate_inflate_reset(s);
	s->flags = flags;
	s->mode = WF_INFLATE_TYPE;
	return WF_INFLATE_OK;
}

bool wf_deflate_inflate_sync_point(const struct wf_inflate *s)
{
	return s->mode == WF_INFLATE_STORED && !s->bits;
}

long wf_deflate_inflate_mark(const struct wf_inflate *s)
{
	long back = s->back * 65536L;

	return s->mode == WF_INFLATE_COPY  ? back + (long)s->length :
	       s->mode == WF_INFLATE_MATCH ? back + (long)(s->was - s->length) :
					     back;
}

void wf_deflate_inflate_validate(struct wf_inflate *s, bool check)
{
	if (check && s->wrap)
		s->wrap |= WF_INFLATE_CHECK;
	else
		s->wrap &= (uint8_t)~WF_INFLATE_CHECK;
}

unsigned long wf_deflate_inflate_codes_used(const struct wf_inflate *s)
{
	unsigned long size = 0;

	if (s->tables == WF_INFLATE_TABLES_PRE)
		return wf_deflate_table_zlib_size(
			s->codes->pre_lens, WF_TABLE_PRES, ZLIB_PRE_BITS, 1);
	if (s->tables >= WF_INFLATE_TABLES_LIT)
		size = wf_deflate_table_zlib_size(
			s->codes->lens, s->tables_nlen, ZLIB_LIT_BITS, 0);
	if (s->tables == WF_INFLATE_TABLES_BOTH)
		size += wf_deflate_table_zlib_size(
			s->codes->lens + s->tables_nlen, s->tables_ndist,
			ZLIB_DIST_BITS, 0);
	return size;
}
