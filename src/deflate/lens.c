/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a dynamic block (RFC 1951, 3.2.7): how many codes there are,
 * the lengths of the codes for lengths, the lengths of codes, and then the
 * tables. It is read at once if all of it is there and good; else step by step
 * as zlib does, so that it stops and fails where zlib would.
 */
#include "deflate/cursor.h"

#include <endian.h>
#include <string.h>

#define END_OF_BLOCK 256
#define LENS_MOST (WF_TABLE_LITS + WF_TABLE_DISTS)

/* The order of the lengths of codes for lengths. */
static const uint8_t order[WF_TABLE_PRES] = { 16, 17, 18, 0,  8, 7,  9,
					      6,  10, 5,  11, 4, 12, 3,
					      13, 2,  14, 1,  15 };

static inline unsigned int repeat_least(unsigned int sym)
{
	return sym == 18 ? 11 : 3;
}

/* Input of the quick reader. Bits above count are input, too, or 0. */
struct reader {
	const uint8_t *in;
	const uint8_t *in_end;
	uint64_t hold;
	unsigned int bits;
};

/* To 56 bits at least, or to the end of the input. */
static inline void refill(struct reader *r)
{
	if (__builtin_expect(r->in_end - r->in >= 8, 1)) {
		uint64_t more;

		memcpy(&more, r->in, 8);
		r->hold |= le64toh(more) << r->bits;
		r->in += (63 - r->bits) >> 3;
		r->bits |= 56;
		return;
	}
	while (r->bits < 56 && r->in < r->in_end) {
		r->hold |= (uint64_t)*r->in++ << r->bits;
		r->bits += 8;
	}
}

static inline void drop(struct reader *r, unsigned int count)
{
	r->hold >>= count;
	r->bits -= count;
}

static bool read_pre(struct wf_inflate *s, struct reader *r)
{
	uint8_t lens[WF_TABLE_PRES] = { 0 };
	unsigned int i;

	if (r->bits < 14)
		return false;
	s->nlen = (unsigned int)(r->hold & 31) + 257;
	s->ndist = (unsigned int)(r->hold >> 5 & 31) + 1;
	s->npre = (unsigned int)(r->hold >> 10 & 15) + 4;
	if (s->nlen > WF_TABLE_LITS || s->ndist > WF_TABLE_DISTS)
		return false;
	drop(r, 14);
	/* At least 42 bits are left, or the input is at its end. */
	for (i = 0; i < 14 && i < s->npre; i++) {
		lens[order[i]] = r->hold & 7;
		if (r->bits < 3)
			return false;
		drop(r, 3);
	}
	refill(r);
	for (; i < s->npre; i++) {
		lens[order[i]] = r->hold & 7;
		if (r->bits < 3)
			return false;
		drop(r, 3);
	}
	return !wf_deflate_table_pre(s->codes->dist, lens);
}

/* Reads the lengths, and lists in @syms which are not 0. Returns how many that
 * are, or -1. */
static int read_lens(const struct wf_inflate *s, struct reader *r,
		     uint8_t *lens, uint16_t *syms)
{
	const uint32_t *table = s->codes->dist;
	unsigned int end = s->nlen + s->ndist, at = 0, used = 0;

	while (at < end) {
		unsigned int sym, repeat;
		uint32_t e;

		if (r->bits < WF_TABLE_PRE_BITS + 7)
			refill(r);
		e = table[r->hold & ((1 << WF_TABLE_PRE_BITS) - 1)];
		if (__builtin_expect(r->bits < wf_table_drop(e), 0))
			return -1;
		sym = e >> 16;
		if (sym < 16) {
			drop(r, wf_table_drop(e));
			lens[at] = (uint8_t)sym;
			syms[used] = (uint16_t)at;
			used += sym != 0;
			at++;
			continue;
		}
		repeat = repeat_least(sym) +
			 (unsigned int)((r->hold &
					 ((1u << wf_table_drop(e)) - 1)) >>
					wf_table_code(e));
		drop(r, wf_table_drop(e));
		if (sym != 16) {
			memset(lens + at, 0, repeat);
			at += repeat;
			continue;
		}
		if (!at)
			return -1;
		memset(lens + at, lens[at - 1], repeat);
		for (unsigned int i = 0; i < 6; i++)
			syms[used + i] = (uint16_t)(at + i);
		used += lens[at - 1] ? repeat : 0;
		at += repeat;
	}
	return at == end && lens[END_OF_BLOCK] ? (int)used : -1;
}

/* Everything is read: zlib would have built these tables. */
static void note_tables(struct wf_inflate *s, enum wf_inflate_tables tables)
{
	s->tables = tables;
	s->tables_nlen = s->nlen;
	s->tables_ndist = s->ndist;
}

/* All of it at once. False: nothing is consumed, and the steps must do it; what
 * codes_used() needs to know about the block before is not touched. */
