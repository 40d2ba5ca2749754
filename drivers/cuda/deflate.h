/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compresses one piece of up to 64 KiB to raw deflate data (RFC 1951). For the
 * code of pieces only (lanes.h).
 *
 * The lanes look at 32 positions at once: each hashes the 4 bytes at its own,
 * takes the last position before it with the same hash, from the other lanes or
 * from a table in shared memory (8 KiB), and compares. Then all of them choose
 * together which matches to take: a match gives way to a longer one right
 * behind it. Tokens (16384 of 4 bytes at most) go to memory of the device; when
 * they are full, or the piece ends, a block is written with the codes that make
 * it smallest, or stored. Each lane computes the bits of one token, a sum over
 * the lanes says where they belong, and they are joined in shared memory and
 * written as whole words.
 */
#ifndef WF_CUDA_DEFLATE_H
#define WF_CUDA_DEFLATE_H

#include "cuda/block.h"
#include "cuda/check.h"

#define WF_MATCH_LEAST 4u
#define WF_MATCH_MOST 258u
#define WF_MATCH_ALONE 32u /* how far a lane compares by itself */
/* A match of 4 bytes so far away costs more than its literals. */
#define WF_MATCH_FAR 4096u
#define WF_NO_HASH 0xffffu

WF_PIECE_FN uint32_t wf_hash(uint32_t word)
{
	return word * 2654435761u >> (32 - WF_HASH_BITS);
}

/* One lane: how many bytes are the same, WF_MATCH_ALONE at most. */
WF_PIECE_FN uint32_t wf_match_alone(const uint8_t *a, const uint8_t *b,
				    uint32_t most)
{
	uint32_t n = 0, differ;

	while (n + 4 <= most) {
		differ = wf_load(a + n) ^ wf_load(b + n);
		if (differ)
			return n + wf_bits_lowest(differ) / 8;
		n += 4;
	}
	while (n < most && a[n] == b[n])
		n++;
	return n;
}

/* All lanes, from WF_MATCH_ALONE on. */
WF_PIECE_FN uint32_t wf_match_on(const uint8_t *a, const uint8_t *b,
				 uint32_t most)
{
	uint32_t n = WF_MATCH_ALONE;

	while (n < most) {
		uint32_t differ;

		WF_BALLOT(differ, lane,
			  n + lane >= most || a[n + lane] != b[n + lane]);
		if (differ) {
			n += wf_bits_lowest(differ);
			break;
		}
		n += WF_LANES;
	}
	return n < most ? n : most;
}

/* s->length and s->from of the 32 positions from @at on. */
WF_PIECE_FN void wf_window_search(struct wf_packer *p, uint32_t at)
{
	struct wf_deflate_space *s = p->s;

	WF_EACH_LANE (lane) {
		uint32_t pos = at + lane;

		s->hash[lane] =
			(uint16_t)(pos + 4 <= p->len ?
					   wf_hash(wf_load(p->src + pos)) :
					   WF_NO_HASH);
	}
	wf_lanes_sync();
	WF_EACH_LANE (lane) {
		uint32_t before =
			wf_lanes_same(s->hash, lane) & ((1u << lane) - 1);
		uint32_t hash = s->hash[lane];

		s->from[lane] =
			(uint16_t)(hash == WF_NO_HASH ? 0 :
				   before ? at + wf_bits_highest(before) :
					    s->seen[hash]);
	}
	wf_lanes_sync();
	WF_EACH_LANE (lane) {
		uint32_t behind = wf_lanes_same(s->hash, lane) >> lane >> 1;
		uint32_t pos = at + lane, hash = s->hash[lane], n = 0;
		uint32_t from = s->from[lane], most;

		if (hash != WF_NO_HASH) {
			if (!behind)
				s->seen[hash] = (uint16_t)pos;
			most = p->len - pos;
			if (most > WF_MATCH_ALONE)
				most = WF_MATCH_ALONE;
			if (from < pos && pos - from <= WF_PIECE_WINDOW)
				n = wf_match_alone(p->src + from, p->src + pos,
						   most);
			if (n < WF_MATCH_LEAST ||
			    (n == WF_MATCH_LEAST && pos - from > WF_MATCH_FAR))
				n = 0;
		}
		s->length[lane] = (uint16_t)n;
	}
	wf_lanes_sync();
}

