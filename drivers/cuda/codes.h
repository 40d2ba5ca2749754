/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads bits and codes of deflate data. For the code of pieces only (lanes.h).
 */
#ifndef WF_CUDA_CODES_H
#define WF_CUDA_CODES_H

#include "cuda/piece_defs.h"

#define WF_LIT_BITS 10u
#define WF_DIST_BITS 8u
#define WF_LEN_BITS 7u
#define WF_CODE_MOST 15u
#define WF_LITS 288u
#define WF_DISTS 32u
#define WF_END_OF_BLOCK 256u

/* An entry says what a code means: its length, how many extra bits follow, and
 * the literal or the least value. 0: there is no such code, or it is longer
 * than the table's. */
#define WF_ENTRY_LENGTH(entry) ((entry)&15u)
#define WF_ENTRY_EXTRA(entry) ((entry) >> 4 & 15u)
#define WF_ENTRY_LITERAL (1u << 8)
#define WF_ENTRY_END (1u << 9)
#define WF_ENTRY_WRONG (1u << 10) /* a symbol that must not come */
#define WF_ENTRY_VALUE(entry) ((entry) >> 16)

enum { WF_CODES_LIT, WF_CODES_DIST, WF_CODES_LEN };

/* A set of codes, ordered by length and then by symbol. */
struct wf_codes {
	uint16_t first[16];  /* the first code of a length */
	uint16_t count[16];  /* how many have it */
	uint16_t offset[16]; /* where they begin in the order */
};

/* The same in all lanes. Bits ->pos to 31 of ->low come next, then ->high. The
 * word behind these is loaded already, so that nobody waits for it when it is
 * needed. Behind the end of the input there are zeros. */
struct wf_reader {
	const uint8_t *src;
	uint32_t len;
	uint32_t at; /* bytes that were loaded */
	uint32_t low, high, next;
	uint32_t pos;  /* less than 32 */
	int32_t taken; /* bits before ->low */
};

/* A word that ends behind the input. */
WF_PIECE_FAR uint32_t wf_reader_end(struct wf_reader *r)
{
	uint32_t word = 0;

	for (uint32_t shift = 0; r->at < r->len; shift += 8)
		word |= (uint32_t)r->src[r->at++] << shift;
	return word;
}

WF_PIECE_FN uint32_t wf_reader_word(struct wf_reader *r)
{
	uint32_t word;

	if (r->len - r->at < 4)
		return wf_reader_end(r);
	word = wf_load_aligned(r->src + r->at);
	r->at += 4;
	return word;
}

WF_PIECE_FN void wf_reader_begin(struct wf_reader *r, const uint8_t *src,
				 uint32_t len)
{
	uint32_t odd = (uint32_t)(wf_u64)src & 3;

	r->src = src;
	r->len = len;
	r->at = 0;
	r->pos = 8 * odd;
	r->taken = -(int32_t)(8 * odd);
	r->low = 0;
	/* Up to an aligned word; from there on all are. */
	for (uint32_t i = odd; odd && i < 4 && r->at < len; i++)
		r->low |= (uint32_t)src[r->at++] << 8 * i;
	if (!odd)
		r->low = wf_reader_word(r);
	r->high = wf_reader_word(r);
	r->next = wf_reader_word(r);
}

/* The next 32 bits. */
WF_PIECE_FN uint32_t wf_reader_peek(const struct wf_reader *r)
{
	return wf_bits_window(r->low, r->high, r->pos);
}

/* No more than 32. */
WF_PIECE_FN void wf_reader_skip(struct wf_reader *r, uint32_t bits)
{
	r->pos += bits;
	if (r->pos >= 32) {
		r->pos -= 32;
		r->taken += 32;
		r->low = r->high;
		r->high = r->next;
		r->next = wf_reader_word(r);
	}
}

/* Where there are 4 bytes of input that were not loaded. */
WF_PIECE_FN void wf_reader_skip_wide(struct wf_reader *r, uint32_t bits)
{
	r->pos += bits;
	if (r->pos >= 32) {
		r->pos -= 32;
		r->taken += 32;
		r->low = r->high;
		r->high = r->next;
		r->next = wf_load_aligned(r->src + r->at);
		r->at += 4;
	}
}

WF_PIECE_FN uint32_t wf_reader_take(struct wf_reader *r, uint32_t bits)
{
	uint32_t value = wf_reader_peek(r) & ((1u << bits) - 1);

	wf_reader_skip(r, bits);
	return value;
}

/* Bits that are left; less than 0: more were taken than there are. */
WF_PIECE_FN int32_t wf_reader_left(const struct wf_reader *r)
{
	return (int32_t)(8 * r->len) - r->taken - (int32_t)r->pos;
}

WF_PIECE_FN int wf_reader_is_over(const struct wf_reader *r)
{
	return wf_reader_left(r) < 0;
}

