/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the tokens of a block with the codes that make it smallest, or stores
 * its bytes. For the code of pieces only (lanes.h).
 */
#ifndef WF_CUDA_BLOCK_H
#define WF_CUDA_BLOCK_H

#include "cuda/packer.h"

/* One lane: code lengths as symbols 0 to 18 (RFC 1951, 3.2.7). */
WF_PIECE_FN void wf_block_runs(struct wf_deflate_space *s, uint32_t lits,
			       uint32_t dists)
{
	uint32_t i = 0, n = 0, all = lits + dists;

	while (i < all) {
		uint32_t len =
			i < lits ? s->lit_lens[i] : s->dist_lens[i - lits];
		uint32_t run = 1, most = len ? 7 : 138;

		while (i + run < all && run < most &&
		       (i + run < lits ? s->lit_lens[i + run] :
					 s->dist_lens[i + run - lits]) == len)
			run++;
		i += run;
		if (len) {
			s->runs[n++] = (uint16_t)len;
			s->len_freq[len]++;
			run--;
		}
		if (run < 3) {
			for (; run; run--, n++) {
				s->runs[n] = (uint16_t)len;
				s->len_freq[len]++;
			}
		} else if (len) {
			s->runs[n++] = (uint16_t)(16 | (run - 3) << 5);
			s->len_freq[16]++;
		} else if (run < 11) {
			s->runs[n++] = (uint16_t)(17 | (run - 3) << 5);
			s->len_freq[17]++;
		} else {
			s->runs[n++] = (uint16_t)(18 | (run - 11) << 5);
			s->len_freq[18]++;
		}
	}
	s->runs_count = n;
}

