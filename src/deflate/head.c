/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file reads the parts around the deflate data: the headers of zlib (RFC
 * 1950) and gzip (RFC 1952) and their trailers, as the bytes come. The steps
 * are zlib's, because callers see how far a header was read when its input
 * ends.
 */
#include "deflate/cursor.h"

#include <errno.h>
#include <string.h>

#include "deflate/check.h"

#define METHOD 8 /* deflate, the only one */
#define GZIP_MAGIC 0x8b1f
#define GZIP_LEAST 10		   /* bytes of a header without fields */
#define GZIP_MAGIC_CRC 0xf6e946c9u /* CRC-32 of its two bytes */

/* In the second byte of what flags holds. */
enum gzip_flag {
	GZIP_TEXT = 0x0100,
	GZIP_HCRC = 0x0200,
	GZIP_EXTRA = 0x0400,
	GZIP_NAME = 0x0800,
	GZIP_COMMENT = 0x1000,
	GZIP_RESERVED = 0xe000,
};

static void set_check(struct wf_inflate *s, uint32_t check)
{
	s->check = check;
	s->adler = check;
	s->adler_new = true;
}

/* Takes @len bytes of the header into its CRC, if it has one that counts. */
static void header_bytes(struct wf_inflate *s, const uint8_t *bytes, size_t len)
{
	if (len && s->flags & GZIP_HCRC && s->wrap & WF_INFLATE_CHECK)
		s->check = wf_deflate_crc32(s->check, bytes, len);
}

static void header_word(struct wf_inflate *s, uint64_t word, size_t len)
{
	uint8_t bytes[4];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(word >> (8 * i));
	header_bytes(s, bytes, len);
}

static enum wf_step read_zlib(struct wf_inflate *s, struct wf_cursor *c)
{
	unsigned int wbits;
	bool dict;

	if (!(s->wrap & WF_INFLATE_ZLIB) ||
	    ((uint64_t)wf_cursor_peek(c, 8) * 256 + (c->hold >> 8)) % 31)
		return wf_inflate_fail(s, "incorrect header check");
	if (wf_cursor_peek(c, 4) != METHOD)
		return wf_inflate_fail(s, "unknown compression method");
	wf_cursor_drop(c, 4);
	wbits = wf_cursor_peek(c, 4) + 8;
	if (!s->wbits)
		s->wbits = wbits;
	if (wbits > 15 || wbits > s->wbits)
		return wf_inflate_fail(s, "invalid window size");
	s->flags = 0;
	set_check(s, 1);
	dict = c->hold & 0x200; /* FDICT: four bits are gone */
	s->mode = dict ? WF_INFLATE_DICT_ID : WF_INFLATE_TYPE;
	wf_cursor_clear(c);
	return WF_STEP_ON;
}

/* The header that most gzip streams have, without any field, at once. False:
 * nothing is read. */
static bool read_plain(struct wf_inflate *s, struct wf_cursor *c)
{
	static const uint8_t plain[] = { 0x1f, 0x8b, METHOD, 0 };

	if (!(s->wrap & WF_INFLATE_GZIP) || s->head || c->bits ||
	    c->in_end - c->in < GZIP_LEAST ||
	    memcmp(c->in, plain, sizeof(plain)) != 0)
		return false;
	c->in += GZIP_LEAST;
	if (!s->wbits)
		s->wbits = 15;
	s->flags = METHOD;
	s->length = 0;
	set_check(s, 0);
	s->mode = WF_INFLATE_TYPE;
	return true;
}

static enum wf_step read_magic(struct wf_inflate *s, struct wf_cursor *c)
{
	if (!s->wrap) {
		s->mode = WF_INFLATE_TYPE_DO;
		return WF_STEP_ON;
	}
	if (read_plain(s, c))
		return WF_STEP_ON;
	if (!wf_cursor_need(c, 16))
		return WF_STEP_LEAVE;
	if (s->wrap & WF_INFLATE_GZIP && c->hold == GZIP_MAGIC) {
		if (!s->wbits)
			s->wbits = 15;
		s->check = GZIP_MAGIC_CRC;
		wf_cursor_clear(c);
		s->mode = WF_INFLATE_GZ_FLAGS;
		return WF_STEP_ON;
	}
	if (s->head)
		s->head->done = -1;
	return read_zlib(s, c);
}

