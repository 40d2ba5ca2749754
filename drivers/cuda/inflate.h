/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decompresses one piece of raw deflate data (RFC 1951): whatever the bytes
 * are, it reads none outside of the input, writes none outside of the room, and
 * ends. It refuses what zlib refuses. For the code of pieces only (lanes.h).
 *
 * All lanes decode the same symbols, in registers; tables are in memory that
 * the lanes share (6.4 KiB, so that 32 warps fit on a multiprocessor). One lane
 * writes a literal; all of them copy a match, each its bytes, and a byte of the
 * match never depends on another. A code of up to 10 bits (8 for distances) is
 * one look into a table; a longer one is searched by its length. Entries have
 * 32 bits, with the least length or distance and the number of extra bits. With
 * 16 bits, from which these were computed, more warps fit on a multiprocessor,
 * but 16384 pieces took a third longer (H200).
 */
#ifndef WF_CUDA_INFLATE_H
#define WF_CUDA_INFLATE_H

#include "cuda/check.h"
#include "cuda/codes.h"

/* Of one warp; shared memory on a GPU. */
struct wf_inflate_space {
	uint32_t lit[1u << WF_LIT_BITS]; /* entries; at last, for a CRC-32 */
	uint32_t dist[1u << WF_DIST_BITS];
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

/* The lengths of a dynamic block's codes. 0: refused, or at the end of
 * input. */
WF_PIECE_FAR int wf_lens_read(struct wf_inflate_space *s, struct wf_reader *r,
			      uint32_t *lits, uint32_t *dists)
{
	uint32_t lens, at = 0, last = 0;

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

		bits = wf_reader_take(r, 3);
		WF_ONE_LANE
		{
			s->lens[place] = (uint8_t)bits;
		}
	}
	if (!wf_codes_build(&s->bad, &s->lit_codes, s->lit_order, s->lit,
			    WF_LEN_BITS, s->lens, 19, WF_CODES_LEN))
		return 0;
	while (at < *lits + *dists) {
		uint32_t entry, symbol, n = 1, len;

		entry = wf_codes_look(&s->lit_codes, s->lit_order, s->lit,
				      WF_CODES_LEN, WF_LEN_BITS,
				      wf_reader_peek(r));
		wf_reader_skip(r, WF_ENTRY_LENGTH(entry));
		symbol = WF_ENTRY_VALUE(entry);
		if (!entry || wf_reader_is_over(r))
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
			      WF_LIT_BITS, s->lens, lits, WF_CODES_LIT) &&
	       wf_codes_build(&s->bad, &s->dist_codes, s->dist_order, s->dist,
			      WF_DIST_BITS, s->lens + lits, dists,
			      WF_CODES_DIST);
}

/* Byte @i of a match, which may repeat itself. */
WF_PIECE_FN uint8_t wf_writer_byte(const struct wf_writer *w, uint32_t i,
				   uint32_t distance)
{
	const uint8_t *to = w->dst + w->at;
	uint32_t n = i < distance ? i : i % distance;

	if (distance <= w->at)
		return to[(long)n - (long)distance];
	/* In the dictionary, or behind it. */
	return n < distance - w->at ?
		       w->dict[w->dict_len - (distance - w->at) + n] :
		       w->dst[n - (distance - w->at)];
}

/* There is room, and so much before it. */
WF_PIECE_FN void wf_writer_copy(struct wf_writer *w, uint32_t length,
				uint32_t distance)
{
	/* Other lanes now read what lanes wrote before. */
	wf_lanes_sync();
	WF_EACH (i, length)
		w->dst[w->at + i] = wf_writer_byte(w, i, distance);
	w->at += length;
}

/* A stored block. */
WF_PIECE_FAR uint32_t wf_block_stored(struct wf_reader *r, struct wf_writer *w)
{
	uint32_t len, inverse, n, from;

	wf_reader_skip(r, (uint32_t)wf_reader_left(r) & 7);
	len = wf_reader_take(r, 16);
	inverse = wf_reader_take(r, 16);
	if (wf_reader_is_over(r))
		return WF_PIECE_SHORT;
	if (len != (inverse ^ 0xffff))
		return WF_PIECE_BAD;
	/* Bytes again: those that were loaded ahead are given back. */
	from = r->len - (uint32_t)wf_reader_left(r) / 8;
	n = r->len - from < len ? r->len - from : len;
	if (n > w->len - w->at)
		n = w->len - w->at;
	wf_lanes_sync();
	WF_EACH (i, n)
		w->dst[w->at + i] = r->src[from + i];
	w->at += n;
	wf_reader_begin(r, r->src + from + n, r->len - from - n);
	if (n < len)
		return w->at == w->len ? WF_PIECE_FULL : WF_PIECE_SHORT;
	return WF_PIECE_OK;
}