/* Without the length of the code. RFC 1951, 3.2.5. */
WF_PIECE_FN uint32_t wf_entry_of(uint32_t kind, uint32_t symbol)
{
	uint32_t n, extra;

	if (kind == WF_CODES_LEN)
		return symbol << 16;
	if (kind == WF_CODES_DIST) {
		extra = symbol < 4 ? 0 : (symbol >> 1) - 1;
		n = symbol < 4 ? symbol : (2 + (symbol & 1)) << extra;
		return symbol > 29 ? WF_ENTRY_WRONG :
				     (n + 1) << 16 | extra << 4;
	}
	if (symbol < 256)
		return symbol << 16 | WF_ENTRY_LITERAL;
	if (symbol == 256)
		return WF_ENTRY_END;
	n = symbol - 257;
	extra = n < 8 || n == 28 ? 0 : (n >> 2) - 1;
	if (n >= 8)
		n = n == 28 ? 255 : (4 + (n & 3)) << extra;
	return symbol > 285 ? WF_ENTRY_WRONG : (n + 3) << 16 | extra << 4;
}

/* The code of up to @most bits, the highest bit first, at the top of 15 bits of
 * @code: an entry, or 0. */
WF_PIECE_FN uint32_t wf_codes_find(const struct wf_codes *c,
				   const uint16_t *order, uint32_t kind,
				   uint32_t code, uint32_t least, uint32_t most)
{
	for (uint32_t len = least; len <= most; len++) {
		uint32_t n = (code >> (WF_CODE_MOST - len)) - c->first[len];

		if (n < c->count[len])
			return len |
			       wf_entry_of(kind, order[c->offset[len] + n]);
	}
	return 0;
}

/* One lane. 0 if zlib would refuse the set. */
WF_PIECE_FN int wf_codes_order(struct wf_codes *c, uint16_t *order,
			       const uint8_t *lens, uint32_t symbols,
			       uint32_t kind)
{
	uint32_t code = 0, at = 0, used, left = 1;

	for (uint32_t i = 0; i < 16; i++)
		c->count[i] = 0;
	for (uint32_t i = 0; i < symbols; i++)
		c->count[lens[i]]++;
	used = symbols - c->count[0];
	c->count[0] = 0;
	for (uint32_t len = 1; len < 16; len++) {
		left <<= 1;
		if (left < c->count[len])
			return 0; /* more codes than there can be */
		left -= c->count[len];
		code = (code + c->count[len - 1]) << 1;
		c->first[len] = (uint16_t)code;
		c->offset[len] = (uint16_t)at;
		at += c->count[len];
	}
	/* Incomplete: only a single code of one bit, or none. */
	if (left && used && (kind == WF_CODES_LEN || used != 1 || !c->count[1]))
		return 0;
	for (uint32_t i = 0; i < symbols; i++)
		if (lens[i])
			order[c->offset[lens[i]]++] = (uint16_t)i;
	for (uint32_t len = 1; len < 16; len++)
		c->offset[len] -= c->count[len];
	return 1;
}

/* 0 if zlib would refuse it. @bad is in shared memory. */
WF_PIECE_FAR int wf_codes_build(uint32_t *bad, struct wf_codes *c,
				uint16_t *order, uint32_t *table, uint32_t bits,
				const uint8_t *lens, uint32_t symbols,
				uint32_t kind)
{
	wf_lanes_sync();
	WF_ONE_LANE
	{
		*bad = !wf_codes_order(c, order, lens, symbols, kind);
	}
	wf_lanes_sync();
	if (*bad)
		return 0;
	WF_EACH (i, 1u << bits)
		table[i] = wf_codes_find(
			c, order, kind,
			wf_bits_reverse(i) >> (32 - WF_CODE_MOST), 1, bits);
	wf_lanes_sync();
	return 1;
}

/* A code that is longer than @size bits. */
WF_PIECE_FAR uint32_t wf_codes_long(const struct wf_codes *c,
				    const uint16_t *order, uint32_t kind,
				    uint32_t size, uint32_t bits)
{
	return wf_codes_find(c, order, kind,
			     wf_bits_reverse(bits) >> (32 - WF_CODE_MOST),
			     size + 1, WF_CODE_MOST);
}

/* Returns the entry for the code at the beginning of @bits, or 0. */
WF_PIECE_FN uint32_t wf_codes_look(const struct wf_codes *c,
				   const uint16_t *order, const uint32_t *table,
				   uint32_t kind, uint32_t size, uint32_t bits)
{
	uint32_t entry = table[bits & ((1u << size) - 1)];

	return entry ? entry : wf_codes_long(c, order, kind, size, bits);
}

/* The value with its extra bits, which begin in @bits behind the code. */
WF_PIECE_FN uint32_t wf_entry_value(uint32_t entry, uint32_t bits)
{
	return WF_ENTRY_VALUE(entry) + (bits >> WF_ENTRY_LENGTH(entry) &
					((1u << WF_ENTRY_EXTRA(entry)) - 1));
}

#endif