static enum wf_step read_flags(struct wf_inflate *s, struct wf_cursor *c)
{
	if (!wf_cursor_need(c, 16))
		return WF_STEP_LEAVE;
	s->flags = (int)c->hold;
	if ((s->flags & 0xff) != METHOD)
		return wf_inflate_fail(s, "unknown compression method");
	if (s->flags & GZIP_RESERVED)
		return wf_inflate_fail(s, "unknown header flags set");
	if (s->head)
		s->head->text = !!(s->flags & GZIP_TEXT);
	header_word(s, c->hold, 2);
	wf_cursor_clear(c);
	s->mode = WF_INFLATE_GZ_TIME;
	return WF_STEP_ON;
}

static enum wf_step read_time(struct wf_inflate *s, struct wf_cursor *c)
{
	if (!wf_cursor_need(c, 32))
		return WF_STEP_LEAVE;
	if (s->head)
		s->head->time = (unsigned long)c->hold;
	header_word(s, c->hold, 4);
	wf_cursor_clear(c);
	s->mode = WF_INFLATE_GZ_OS;
	return WF_STEP_ON;
}

static enum wf_step read_os(struct wf_inflate *s, struct wf_cursor *c)
{
	if (!wf_cursor_need(c, 16))
		return WF_STEP_LEAVE;
	if (s->head) {
		s->head->xflags = (int)(c->hold & 0xff);
		s->head->os = (int)(c->hold >> 8);
	}
	header_word(s, c->hold, 2);
	wf_cursor_clear(c);
	s->mode = WF_INFLATE_GZ_EXTRA_LEN;
	return WF_STEP_ON;
}

static enum wf_step read_extra_len(struct wf_inflate *s, struct wf_cursor *c)
{
	if (s->flags & GZIP_EXTRA) {
		if (!wf_cursor_need(c, 16))
			return WF_STEP_LEAVE;
		s->length = (unsigned int)c->hold;
		if (s->head)
			s->head->extra_len = (unsigned int)c->hold;
		header_word(s, c->hold, 2);
		wf_cursor_clear(c);
	} else if (s->head) {
		s->head->extra = NULL;
	}
	s->mode = WF_INFLATE_GZ_EXTRA;
	return WF_STEP_ON;
}

static enum wf_step read_extra(struct wf_inflate *s, struct wf_cursor *c)
{
	struct wf_inflate_head *head = s->head;
	size_t len = (size_t)(c->in_end - c->in);

	if (s->flags & GZIP_EXTRA) {
		len = len < s->length ? len : s->length;
		if (len && head && head->extra) {
			unsigned int at = head->extra_len - s->length;
			size_t room =
				at < head->extra_max ? head->extra_max - at : 0;

			if (room)
				memcpy(head->extra + at, c->in,
				       len < room ? len : room);
		}
		header_bytes(s, c->in, len);
		c->in += len;
		s->length -= (unsigned int)len;
		if (s->length)
			return WF_STEP_LEAVE;
	}
	s->length = 0;
	s->mode = WF_INFLATE_GZ_NAME;
	return WF_STEP_ON;
}

/* A text that ends with a 0, to @to if that is not NULL; s->length counts what
 * is there. False if it goes on. */
static bool read_text(struct wf_inflate *s, struct wf_cursor *c, uint8_t *to,
		      unsigned int most)
{
	const uint8_t *begin = c->in;
	uint8_t byte = 1;

	while (byte && c->in < c->in_end) {
		byte = *c->in++;
		if (to && s->length < most)
			to[s->length++] = byte;
	}
	header_bytes(s, begin, (size_t)(c->in - begin));
	return !byte;
}

static enum wf_step read_name(struct wf_inflate *s, struct wf_cursor *c)
{
	struct wf_inflate_head *head = s->head;

	if (s->flags & GZIP_NAME) {
		if (!read_text(s, c, head ? head->name : NULL,
			       head ? head->name_max : 0))
			return WF_STEP_LEAVE;
	} else if (head) {
		head->name = NULL;
	}
	s->length = 0;
	s->mode = WF_INFLATE_GZ_COMMENT;
	return WF_STEP_ON;
}

static enum wf_step read_comment(struct wf_inflate *s, struct wf_cursor *c)
{
	struct wf_inflate_head *head = s->head;

	if (s->flags & GZIP_COMMENT) {
		if (!read_text(s, c, head ? head->comment : NULL,
			       head ? head->comment_max : 0))
			return WF_STEP_LEAVE;
	} else if (head) {
		head->comment = NULL;
	}
	s->mode = WF_INFLATE_GZ_CRC;
	return WF_STEP_ON;
}