/* A symbol that is none: because the input ends within it? */
WF_PIECE_FN uint32_t wf_reader_why(const struct wf_reader *r, uint32_t entry)
{
	int32_t need =
		entry ? (int32_t)WF_ENTRY_LENGTH(entry) : (int32_t)WF_CODE_MOST;

	return wf_reader_left(r) < need ? WF_PIECE_SHORT : WF_PIECE_BAD;
}

/* One symbol after the other, looking at both ends all the time. */
WF_PIECE_FN uint32_t wf_block_exact(struct wf_inflate_space *s,
				    struct wf_reader *r, struct wf_writer *w)
{
	for (;;) {
		uint32_t bits = wf_reader_peek(r), length, distance;
		uint32_t entry =
			wf_codes_look(&s->lit_codes, s->lit_order, s->lit,
				      WF_CODES_LIT, WF_LIT_BITS, bits);

		if (!entry || entry & WF_ENTRY_WRONG)
			return wf_reader_why(r, entry);
		wf_reader_skip(r,
			       WF_ENTRY_LENGTH(entry) + WF_ENTRY_EXTRA(entry));
		if (wf_reader_is_over(r))
			return WF_PIECE_SHORT;
		if (entry & WF_ENTRY_END)
			return WF_PIECE_OK;
		if (entry & WF_ENTRY_LITERAL) {
			if (w->at == w->len)
				return WF_PIECE_FULL;
			WF_ONE_LANE
			{
				w->dst[w->at] = (uint8_t)WF_ENTRY_VALUE(entry);
			}
			w->at++;
			continue;
		}
		length = wf_entry_value(entry, bits);
		bits = wf_reader_peek(r);
		entry = wf_codes_look(&s->dist_codes, s->dist_order, s->dist,
				      WF_CODES_DIST, WF_DIST_BITS, bits);
		if (!entry || entry & WF_ENTRY_WRONG)
			return wf_reader_why(r, entry);
		wf_reader_skip(r,
			       WF_ENTRY_LENGTH(entry) + WF_ENTRY_EXTRA(entry));
		if (wf_reader_is_over(r))
			return WF_PIECE_SHORT;
		distance = wf_entry_value(entry, bits);
		if (distance > w->at + w->dict_len)
			return WF_PIECE_BAD;
		if (length > w->len - w->at) {
			wf_writer_copy(w, w->len - w->at, distance);
			return WF_PIECE_FULL;
		}
		wf_writer_copy(w, length, distance);
	}
}

/* Up to two literals, the first of which is @entry. How many bits they have. */
WF_PIECE_FN uint32_t wf_block_literals(struct wf_inflate_space *s,
				       struct wf_writer *w, uint32_t entry,
				       uint32_t bits)
{
	uint32_t used = WF_ENTRY_LENGTH(entry);

	WF_ONE_LANE
	{
		w->dst[w->at] = (uint8_t)WF_ENTRY_VALUE(entry);
	}
	w->at++;
	entry = s->lit[bits >> used & ((1u << WF_LIT_BITS) - 1)];
	if (entry & WF_ENTRY_LITERAL) {
		WF_ONE_LANE
		{
			w->dst[w->at] = (uint8_t)WF_ENTRY_VALUE(entry);
		}
		w->at++;
		used += WF_ENTRY_LENGTH(entry);
	}
	return used;
}

/*
 * As long as there is input and room for whole turns. Bytes of a match are
 * loaded and stored only when the next match needs to know them: the symbols
 * between are decoded while the load is under way, which takes hundreds of
 * cycles. WF_PIECE_NONE: the rest is for wf_block_exact().
 */
