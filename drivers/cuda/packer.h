/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A piece is compressed with this: tokens in memory of the device, codes in
 * shared memory, bits that become words. For the code of pieces only (lanes.h).
 */
#ifndef WF_CUDA_PACKER_H
#define WF_CUDA_PACKER_H

#include "cuda/huffman.h"

#define WF_HASH_BITS 12u
#define WF_TOKEN_MATCH (1u << 31) /* length - 3 << 16 | distance - 1 */

/* Of one warp; shared memory on a GPU. */
struct wf_deflate_space {
	uint16_t seen[1u << WF_HASH_BITS]; /* the last position of a hash */
	struct wf_huffman_space huffman;
	uint32_t lit_freq[288];
	uint32_t dist_freq[32];
	uint32_t len_freq[20];
	uint16_t lit_codes[288];
	uint16_t dist_codes[32];
	uint16_t len_codes[20];
	uint8_t lit_lens[288];
	uint8_t dist_lens[32];
	uint8_t len_lens[20];
	uint16_t runs[320]; /* symbols of the code lengths, extra bits << 5 */
	uint32_t runs_count;
	uint16_t hash[WF_LANES];
	uint16_t from[WF_LANES];
	uint16_t length[WF_LANES];
	uint32_t bits[WF_LANES];
	uint32_t sums[WF_LANES];
	uint32_t out[4 * WF_LANES]; /* bits that are no whole words yet */
};

/* The same in all lanes. */
struct wf_packer {
	struct wf_deflate_space *s;
	const uint8_t *src;
	uint32_t len;
	uint8_t *dst; /* a multiple of 4 */
	uint32_t room;
	uint32_t at;   /* bytes in ->dst, a multiple of 4 */
	uint32_t bits; /* that wait in s->out, less than 32 */
	uint32_t *tokens;
	uint32_t count;
	uint32_t block; /* where the block begins in ->src */
};

/* RFC 1951, 3.2.5: 4 codes for each number of extra bits; 2 for distances. */
WF_PIECE_FN uint32_t wf_length_symbol(uint32_t value, uint32_t *extra)
{
	*extra = 0;
	if (value == 255)
		return 285;
	if (value < 8)
		return 257 + value;
	*extra = wf_bits_highest(value) - 2;
	return 257 + (*extra << 2) + (value >> *extra);
}

WF_PIECE_FN uint32_t wf_distance_symbol(uint32_t value, uint32_t *extra)
{
	*extra = 0;
	if (value < 4)
		return value;
	*extra = wf_bits_highest(value) - 1;
	return (*extra << 1) + (value >> *extra);
}

/* One lane's bits, @value of up to 48, begin at bit @at of s->out. */
WF_PIECE_FN void wf_packer_or(struct wf_deflate_space *s, uint32_t at,
			      wf_u64 value, uint32_t count)
{
	uint32_t word = at / 32, shift = at % 32;
	wf_u64 low = value << shift;

	if (!count)
		return;
	wf_lanes_or(&s->out[word], (uint32_t)low);
	if (shift + count > 32)
		wf_lanes_or(&s->out[word + 1], (uint32_t)(low >> 32));
	if (shift + count > 64)
		wf_lanes_or(&s->out[word + 2],
			    (uint32_t)(value >> (64 - shift)));
}

/* Whole words go out. @sum bits were added. */
WF_PIECE_FN void wf_packer_flush(struct wf_packer *p, uint32_t sum)
{
	struct wf_deflate_space *s = p->s;
	uint32_t all = p->bits + sum, words = all / 32, rest;

	wf_lanes_sync();
	WF_EACH (i, words)
		wf_store(p->dst + p->at + 4 * i, s->out[i]);
	rest = s->out[words];
	wf_lanes_sync();
	WF_EACH (i, words + 1)
		s->out[i] = i ? 0 : rest;
	wf_lanes_sync();
	p->at += 4 * words;
	p->bits = all % 32;
}

/* All lanes: a few bits. */
WF_PIECE_FN void wf_packer_put(struct wf_packer *p, uint32_t value,
			       uint32_t count)
{
	WF_ONE_LANE
	{
		wf_packer_or(p->s, p->bits, value, count);
	}
	wf_packer_flush(p, count);
}

#endif