static bool read_all(struct wf_inflate *s, struct wf_cursor *c)
{
	/* The longest repeat may end behind the last length. */
	uint8_t lens[LENS_MOST + 138];
	uint16_t syms[LENS_MOST + 8];
	struct reader r = { c->in, c->in_end, c->hold, c->bits };
	int used, lits;

	refill(&r);
	if (!read_pre(s, &r))
		return false;
	used = read_lens(s, &r, lens, syms);
	if (used < 0)
		return false;
	lits = used;
	while (lits && syms[lits - 1] >= s->nlen)
		lits--;
	for (int i = lits; i < used; i++)
		syms[i] = (uint16_t)(syms[i] - s->nlen);
	if (wf_deflate_table_lit_of(s->codes->lit, &s->lit_bits, lens, syms,
				    (unsigned int)lits) ||
	    wf_deflate_table_dist_of(s->codes->dist, lens + s->nlen,
				     syms + lits, (unsigned int)(used - lits)))
		return false;
	memcpy(s->codes->lens, lens, s->nlen + s->ndist);
	note_tables(s, WF_INFLATE_TABLES_BOTH);
	c->in = r.in - (r.bits >> 3);
	c->bits = r.bits & 7;
	c->hold = r.hold & ((1u << c->bits) - 1);
	s->mode = WF_INFLATE_CODE_NEW;
	return true;
}

static enum wf_step step_table(struct wf_inflate *s, struct wf_cursor *c)
{
	if (c->bits < 8 && read_all(s, c))
		return c->flush == WF_INFLATE_TREES ? WF_STEP_LEAVE :
						      WF_STEP_ON;
	if (!wf_cursor_need(c, 14))
		return WF_STEP_LEAVE;
	s->nlen = wf_cursor_peek(c, 5) + 257;
	wf_cursor_drop(c, 5);
	s->ndist = wf_cursor_peek(c, 5) + 1;
	wf_cursor_drop(c, 5);
	s->npre = wf_cursor_peek(c, 4) + 4;
	wf_cursor_drop(c, 4);
	if (s->nlen > WF_TABLE_LITS || s->ndist > WF_TABLE_DISTS)
		return wf_inflate_fail(s,
				       "too many length or distance symbols");
	s->have = 0;
	s->mode = WF_INFLATE_PRE_LENS;
	return WF_STEP_ON;
}

static enum wf_step step_pre_lens(struct wf_inflate *s, struct wf_cursor *c)
{
	for (; s->have < s->npre; s->have++) {
		if (!wf_cursor_need(c, 3))
			return WF_STEP_LEAVE;
		s->codes->pre_lens[order[s->have]] =
			(uint8_t)wf_cursor_peek(c, 3);
		wf_cursor_drop(c, 3);
	}
	for (; s->have < WF_TABLE_PRES; s->have++)
		s->codes->pre_lens[order[s->have]] = 0;
	if (wf_deflate_table_pre(s->codes->dist, s->codes->pre_lens)) {
		s->tables = WF_INFLATE_TABLES_NONE;
		return wf_inflate_fail(s, "invalid code lengths set");
	}
	s->tables = WF_INFLATE_TABLES_PRE;
	s->have = 0;
	s->mode = WF_INFLATE_LENS;
	return WF_STEP_ON;
}

static enum wf_step build(struct wf_inflate *s, const struct wf_cursor *c)
{
	if (!s->codes->lens[END_OF_BLOCK])
		return wf_inflate_fail(s,
				       "invalid code -- missing end-of-block");
	if (wf_deflate_table_lit(s->codes->lit, &s->lit_bits, s->codes->lens,
				 s->nlen)) {
		s->tables = WF_INFLATE_TABLES_NONE;
		return wf_inflate_fail(s, "invalid literal/lengths set");
	}
	if (wf_deflate_table_dist(s->codes->dist, s->codes->lens + s->nlen,
				  s->ndist)) {
		note_tables(s, WF_INFLATE_TABLES_LIT);
		return wf_inflate_fail(s, "invalid distances set");
	}
	note_tables(s, WF_INFLATE_TABLES_BOTH);
	s->mode = WF_INFLATE_CODE_NEW;
	return c->flush == WF_INFLATE_TREES ? WF_STEP_LEAVE : WF_STEP_ON;
}

static enum wf_step step_lens(struct wf_inflate *s, struct wf_cursor *c)
{
	unsigned int end = s->nlen + s->ndist;

	while (s->have < end) {
		unsigned int sym, repeat;
		uint32_t e;

		for (;;) {
			e = s->codes->dist[wf_cursor_peek(c,
							  WF_TABLE_PRE_BITS)];
			if (wf_table_code(e) <= c->bits)
				break;
			if (!wf_cursor_need(c, c->bits + 1))
				return WF_STEP_LEAVE;
		}
		sym = wf_table_base(e);
		if (sym < 16) {
			wf_cursor_drop(c, wf_table_code(e));
			s->codes->lens[s->have++] = (uint8_t)sym;
			continue;
		}
		if (!wf_cursor_need(c, wf_table_drop(e)))
			return WF_STEP_LEAVE;
		wf_cursor_drop(c, wf_table_code(e));
		if (sym == 16 && !s->have)
			return wf_inflate_fail(s, "invalid bit length repeat");
		e = wf_table_drop(e) - wf_table_code(e);
		repeat = repeat_least(sym) + wf_cursor_peek(c, e);
		wf_cursor_drop(c, e);
		if (s->have + repeat > end)
			return wf_inflate_fail(s, "invalid bit length repeat");
		memset(s->codes->lens + s->have,
		       sym == 16 ? s->codes->lens[s->have - 1] : 0, repeat);
		s->have += repeat;
	}
	return build(s, c);
}

enum wf_step wf_deflate_lens_step(struct wf_inflate *s, struct wf_cursor *c)
{
	switch (s->mode) {
	case WF_INFLATE_TABLE:
		return step_table(s, c);
	case WF_INFLATE_PRE_LENS:
		return step_pre_lens(s, c);
	default:
		return step_lens(s, c);
	}
}