WF_PIECE_FN uint32_t wf_block_wide(struct wf_inflate_space *s,
				   struct wf_reader *r, struct wf_writer *w)
{
	WF_LANE_VARIABLE(uint8_t, loaded);
	uint32_t waits = 0, waits_at = 0, status = WF_PIECE_NONE;

	while (r->len - r->at >= 8 && w->len - w->at >= 512) {
		uint32_t bits = wf_reader_peek(r), length, distance;
		uint32_t entry =
			wf_codes_look(&s->lit_codes, s->lit_order, s->lit,
				      WF_CODES_LIT, WF_LIT_BITS, bits);

		if (entry & WF_ENTRY_LITERAL) {
			wf_reader_skip_wide(
				r, wf_block_literals(s, w, entry, bits));
			continue;
		}
		if (!entry || entry & (WF_ENTRY_END | WF_ENTRY_WRONG)) {
			wf_reader_skip_wide(r, WF_ENTRY_LENGTH(entry));
			status = entry & WF_ENTRY_END ? WF_PIECE_OK :
							WF_PIECE_BAD;
			break;
		}
		length = wf_entry_value(entry, bits);
		wf_reader_skip_wide(r, WF_ENTRY_LENGTH(entry) +
					       WF_ENTRY_EXTRA(entry));
		bits = wf_reader_peek(r);
		entry = wf_codes_look(&s->dist_codes, s->dist_order, s->dist,
				      WF_CODES_DIST, WF_DIST_BITS, bits);
		distance = wf_entry_value(entry, bits);
		wf_reader_skip_wide(r, WF_ENTRY_LENGTH(entry) +
					       WF_ENTRY_EXTRA(entry));
		if (!entry || entry & WF_ENTRY_WRONG ||
		    distance > w->at + w->dict_len) {
			status = WF_PIECE_BAD;
			break;
		}
		WF_EACH_LANE (lane) {
			if (lane < waits)
				w->dst[waits_at + lane] =
					WF_OF_LANE(loaded, lane);
		}
		waits = 0;
		if (length > WF_LANES || distance > w->at) {
			wf_writer_copy(w, length, distance);
			continue;
		}
		wf_lanes_sync();
		WF_EACH_LANE (lane) {
			uint32_t n = lane < distance ? lane : lane % distance;

			if (lane < length)
				WF_OF_LANE(loaded, lane) =
					w->dst[w->at - distance + n];
		}
		waits = length;
		waits_at = w->at;
		w->at += length;
	}
	WF_EACH_LANE (lane) {
		if (lane < waits)
			w->dst[waits_at + lane] = WF_OF_LANE(loaded, lane);
	}
	return status;
}

/* The loops work on copies, which a compiler keeps in registers. */
WF_PIECE_FN uint32_t wf_block_coded(struct wf_inflate_space *s,
				    struct wf_reader *r, struct wf_writer *w)
{
	struct wf_reader reader = *r;
	struct wf_writer writer = *w;
	uint32_t status = wf_block_wide(s, &reader, &writer);

	if (status == WF_PIECE_NONE)
		status = wf_block_exact(s, &reader, &writer);
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

WF_PIECE_FN void wf_piece_inflate(struct wf_piece *p, const uint8_t *src,
				  uint8_t *dst, const uint8_t *dict,
				  struct wf_inflate_space *s)
{
	struct wf_writer w = { dst, p->dst_len, 0, dict, p->dict_len };
	struct wf_reader r;
	uint32_t status = WF_PIECE_OK, final = 0, border = 0, check;

	wf_reader_begin(&r, src, p->src_len);
	while (status == WF_PIECE_OK && !final) {
		/* Nothing follows a block that ends on a byte? */
		border = wf_reader_left(&r) == 0;
		if (border)
			status = WF_PIECE_SHORT;
		else
			status = wf_block_read(s, &r, &w, &final);
	}
	wf_lanes_sync();
	check = wf_check_piece(p->flags, s->lit, dst, w.at, s->parts);
	WF_ONE_LANE
	{
		p->status = status;
		p->border = border;
		p->produced = w.at;
		p->check = check;
		p->consumed =
			p->src_len - (wf_reader_is_over(&r) ?
					      0 :
					      (uint32_t)wf_reader_left(&r) / 8);
	}
	wf_lanes_sync();
}

#endif
