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

/* A set of codes, ordered by length and then by symbol. */
struct wf_codes {
	uint16_t first[16];  /* the first code of a length */
	uint16_t count[16];  /* how many have it */
	uint16_t offset[16]; /* where they begin in the order */
};

/* The same in all lanes. ->pad of the bits in ->buf are not in the input: they
 * are zeros behind its end. */
struct wf_reader {
	const uint8_t *src;
	uint32_t len;
	uint32_t at;
	wf_u64 buf;
	uint32_t count;
	uint32_t pad;
};

/* After it there are 33 bits or more. */
WF_PIECE_FN void wf_reader_fill(struct wf_reader *r)
{
	uint32_t word = 0;

	if (r->count > 32)
		return;
	if (r->len - r->at >= 4) {
		word = wf_load_aligned(r->src + r->at);
		r->at += 4;
	} else {
		uint32_t have = 0;

		for (; r->at < r->len; have += 8)
			word |= (uint32_t)r->src[r->at++] << have;
		r->pad += 32 - have;
	}
	r->buf |= (wf_u64)word << r->count;
	r->count += 32;
}

WF_PIECE_FN void wf_reader_begin(struct wf_reader *r, const uint8_t *src,
				 uint32_t len)
{
	r->src = src;
	r->len = len;
	r->at = 0;
	r->buf = 0;
	r->count = 0;
	r->pad = 0;
	/* From here on, words are aligned. */
	while (r->at < len && (wf_u64)(src + r->at) & 3) {
		r->buf |= (wf_u64)src[r->at++] << r->count;
		r->count += 8;
	}
	wf_reader_fill(r);
}

WF_PIECE_FN uint32_t wf_reader_take(struct wf_reader *r, uint32_t bits)
{
	uint32_t value = (uint32_t)r->buf & ((1u << bits) - 1);

	r->buf >>= bits;
	r->count -= bits;
	return value;
}

/* More was taken than there is. */
WF_PIECE_FN int wf_reader_is_over(const struct wf_reader *r)
{
	return r->count < r->pad;
}

/* Whole bytes that were not taken. */
WF_PIECE_FN uint32_t wf_reader_left(const struct wf_reader *r)
{
	return r->len - r->at + (r->count - r->pad) / 8;
}

/* The code of up to @most bits, the highest bit first, at the top of 15 bits of
 * @code: length << 9 | symbol, or 0. */
WF_PIECE_FN uint32_t wf_codes_find(const struct wf_codes *c,
				   const uint16_t *order, uint32_t code,
				   uint32_t least, uint32_t most)
{
	for (uint32_t len = least; len <= most; len++) {
		uint32_t n = (code >> (WF_CODE_MOST - len)) - c->first[len];

		if (n < c->count[len])
			return len << 9 | order[c->offset[len] + n];
	}
	return 0;
}

/* One lane. 0 if zlib would refuse the set. */
WF_PIECE_FN int wf_codes_order(struct wf_codes *c, uint16_t *order,
			       const uint8_t *lens, uint32_t symbols,
			       int is_lens)
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
	if (left && used && (is_lens || used != 1 || !c->count[1]))
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
				uint16_t *order, uint16_t *table, uint32_t bits,
				const uint8_t *lens, uint32_t symbols,
				int is_lens)
{
	wf_lanes_sync();
	WF_ONE_LANE
	{
		*bad = !wf_codes_order(c, order, lens, symbols, is_lens);
	}
	wf_lanes_sync();
	if (*bad)
		return 0;
	WF_EACH (i, 1u << bits)
		table[i] = (uint16_t)wf_codes_find(
			c, order, wf_bits_reverse(i) >> (32 - WF_CODE_MOST), 1,
			bits);
	wf_lanes_sync();
	return 1;
}

/* The next symbol; 0xffff if there is no such code. */
WF_PIECE_FN uint32_t wf_codes_next(const struct wf_codes *c,
				   const uint16_t *order, const uint16_t *table,
				   uint32_t bits, struct wf_reader *r)
{
	uint32_t entry = table[(uint32_t)r->buf & ((1u << bits) - 1)];

	if (!entry)
		entry = wf_codes_find(c, order,
				      wf_bits_reverse((uint32_t)r->buf) >>
					      (32 - WF_CODE_MOST),
				      bits + 1, WF_CODE_MOST);
	if (!entry)
		return 0xffff;
	wf_reader_take(r, entry >> 9);
	return entry & 0x1ff;
}

#endif
