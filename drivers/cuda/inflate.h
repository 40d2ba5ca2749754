/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decompresses one piece of raw deflate data (RFC 1951): whatever the bytes are,
 * it reads none outside of the input, writes none outside of the room, and ends.
 * It refuses what zlib refuses. For the code of pieces only (lanes.h).
 *
 * All lanes decode the same symbols, in registers; tables are in memory that the
 * lanes share (3.7 KiB, so that 60 warps fit on a multiprocessor). One lane
 * writes a literal; all of them copy a match, each its bytes, and a byte of the
 * match never depends on another. A code of up to 10 bits (8 for distances) is
 * one look into a table of 16-bit entries; a longer one is searched by its
 * length. Lengths and distances are computed from their symbols, which is
 * cheaper than entries of 32 bits, with which half as many warps would fit.
 */
#ifndef WF_CUDA_INFLATE_H
#define WF_CUDA_INFLATE_H

#include "cuda/check.h"
#include "cuda/codes.h"

/* Of one warp; shared memory on a GPU. */
struct wf_inflate_space {
	uint16_t lit[1u << WF_LIT_BITS]; /* length << 9 | symbol, 0: longer */
	uint16_t dist[1u << WF_DIST_BITS];
	uint16_t lit_order[WF_LITS];
	uint16_t dist_order[WF_DISTS];
	struct wf_codes lit_codes;
	struct wf_codes dist_codes;
	uint8_t lens[WF_LITS + WF_DISTS];
	uint32_t parts[WF_LANES];
	uint32_t bad;
};

struct wf_writer {
	uint8_t *dst;
	uint32_t len;
	uint32_t at;
	const uint8_t *dict;
	uint32_t dict_len;
};

/* Each caller has filled; 15 bits are left at least. */
WF_PIECE_FN uint32_t wf_match_length(uint32_t symbol, struct wf_reader *r)
{
	uint32_t n = symbol - 257, extra;

	if (n < 8)
		return n + 3;
	if (n == 28)
		return 258;
	extra = (n >> 2) - 1;
	return 3 + ((4 + (n & 3)) << extra) + wf_reader_take(r, extra);
}

WF_PIECE_FN uint32_t wf_match_distance(uint32_t n, struct wf_reader *r)
{
	uint32_t extra;

	if (n < 4)
		return n + 1;
	extra = (n >> 1) - 1;
	return 1 + ((2 + (n & 1)) << extra) + wf_reader_take(r, extra);
}

/* The lengths of a dynamic block's codes. 0: refused, or at the end of input. */
WF_PIECE_FAR int wf_lens_read(struct wf_inflate_space *s, struct wf_reader *r,
			      uint32_t *lits, uint32_t *dists)
{
	uint32_t lens, at = 0, last = 0;

	wf_reader_fill(r);
	*lits = wf_reader_take(r, 5) + 257;
	*dists = wf_reader_take(r, 5) + 1;
	lens = wf_reader_take(r, 4) + 4;
	if (*lits > 286 || *dists > 30)
		return 0;
	WF_EACH (i, 19)
		s->lens[i] = 0;
	wf_lanes_sync();
	for (uint32_t i = 0; i < lens; i++) {
		/* 16, 17, 18, 0, 8, 7, 9, ...: RFC 1951, 3.2.7. */
		uint32_t place = i < 3	? 16 + i :
				 i == 3 ? 0 :
				 i & 1	? 7 - ((i - 5) >> 1) :
					  8 + ((i - 4) >> 1);
		uint32_t bits;

		wf_reader_fill(r);
		bits = wf_reader_take(r, 3);
		WF_ONE_LANE
		{
			s->lens[place] = (uint8_t)bits;
		}
	}
	if (!wf_codes_build(&s->bad, &s->lit_codes, s->lit_order, s->lit,
			    WF_LEN_BITS, s->lens, 19, 1))
		return 0;
	while (at < *lits + *dists) {
		uint32_t symbol, n = 1, len;

		wf_reader_fill(r);
		symbol = wf_codes_next(&s->lit_codes, s->lit_order, s->lit,
				       WF_LEN_BITS, r);
		if (symbol > 18 || wf_reader_is_over(r))
			return 0;
		len = symbol < 16 ? symbol : symbol == 16 ? last : 0;
		if (symbol == 16 && !at)
			return 0;
		if (symbol >= 16)
			n = symbol == 16 ? 3 + wf_reader_take(r, 2) :
			    symbol == 17 ? 3 + wf_reader_take(r, 3) :
					   11 + wf_reader_take(r, 7);
		if (n > *lits + *dists - at)
			return 0;
		WF_EACH (i, n)
			s->lens[at + i] = (uint8_t)len;
		at += n;
		last = len;
	}
	wf_lanes_sync();
	return s->lens[WF_END_OF_BLOCK] != 0;
}