WF_PIECE_FN uint32_t wf_run_extra(uint32_t symbol)
{
	return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

/* 16, 17, 18, 0, 8, 7, 9, ... */
WF_PIECE_FN uint32_t wf_run_place(uint32_t i)
{
	return i < 3  ? 16 + i :
	       i == 3 ? 0 :
	       i & 1  ? 7 - ((i - 5) >> 1) :
			8 + ((i - 4) >> 1);
}

WF_PIECE_FN uint32_t wf_fixed_len(uint32_t symbol)
{
	return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}

/* How many bits the tokens have, by the codes in @s or by the fixed ones. */
WF_PIECE_FN uint32_t wf_block_cost(struct wf_packer *p, int fixed)
{
	struct wf_deflate_space *s = p->s;
	uint32_t sum;

	WF_EACH_LANE (lane) {
		s->bits[lane] = 0;
	}
	wf_lanes_sync();
	WF_EACH (i, 286) {
		uint32_t extra = i < 265 || i == 285 ? 0 : ((i - 257) >> 2) - 1;
		uint32_t len = fixed ? wf_fixed_len(i) : s->lit_lens[i];

		wf_lanes_add(&s->bits[0], s->lit_freq[i] * (len + extra));
	}
	WF_EACH (i, 30) {
		uint32_t extra = i < 4 ? 0 : (i >> 1) - 1;
		uint32_t len = fixed ? 5 : s->dist_lens[i];

		wf_lanes_add(&s->bits[0], s->dist_freq[i] * (len + extra));
	}
	wf_lanes_sync();
	sum = s->bits[0];
	wf_lanes_sync();
	return sum;
}

/* The header of a dynamic block, or the fixed codes instead. */
WF_PIECE_FN void wf_block_header(struct wf_packer *p, uint32_t lits,
				 uint32_t dists, uint32_t places, int fixed)
{
	struct wf_deflate_space *s = p->s;

	wf_lanes_sync();
	if (fixed) {
		WF_EACH (i, 288) {
			uint32_t len = wf_fixed_len(i);
			uint32_t code = i < 144 ? 0x30 + i :
					i < 256 ? 0x190 + i - 144 :
					i < 280 ? i - 256 :
						  0xc0 + i - 280;

			s->lit_lens[i] = (uint8_t)len;
			s->lit_codes[i] =
				(uint16_t)(wf_bits_reverse(code) >> (32 - len));
		}
		WF_EACH (i, 32) {
			s->dist_lens[i] = 5;
			s->dist_codes[i] = (uint16_t)(wf_bits_reverse(i) >> 27);
		}
		wf_lanes_sync();
		return;
	}
	wf_packer_put(p, (lits - 257) | (dists - 1) << 5 | (places - 4) << 10,
		      14);
	WF_EACH_LANE (lane) {
		if (lane < places)
			wf_packer_or(s, p->bits + 3 * lane,
				     s->len_lens[wf_run_place(lane)], 3);
	}
	wf_packer_flush(p, 3 * places);
	for (uint32_t i = 0; i < s->runs_count; i += WF_LANES) {
		uint32_t left = s->runs_count - i;

		WF_EACH_LANE (lane) {
			uint32_t run = lane < left ? s->runs[i + lane] : 0;

			s->bits[lane] = lane < left ?
						s->len_lens[run & 31] +
							wf_run_extra(run & 31) :
						0;
		}
		wf_lanes_sync();
		wf_lanes_scan(s->bits, s->sums);
		WF_EACH_LANE (lane) {
			uint32_t run = lane < left ? s->runs[i + lane] : 0;
			uint32_t symbol = run & 31;

			wf_packer_or(s, p->bits + s->sums[lane] - s->bits[lane],
				     s->len_codes[symbol] |
					     (wf_u64)(run >> 5)
						     << s->len_lens[symbol],
				     s->bits[lane]);
		}
		wf_packer_flush(p, s->sums[WF_LANES - 1]);
	}
}

/* The bits of one token, and how many. */
WF_PIECE_FN wf_u64 wf_token_bits(const struct wf_deflate_space *s,
				 uint32_t token, uint32_t *count)
{
	uint32_t symbol, extra, length, distance;
	wf_u64 bits;

	if (!(token & WF_TOKEN_MATCH)) {
		*count = s->lit_lens[token];
		return s->lit_codes[token];
	}
	length = token >> 16 & 0xff;
	distance = token & 0x7fff;
	symbol = wf_length_symbol(length, &extra);
	bits = s->lit_codes[symbol];
	*count = s->lit_lens[symbol];
	bits |= (wf_u64)(length & ((1u << extra) - 1)) << *count;
	*count += extra;
	symbol = wf_distance_symbol(distance, &extra);
	bits |= (wf_u64)s->dist_codes[symbol] << *count;
	*count += s->dist_lens[symbol];
	bits |= (wf_u64)(distance & ((1u << extra) - 1)) << *count;
	*count += extra;
	return bits;
}

WF_PIECE_FN void wf_block_tokens(struct wf_packer *p)
{
	struct wf_deflate_space *s = p->s;

	/* The end of the block is a token, too. */
	for (uint32_t i = 0; i <= p->count; i += WF_LANES) {
		WF_EACH_LANE (lane) {
			uint32_t count = 0, n = i + lane;
			wf_u64 bits = 0;

			if (n <= p->count)
				bits = wf_token_bits(
					s, n < p->count ? p->tokens[n] : 256,
					&count);
			s->bits[lane] = count;
			/* Kept until it is known where they go. */
			s->huffman.weight[2 * lane] = (uint32_t)bits;
			s->huffman.weight[2 * lane + 1] =
				(uint32_t)(bits >> 32);
		}
		wf_lanes_sync();
		wf_lanes_scan(s->bits, s->sums);
		WF_EACH_LANE (lane) {
			wf_packer_or(
				s, p->bits + s->sums[lane] - s->bits[lane],
				s->huffman.weight[2 * lane] |
					(wf_u64)s->huffman.weight[2 * lane + 1]
						<< 32,
				s->bits[lane]);
		}
		wf_packer_flush(p, s->sums[WF_LANES - 1]);
	}
}

/* As it is. On a byte afterwards, which may be none of a word. */
WF_PIECE_FN void wf_block_plain(struct wf_packer *p, uint32_t len,
				uint32_t final)
{
	const uint8_t *from = p->src + p->block;
	uint32_t head = 4, n;

	wf_packer_put(p, final, 3);
	wf_packer_put(p, 0, (0u - p->bits) & 7);
	wf_packer_put(p, len & 0xffff, 16);
	wf_packer_put(p, ~len & 0xffff, 16);
	/* A few bytes up to a word, then words, then what is left. */
	head = ((32 - p->bits) & 31) / 8;
	head = head < len ? head : len;
	for (uint32_t i = 0; i < head; i++)
		wf_packer_put(p, from[i], 8);
	n = (len - head) / 4;
	WF_EACH (i, n)
		wf_store(p->dst + p->at + 4 * i, wf_load(from + head + 4 * i));
	p->at += 4 * n;
	for (uint32_t i = head + 4 * n; i < len; i++)
		wf_packer_put(p, from[i], 8);
}

/* 0 if there is no room for it. */
WF_PIECE_FAR int wf_block_write(struct wf_packer *p, uint32_t end,
				uint32_t final)
{
	struct wf_deflate_space *s = p->s;
	uint32_t len = end - p->block, lits = 286, dists = 30, places = 19;
	uint32_t coded, fixed, stored, bits;

	wf_huffman_make(&s->huffman, s->lit_freq, 286, 15, s->lit_lens,
			s->lit_codes);
	wf_huffman_make(&s->huffman, s->dist_freq, 30, 15, s->dist_lens,
			s->dist_codes);
	while (lits > 257 && !s->lit_lens[lits - 1])
		lits--;
	while (dists > 1 && !s->dist_lens[dists - 1])
		dists--;
	WF_EACH (i, 19)
		s->len_freq[i] = 0;
	wf_lanes_sync();
	WF_ONE_LANE
	{
		wf_block_runs(s, lits, dists);
	}
	wf_huffman_make(&s->huffman, s->len_freq, 19, 7, s->len_lens,
			s->len_codes);
	while (places > 4 && !s->len_lens[wf_run_place(places - 1)])
		places--;
	coded = 3 + 14 + 3 * places + wf_block_cost(p, 0);
	for (uint32_t i = 0; i < 19; i++)
		coded += s->len_freq[i] * (s->len_lens[i] + wf_run_extra(i));
	fixed = 3 + wf_block_cost(p, 1);
	stored = 3 + 7 + 32 + 8 * len;
	bits = coded < fixed ? coded : fixed;
	if (len <= 0xffff && stored < bits)
		bits = stored;
	/* Some are still to come behind it: wf_piece_deflate(). */
	if (p->at * 8 + p->bits + bits > p->room * 8)
		return 0;
	if (bits == stored) {
		wf_block_plain(p, len, final);
	} else {
		wf_packer_put(p, final | (coded < fixed ? 2u : 1u) << 1, 3);
		wf_block_header(p, lits, dists, places, coded >= fixed);
		wf_block_tokens(p);
	}
	p->block = end;
	p->count = 0;
	return 1;
}

WF_PIECE_FN void wf_block_begin(struct wf_packer *p)
{
	struct wf_deflate_space *s = p->s;

	wf_lanes_sync();
	WF_EACH (i, 288)
		s->lit_freq[i] = i == 256;
	WF_EACH (i, 32)
		s->dist_freq[i] = 0;
	wf_lanes_sync();
}

#endif