static enum wf_step read_crc(struct wf_inflate *s, struct wf_cursor *c)
{
	if (s->flags & GZIP_HCRC) {
		if (!wf_cursor_need(c, 16))
			return WF_STEP_LEAVE;
		if (s->wrap & WF_INFLATE_CHECK &&
		    c->hold != (s->check & 0xffff))
			return wf_inflate_fail(s, "header crc mismatch");
		wf_cursor_clear(c);
	}
	if (s->head) {
		s->head->hcrc = !!(s->flags & GZIP_HCRC);
		s->head->done = 1;
	}
	set_check(s, 0);
	s->mode = WF_INFLATE_TYPE;
	return WF_STEP_ON;
}

static enum wf_step read_dict_id(struct wf_inflate *s, struct wf_cursor *c)
{
	if (!wf_cursor_need(c, 32))
		return WF_STEP_LEAVE;
	set_check(s, __builtin_bswap32((uint32_t)c->hold));
	wf_cursor_clear(c);
	s->mode = WF_INFLATE_DICT;
	return WF_STEP_ON;
}

enum wf_step wf_deflate_head_step(struct wf_inflate *s, struct wf_cursor *c)
{
	switch (s->mode) {
	case WF_INFLATE_HEAD:
		return read_magic(s, c);
	case WF_INFLATE_GZ_FLAGS:
		return read_flags(s, c);
	case WF_INFLATE_GZ_TIME:
		return read_time(s, c);
	case WF_INFLATE_GZ_OS:
		return read_os(s, c);
	case WF_INFLATE_GZ_EXTRA_LEN:
		return read_extra_len(s, c);
	case WF_INFLATE_GZ_EXTRA:
		return read_extra(s, c);
	case WF_INFLATE_GZ_NAME:
		return read_name(s, c);
	case WF_INFLATE_GZ_COMMENT:
		return read_comment(s, c);
	case WF_INFLATE_GZ_CRC:
		return read_crc(s, c);
	case WF_INFLATE_DICT_ID:
		return read_dict_id(s, c);
	default: /* WF_INFLATE_DICT, and there is one */
		set_check(s, 1);
		s->mode = WF_INFLATE_TYPE;
		return WF_STEP_ON;
	}
}

int wf_deflate_head_read(struct wf_inflate *s, const uint8_t *in, size_t len,
			 size_t *used)
{
	struct wf_cursor c = {
		.in = in,
		.in_end = wf_cursor_end(in, len),
		.hold = s->hold,
		.bits = s->bits,
	};

	s->msg = NULL;
	while (s->mode < WF_INFLATE_DICT &&
	       wf_deflate_head_step(s, &c) == WF_STEP_ON)
		;
	s->hold = c.hold;
	s->bits = c.bits;
	*used = (size_t)(c.in - in);
	if (s->mode == WF_INFLATE_BAD || s->mode == WF_INFLATE_DICT)
		return -EBADMSG;
	return s->mode > WF_INFLATE_DICT;
}

enum wf_step wf_deflate_trailer_step(struct wf_inflate *s, struct wf_cursor *c)
{
	if (s->mode == WF_INFLATE_SUM && s->wrap) {
		uint32_t sum;

		if (!wf_cursor_need(c, 32))
			return WF_STEP_LEAVE;
		wf_deflate_inflate_show_check(s, c);
		s->total += (uint64_t)(c->out - c->begin);
		/* For zlib this output is over: it is not in the window, and
		 * not counted as progress. */
		c->begin = c->out;
		sum = (uint32_t)c->hold;
		if (!s->flags)
			sum = __builtin_bswap32(sum);
		if (s->wrap & WF_INFLATE_CHECK && sum != s->check)
			return wf_inflate_fail(s, "incorrect data check");
		wf_cursor_clear(c);
	}
	if (s->mode == WF_INFLATE_SUM)
		s->mode = WF_INFLATE_SIZE;
	if (s->wrap && s->flags) {
		if (!wf_cursor_need(c, 32))
			return WF_STEP_LEAVE;
		if (s->wrap & WF_INFLATE_CHECK &&
		    (uint32_t)c->hold != (uint32_t)s->total)
			return wf_inflate_fail(s, "incorrect length check");
		wf_cursor_clear(c);
	}
	s->mode = WF_INFLATE_DONE;
	return WF_STEP_ON;
}