WF_PIECE_FAR int wf_codes_read(struct wf_inflate_space *s, struct wf_reader *r,
			       int fixed)
{
	uint32_t lits = WF_LITS, dists = WF_DISTS;

	wf_lanes_sync();
	if (fixed) {
		WF_EACH (i, WF_LITS + WF_DISTS)
			s->lens[i] = i < 144 ? 8 :
				     i < 256 ? 9 :
				     i < 280 ? 7 :
				     i < 288 ? 8 :
					       5;
	} else if (!wf_lens_read(s, r, &lits, &dists)) {
		return 0;
	}
	return wf_codes_build(&s->bad, &s->lit_codes, s->lit_order, s->lit,
			      WF_LIT_BITS, s->lens, lits, 0) &&
	       wf_codes_build(&s->bad, &s->dist_codes, s->dist_order, s->dist,
			      WF_DIST_BITS, s->lens + lits, dists, 0);
}

/* There is room, and so much before it. */
WF_PIECE_FN void wf_writer_copy(struct wf_writer *w, uint32_t length,
				uint32_t distance)
{
	uint8_t *to = w->dst + w->at;

	/* What lanes wrote before is read by others now. */
	wf_lanes_sync();
	if (distance > w->at) {
		/* Into the dictionary, and perhaps out of it again. */
		uint32_t in_dict = distance - w->at;

		WF_EACH (i, length) {
			uint32_t n = i % distance;

			to[i] = n < in_dict ?
					w->dict[w->dict_len - in_dict + n] :
					w->dst[n - in_dict];
		}
	} else if (distance >= length) {
		WF_EACH (i, length)
			to[i] = to[(long)i - (long)distance];
	} else {
		WF_EACH (i, length)
			to[i] = to[(long)(i % distance) - (long)distance];
	}
	w->at += length;
}

/* A stored block. */
WF_PIECE_FAR uint32_t wf_block_stored(struct wf_reader *r, struct wf_writer *w)
{
	uint32_t len, inverse, n;

	if (wf_reader_is_over(r))
		return WF_PIECE_SHORT;
	wf_reader_take(r, r->count & 7);
	wf_reader_fill(r);
	len = wf_reader_take(r, 16);
	wf_reader_fill(r);
	inverse = wf_reader_take(r, 16);
	if (wf_reader_is_over(r))
		return WF_PIECE_SHORT;
	if (len != (inverse ^ 0xffff))
		return WF_PIECE_BAD;
	/* Bytes again: those that were read ahead are given back. */
	r->at -= (r->count - r->pad) / 8;
	n = r->len - r->at < len ? r->len - r->at : len;
	if (n > w->len - w->at)
		n = w->len - w->at;
	wf_lanes_sync();
	WF_EACH (i, n)
		w->dst[w->at + i] = r->src[r->at + i];
	w->at += n;
	wf_reader_begin(r, r->src + r->at + n, r->len - r->at - n);
	if (n < len)
		return w->at == w->len ? WF_PIECE_FULL : WF_PIECE_SHORT;
	return WF_PIECE_OK;
}

/* A symbol that is none: because the input ends within it? */
WF_PIECE_FN uint32_t wf_reader_why(const struct wf_reader *r, uint32_t symbol)
{
	uint32_t need = symbol == 0xffff ? WF_CODE_MOST : 0;

	return r->count < r->pad + need ? WF_PIECE_SHORT : WF_PIECE_BAD;
}

