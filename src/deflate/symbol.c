/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Literals and matches in zlib's steps: one byte of input at a time, and each
 * part of a symbol by itself. For symbols that the input or the room cuts, and
 * for bad ones: callers see where zlib stops, what it has consumed and what it
 * reports. fast.c decodes whole symbols.
 */
#include "deflate/cursor.h"

/* Where zlib's own fast loop decodes: it needs that much input and room. */
#define ZLIB_FAST_IN 6
#define ZLIB_FAST_OUT 258

/* Finds the next code, drops it and counts its bits. False where the input
 * ends. */
static bool take_code(struct wf_inflate *s, struct wf_cursor *c,
		      const uint32_t *table, unsigned int root, uint32_t *entry)
{
	uint64_t mask = (1u << root) - 1;

	for (;;) {
		uint32_t e = table[c->hold & mask];
		unsigned int len = wf_table_code(e);

		if (e & WF_TABLE_SUB) {
			e = table[wf_table_sub(e, c->hold >> root)];
			len = root + wf_table_code(e);
		}
		if (len <= c->bits) {
			wf_cursor_drop(c, len);
			s->back += (int)len;
			*entry = e;
			return true;
		}
		if (!wf_cursor_need(c, c->bits + 1))
			return false;
	}
}

static bool take_extra(struct wf_inflate *s, struct wf_cursor *c,
		       unsigned int *value)
{
	if (!wf_cursor_need(c, s->extra))
		return false;
	*value += wf_cursor_peek(c, s->extra);
	wf_cursor_drop(c, s->extra);
	s->back += (int)s->extra;
	return true;
}

static enum wf_step step_code(struct wf_inflate *s, struct wf_cursor *c)
{
	const uint32_t *lit = s->fixed ? wf_deflate_fixed.lit : s->codes->lit;
	unsigned int root = s->fixed ? wf_deflate_fixed.lit_bits : s->lit_bits;
	uint32_t e;

	s->back = 0;
	if (!take_code(s, c, lit, root, &e))
		return WF_STEP_LEAVE;
	s->length = wf_table_base(e);
	if (e & WF_TABLE_LITERAL) {
		s->mode = WF_INFLATE_LITERAL;
		return WF_STEP_ON;
	}
	if (e & WF_TABLE_OTHER) {
		if (e & WF_TABLE_BAD)
			return wf_inflate_fail(s,
					       "invalid literal/length code");
		s->back = -1;
		s->mode = WF_INFLATE_TYPE;
		return WF_STEP_ON;
	}
	s->extra = wf_table_drop(e) - wf_table_code(e);
	s->mode = WF_INFLATE_LENGTH_EXTRA;
	return WF_STEP_ON;
}

static enum wf_step step_distance(struct wf_inflate *s, struct wf_cursor *c)
{
	const uint32_t *dist =
		s->fixed ? wf_deflate_fixed.dist : s->codes->dist;
	uint32_t e;

	if (!take_code(s, c, dist, WF_TABLE_DIST_BITS, &e))
		return WF_STEP_LEAVE;
	if (e & WF_TABLE_OTHER)
		return wf_inflate_fail(s, "invalid distance code");
	s->distance = wf_table_base(e);
	s->extra = wf_table_drop(e) - wf_table_code(e);
	s->mode = WF_INFLATE_DISTANCE_EXTRA;
	return WF_STEP_ON;
}

static enum wf_step step_match(struct wf_inflate *s, struct wf_cursor *c)
{
	size_t room = (size_t)(c->out_end - c->out);
	unsigned int len = s->length;

	if (!room)
		return WF_STEP_LEAVE;
	/* Only here, where there is room, as in zlib. */
	if (!wf_deflate_window_has(s, c, s->distance))
		return wf_inflate_fail(s, "invalid distance too far back");
	if (len > room)
		len = (unsigned int)room;
	wf_deflate_window_match(s, c, s->distance, len);
	s->length -= len;
	if (!s->length)
		s->mode = WF_INFLATE_CODE;
	return WF_STEP_ON;
}

static enum wf_step step_part(struct wf_inflate *s, struct wf_cursor *c)
{
	switch (s->mode) {
	case WF_INFLATE_CODE:
		return step_code(s, c);
	case WF_INFLATE_LENGTH_EXTRA:
		if (!take_extra(s, c, &s->length))
			return WF_STEP_LEAVE;
		s->was = s->length;
		s->mode = WF_INFLATE_DISTANCE;
		return WF_STEP_ON;
	case WF_INFLATE_DISTANCE:
		return step_distance(s, c);
	case WF_INFLATE_DISTANCE_EXTRA:
		if (!take_extra(s, c, &s->distance))
			return WF_STEP_LEAVE;
		s->mode = WF_INFLATE_MATCH;
		return WF_STEP_ON;
	case WF_INFLATE_MATCH:
		return step_match(s, c);
	default: /* WF_INFLATE_LITERAL */
		if (c->out == c->out_end)
			return WF_STEP_LEAVE;
		*c->out++ = (uint8_t)s->length;
		s->mode = WF_INFLATE_CODE;
		return WF_STEP_ON;
	}
}

enum wf_step wf_deflate_symbol_step(struct wf_inflate *s, struct wf_cursor *c)
{
	int back = s->back;
	enum wf_step step;

	if (s->mode != WF_INFLATE_CODE || c->in_end - c->in < ZLIB_FAST_IN ||
	    c->out_end - c->out < ZLIB_FAST_OUT)
		return step_part(s, c);
	/* zlib's fast loop does not count the bits of a symbol; what
	 * inflateMark() says after a bad one shows it. */
	do {
		step = step_part(s, c);
	} while (step == WF_STEP_ON && s->mode > WF_INFLATE_CODE &&
		 s->mode <= WF_INFLATE_LITERAL);
	if (s->mode != WF_INFLATE_TYPE)
		s->back = back;
	return step;
}
