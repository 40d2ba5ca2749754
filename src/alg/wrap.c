/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers and trailers, written and read.
 */
#include "alg/wrap.h"

#include <errno.h>
#include <string.h>

#include <weft/wd_comp.h>

#define GZIP_FIXED 10
#define GZIP_OS_UNIX 3
#define STORED_MAX 65535

enum gzip_flag {
	GZIP_TEXT = 1,
	GZIP_HCRC = 2,
	GZIP_EXTRA = 4,
	GZIP_NAME = 8,
	GZIP_COMMENT = 16,
	GZIP_RESERVED = 0xe0,
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

size_t wf_alg_wrap_header_size(int alg)
{
	return alg == WD_COMP_GZIP ? GZIP_FIXED : alg == WD_COMP_ZLIB ? 2 : 0;
}

size_t wf_alg_wrap_trailer_size(int alg)
{
	return alg == WD_COMP_GZIP ? 8 : alg == WD_COMP_ZLIB ? 4 : 0;
}

size_t wf_alg_wrap_member(uint8_t *out, const struct wf_wrap_member *member)
{
	size_t n = GZIP_FIXED;

	memset(out, 0, GZIP_FIXED);
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

void wf_alg_wrap_begin(struct wf_wrap *wrap, int alg)
{
	*wrap = (struct wf_wrap){
		.alg = alg,
		.state = alg == WD_COMP_RAW ? WF_WRAP_DONE : WF_WRAP_FIXED,
		.window = 15,
	};
}

/* The fixed part is whole. */
static int fixed_done(struct wf_wrap *w)
{
	const uint8_t *b = w->bytes;

	if (w->alg == WD_COMP_ZLIB) {
		/* FDICT: such a stream needs what only the caller has. */
		if ((b[0] << 8 | b[1]) % 31 || (b[0] & 15) != 8 ||
		    b[0] >> 4 > 7 || b[1] & 0x20)
			return -EBADMSG;
		w->window = (b[0] >> 4) + 8;
		w->state = WF_WRAP_DONE;
		return 0;
	}
	if (b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 || b[3] & GZIP_RESERVED)
		return -EBADMSG;
	w->flags = b[3];
	w->state = WF_WRAP_EXTRA_LEN;
	return 0;
}

/* One byte into a field of @n; true when that is all of them. */
static bool gather(struct wf_wrap *w, uint8_t byte, unsigned int n)
{
	w->bytes[w->have++] = byte;
	if (w->have < n)
		return false;
	w->have = 0;
	return true;
}

/* Fields that the flags leave out. */
static void skip_absent(struct wf_wrap *w)
{
	if (w->state == WF_WRAP_EXTRA_LEN && !(w->flags & GZIP_EXTRA))
		w->state = WF_WRAP_NAME;
	if (w->state == WF_WRAP_EXTRA && !w->left)
		w->state = WF_WRAP_NAME;
	if (w->state == WF_WRAP_NAME && !(w->flags & GZIP_NAME))
		w->state = WF_WRAP_COMMENT;
	if (w->state == WF_WRAP_COMMENT && !(w->flags & GZIP_COMMENT))
		w->state = WF_WRAP_HCRC;
	if (w->state == WF_WRAP_HCRC && !(w->flags & GZIP_HCRC))
		w->state = WF_WRAP_DONE;
}

static int read_byte(struct wf_wrap *w, uint8_t byte)
{
	switch (w->state) {
	case WF_WRAP_FIXED:
		if (!gather(w, byte, w->alg == WD_COMP_ZLIB ? 2 : GZIP_FIXED))
			return 0;
		return fixed_done(w);
	case WF_WRAP_EXTRA_LEN:
		if (gather(w, byte, 2)) {
			w->left = w->bytes[0] | (uint32_t)w->bytes[1] << 8;
			w->state = WF_WRAP_EXTRA;
		}
		return 0;
	case WF_WRAP_EXTRA:
		if (w->extra && w->extra_len < w->extra_room)
			w->extra[w->extra_len++] = byte;
		w->left--;
		return 0;
	case WF_WRAP_NAME:
	case WF_WRAP_COMMENT:
		if (!byte)
			w->state++;
		return 0;
	case WF_WRAP_HCRC:
		if (!gather(w, byte, 2))
			return 0;
		w->state = WF_WRAP_DONE;
		return (w->bytes[0] | w->bytes[1] << 8) ==
				       (int)(w->crc & 0xffff) ?
			       0 :
			       -EBADMSG;
	default:
		return 0;
	}
}

int wf_alg_wrap_read(struct wf_wrap *wrap, const uint8_t *in, size_t len,
		     size_t *used)
{
	size_t i = 0;
	int ret = 0;

	while (wrap->state != WF_WRAP_DONE && i < len && !ret) {
		enum wf_wrap_state before = wrap->state;

		ret = read_byte(wrap, in[i]);
		if (wrap->alg == WD_COMP_GZIP && before != WF_WRAP_HCRC)
			wrap->crc = wd_comp_check(WD_COMP_GZIP, wrap->crc,
						  in + i, 1);
		i++;
		if (!ret && wrap->alg == WD_COMP_GZIP)
			skip_absent(wrap);
	}
	*used = i;
	return ret ? ret : wrap->state == WF_WRAP_DONE;
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