WF_PIECE_FN uint32_t wf_block_symbols(struct wf_inflate_space *s,
				      struct wf_reader *r, struct wf_writer *w)
{
	for (;;) {
		uint32_t symbol, length, distance;

		wf_reader_fill(r);
		symbol = wf_codes_next(&s->lit_codes, s->lit_order, s->lit,
				       WF_LIT_BITS, r);
		if (symbol < 256) {
			if (wf_reader_is_over(r))
				return WF_PIECE_SHORT;
			if (w->at == w->len)
				return WF_PIECE_FULL;
			WF_ONE_LANE
			{
				w->dst[w->at] = (uint8_t)symbol;
			}
			w->at++;
			continue;
		}
		if (symbol == WF_END_OF_BLOCK)
			return wf_reader_is_over(r) ? WF_PIECE_SHORT :
						      WF_PIECE_OK;
		if (symbol > 285)
			return wf_reader_why(r, symbol);
		length = wf_match_length(symbol, r);
		wf_reader_fill(r);
		symbol = wf_codes_next(&s->dist_codes, s->dist_order, s->dist,
				       WF_DIST_BITS, r);
		if (symbol > 29)
			return wf_reader_why(r, symbol);
		distance = wf_match_distance(symbol, r);
		if (wf_reader_is_over(r))
			return WF_PIECE_SHORT;
		if (distance > w->at + w->dict_len)
			return WF_PIECE_BAD;
		if (length > w->len - w->at) {
			wf_writer_copy(w, w->len - w->at, distance);
			return WF_PIECE_FULL;
		}
		wf_writer_copy(w, length, distance);
	}
}

/* The loop works on copies, which a compiler keeps in registers. */
WF_PIECE_FN uint32_t wf_block_coded(struct wf_inflate_space *s,
				    struct wf_reader *r, struct wf_writer *w)
{
	struct wf_reader reader = *r;
	struct wf_writer writer = *w;
	uint32_t status = wf_block_symbols(s, &reader, &writer);

	*r = reader;
	*w = writer;
	return status;
}

/* One block; *@final says whether it is the last. */
WF_PIECE_FN uint32_t wf_block_read(struct wf_inflate_space *s,
				   struct wf_reader *r, struct wf_writer *w,
				   uint32_t *final)
{
	uint32_t kind;

	wf_reader_fill(r);
	*final = wf_reader_take(r, 1);
	kind = wf_reader_take(r, 2);
	if (wf_reader_is_over(r))
		return WF_PIECE_SHORT;
	if (kind == 0)
		return wf_block_stored(r, w);
	if (kind == 3)
		return WF_PIECE_BAD;
	if (!wf_codes_read(s, r, kind == 1))
		return wf_reader_is_over(r) ? WF_PIECE_SHORT : WF_PIECE_BAD;
	return wf_block_coded(s, r, w);
}

/* @table: 256 of wf_crc_entry(). */
WF_PIECE_FN void wf_piece_inflate(struct wf_piece *p, const uint8_t *src,
				  uint8_t *dst, const uint8_t *dict,
				  struct wf_inflate_space *s,
				  const uint32_t *table)
{
	struct wf_writer w = { dst, p->dst_len, 0, dict, p->dict_len };
	struct wf_reader r;
	uint32_t status = WF_PIECE_OK, final = 0, border = 0, check;

	wf_reader_begin(&r, src, p->src_len);
	while (status == WF_PIECE_OK && !final) {
		/* Nothing follows a block that ends on a byte? */
		border = wf_reader_left(&r) == 0 && r.count == r.pad;
		if (border)
			status = WF_PIECE_SHORT;
		else
			status = wf_block_read(s, &r, &w, &final);
	}
	wf_lanes_sync();
	check = wf_check_piece(p->flags, table, dst, w.at, s->parts);
	WF_ONE_LANE
	{
		p->status = status;
		p->border = border;
		p->produced = w.at;
		p->check = check;
		p->consumed = p->src_len -
			      (wf_reader_is_over(&r) ? 0 : wf_reader_left(&r));
	}
	wf_lanes_sync();
}

#endif
