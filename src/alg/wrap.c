/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers and trailers, written. Headers are read by deflate/head.c.
 */
#include "alg/wrap.h"

#include <string.h>

#include "deflate/inflate.h"

#define GZIP_OS_UNIX 3
#define STORED_MAX 65535

enum gzip_flag {
	GZIP_EXTRA = 4,
	GZIP_NAME = 8,
};

static void put_le32(uint8_t *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static void put_be32(uint8_t *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (24 - 8 * i));
}

int wf_alg_wrap_format(int alg)
{
	return alg == WD_COMP_GZIP ? WF_INFLATE_GZIP | WF_INFLATE_CHECK :
	       alg == WD_COMP_ZLIB ? WF_INFLATE_ZLIB | WF_INFLATE_CHECK :
				     WF_INFLATE_RAW;
}

size_t wf_alg_wrap_member(uint8_t *out, const struct wf_wrap_member *member)
{
	size_t n = WF_WRAP_GZIP;

	memset(out, 0, WF_WRAP_GZIP);
	out[0] = 0x1f;
	out[1] = 0x8b;
	out[2] = 8;
	out[3] = (uint8_t)((member->extra ? GZIP_EXTRA : 0) |
			   (member->name ? GZIP_NAME : 0));
	put_le32(out + 4, member->mtime);
	/* XFL: 2 slowest, 4 fastest. */
	out[8] = member->level >= 9 ? 2 : member->level < 2 ? 4 : 0;
	out[9] = GZIP_OS_UNIX;
	if (member->extra) {
		out[n++] = (uint8_t)member->extra_len;
		out[n++] = (uint8_t)(member->extra_len >> 8);
		memcpy(out + n, member->extra, member->extra_len);
		n += member->extra_len;
	}
	if (member->name) {
		size_t len = strlen(member->name) + 1;

		memcpy(out + n, member->name, len);
		n += len;
	}
	return n;
}

size_t wf_alg_wrap_header(uint8_t *out, int alg, int level, int window)
{
	if (alg == WD_COMP_GZIP) {
		wf_alg_wrap_member(out,
				   &(struct wf_wrap_member){ .level = level });
	} else if (alg == WD_COMP_ZLIB) {
		unsigned int hint = level < 2  ? 0 :
				    level < 6  ? 1 :
				    level == 6 ? 2 :
						 3;
		unsigned int word = (8u + (((unsigned int)window - 8) << 4))
					    << 8 |
				    hint << 6;

		word += 31 - word % 31;
		out[0] = (uint8_t)(word >> 8);
		out[1] = (uint8_t)word;
	}
	return wf_alg_wrap_header_size(alg);
}

size_t wf_alg_wrap_trailer(uint8_t *out, int alg, uint32_t check,
			   uint64_t total)
{
	if (alg == WD_COMP_GZIP) {
		put_le32(out, check);
		put_le32(out + 4, (uint32_t)total);
	} else if (alg == WD_COMP_ZLIB) {
		put_be32(out, check);
	}
	return wf_alg_wrap_trailer_size(alg);
}

bool wf_alg_wrap_trailer_is(const uint8_t *in, int alg, uint32_t check,
			    uint64_t total)
{
	uint8_t want[WF_WRAP_MAX];
	size_t len = wf_alg_wrap_trailer(want, alg, check, total);

	return !memcmp(in, want, len);
}

size_t wf_alg_stored_size(size_t len)
{
	return len + 5 * ((len + STORED_MAX - 1) / STORED_MAX + !len);
}

size_t wf_alg_stored_write(uint8_t *out, const uint8_t *in, size_t len,
			   bool last)
{
	uint8_t *start = out;

	do {
		size_t n = len < STORED_MAX ? len : STORED_MAX;

		*out++ = last && n == len;
		*out++ = (uint8_t)n;
		*out++ = (uint8_t)(n >> 8);
		*out++ = (uint8_t)~n;
		*out++ = (uint8_t)(~n >> 8);
		if (!n)
			break;
		memcpy(out, in, n);
		out += n;
		in += n;
		len -= n;
	} while (len);
	return (size_t)(out - start);
}