/* The tokens of these positions. Returns where the next ones begin. */
WF_PIECE_FN uint32_t wf_window_take(struct wf_packer *p, uint32_t at)
{
	struct wf_deflate_space *s = p->s;
	uint32_t left = p->len - at, here = 0, starts = 0, wanted;
	uint32_t size = left < WF_LANES ? left : WF_LANES;

	/* A match gives way to a longer one right behind it. */
	WF_BALLOT(wanted, lane,
		  s->length[lane] && !(lane + 1 < WF_LANES &&
				       s->length[lane + 1] > s->length[lane]));
	while (here < size) {
		uint32_t rest = wanted & (WF_ALL_LANES << here), next, length;

		if (!rest) {
			starts |= WF_ALL_LANES << here;
			here = size;
			break;
		}
		next = wf_bits_lowest(rest);
		starts |= (WF_ALL_LANES << here) & ((2u << next) - 1);
		length = s->length[next];
		if (length == WF_MATCH_ALONE) {
			uint32_t most = left - next;

			length = wf_match_on(
				p->src + s->from[next], p->src + at + next,
				most < WF_MATCH_MOST ? most : WF_MATCH_MOST);
			wf_lanes_sync();
			WF_ONE_LANE
			{
				s->length[next] = (uint16_t)length;
			}
		}
		here = next + length;
	}
	if (size < WF_LANES)
		starts &= (1u << size) - 1;
	wf_lanes_sync();
	WF_EACH_LANE (lane) {
		uint32_t below = starts & ((1u << lane) - 1), extra;
		uint32_t token = 0, pos = at + lane;

		if (starts >> lane & 1) {
			/* A literal, unless it is wanted: see above. */
			if (wanted >> lane & 1) {
				uint32_t d = pos - s->from[lane] - 1;
				uint32_t l = s->length[lane] - 3u;

				token = WF_TOKEN_MATCH | l << 16 | d;
				wf_lanes_add(&s->lit_freq[wf_length_symbol(
						     l, &extra)],
					     1);
				wf_lanes_add(&s->dist_freq[wf_distance_symbol(
						     d, &extra)],
					     1);
			} else {
				token = p->src[pos];
				wf_lanes_add(&s->lit_freq[token], 1);
			}
			p->tokens[p->count + wf_bits_count(below)] = token;
		}
	}
	wf_lanes_sync();
	p->count += wf_bits_count(starts);
	return at + here;
}

/* @tokens has WF_PIECE_TOKENS. @dst is a multiple of 4; WF_PIECE_BOUND()
 * bytes are always enough. */
WF_PIECE_FN void wf_piece_deflate(struct wf_piece *piece, const uint8_t *src,
				  uint8_t *dst, uint32_t *tokens,
				  struct wf_deflate_space *s)
{
	struct wf_packer p = { s, src, piece->src_len, dst,
			       /* Less what comes behind the last block. */
			       piece->dst_len < 16 ? 0 : piece->dst_len - 16, 0,
			       0, tokens, 0, 0 };
	uint32_t final = piece->flags & WF_PIECE_FINAL ? 1 : 0, at = 0, check;
	int ok = 1;

	check = wf_check_piece(piece->flags, s->huffman.weight, src, p.len,
			       s->sums);
	WF_EACH (i, 1u << WF_HASH_BITS)
		s->seen[i] = 0;
	WF_EACH (i, 4 * WF_LANES)
		s->out[i] = 0;
	wf_block_begin(&p);
	while (at < p.len && ok) {
		wf_window_search(&p, at);
		at = wf_window_take(&p, at);
		if (p.count > WF_PIECE_TOKENS - WF_LANES && at < p.len) {
			ok = wf_block_write(&p, at, 0);
			wf_block_begin(&p);
		}
	}
	if (ok)
		ok = wf_block_write(&p, at, final);
	if (ok && !final) {
		/* An empty stored block, up to a byte. */
		wf_packer_put(&p, 0, 3);
		wf_packer_put(&p, 0, (0u - p.bits) & 7);
		wf_packer_put(&p, 0xffff0000u, 32);
	}
	wf_lanes_sync();
	WF_ONE_LANE
	{
		/* The rest of a word is written; the room is a multiple of
		 * 4. */
		if (ok && p.bits)
			wf_store(dst + p.at, s->out[0]);
		piece->status = ok ? WF_PIECE_OK : WF_PIECE_FULL;
		piece->consumed = ok ? p.len : 0;
		piece->produced = ok ? p.at + (p.bits + 7) / 8 : 0;
		piece->check = check;
	}
	wf_lanes_sync();
}

#endif
