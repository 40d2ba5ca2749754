/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes for the symbols of a block: as short as Huffman's, none longer than it
 * may be. For the code of pieces only (lanes.h).
 *
 * Symbols are ordered by how often they come, each lane finding the places of
 * some. One lane then joins the two rarest again and again, which needs two
 * queues and no heap, since both are in order.
 */
#ifndef WF_CUDA_HUFFMAN_H
#define WF_CUDA_HUFFMAN_H

#include "cuda/piece_defs.h"

#define WF_SYMBOLS_MOST 288u

/* Shared memory of one warp, while a set of codes is made. */
struct wf_huffman_space {
	uint16_t order[WF_SYMBOLS_MOST]; /* the rarest first */
	uint32_t weight[WF_SYMBOLS_MOST];
	uint16_t parent[2 * WF_SYMBOLS_MOST]; /* symbols, then joined ones */
	uint16_t count[33];
	uint16_t next[16];
	uint32_t used;
};

/* The symbols that come, by number and then by value. */
WF_PIECE_FN void wf_huffman_order(struct wf_huffman_space *h,
				  const uint32_t *freq, uint32_t symbols)
{
	WF_ONE_LANE
	{
		h->used = 0;
	}
	wf_lanes_sync();
	WF_EACH (i, symbols) {
		uint32_t rank = 0, mine = freq[i];

		if (!mine)
			continue;
		for (uint32_t j = 0; j < symbols; j++)
			rank += freq[j] &&
				(freq[j] < mine || (freq[j] == mine && j < i));
		h->order[rank] = (uint16_t)i;
		wf_lanes_add(&h->used, 1);
	}
	wf_lanes_sync();
}

/* One lane: the rarer of the next symbol and the next joined one. */
WF_PIECE_FN uint32_t wf_huffman_rarer(const struct wf_huffman_space *h,
				      const uint32_t *freq, uint32_t *leaf,
				      uint32_t *node, uint32_t made)
{
	if (*leaf < h->used &&
	    (*node == made || freq[h->order[*leaf]] <= h->weight[*node]))
		return (*leaf)++;
	return WF_SYMBOLS_MOST + (*node)++;
}

WF_PIECE_FN uint32_t wf_huffman_weight(const struct wf_huffman_space *h,
				       const uint32_t *freq, uint32_t i)
{
	return i < WF_SYMBOLS_MOST ? freq[h->order[i]] :
				     h->weight[i - WF_SYMBOLS_MOST];
}

/* One lane: how many codes of each length there are, none longer than @most. */
WF_PIECE_FN void wf_huffman_lengths(struct wf_huffman_space *h,
				    const uint32_t *freq, uint32_t most)
{
	uint32_t leaf = 0, node = 0, made = 0, total = 0;

	for (uint32_t i = 0; i <= 32; i++)
		h->count[i] = 0;
	while (made + 1 < h->used) {
		uint32_t a = wf_huffman_rarer(h, freq, &leaf, &node, made);
		uint32_t b = wf_huffman_rarer(h, freq, &leaf, &node, made);

		h->weight[made] = wf_huffman_weight(h, freq, a) +
				  wf_huffman_weight(h, freq, b);
		h->parent[a] = (uint16_t)made;
		h->parent[b] = (uint16_t)made;
		made++;
	}
	/* From the root down: a depth is that of the parent and one. The
	 * weights are not needed any more and give way to depths. */
	h->weight[made - 1] = 0;
	for (uint32_t i = made - 1; i-- > 0;)
		h->weight[i] = h->weight[h->parent[WF_SYMBOLS_MOST + i]] + 1;
	for (uint32_t i = 0; i < h->used; i++) {
		uint32_t depth = h->weight[h->parent[i]] + 1;

		h->count[depth < most ? depth : most]++;
	}
	/* Those that were cut make the set too full: in units of the longest
	 * code. Lengthen a short one, until it is full exactly. */
	for (uint32_t i = 1; i <= most; i++)
		total += (uint32_t)h->count[i] << (most - i);
	while (total > 1u << most) {
		uint32_t i = most - 1;

		while (!h->count[i])
			i--;
		h->count[i]--;
		h->count[i + 1] += 2;
		h->count[most]--;
		total--;
	}
}

/* One lane: lengths to symbols, the longest to the rarest; then the codes, with
 * their first bit lowest. */
WF_PIECE_FN void wf_huffman_codes(struct wf_huffman_space *h, uint8_t *lens,
				  uint16_t *codes, uint32_t symbols,
				  uint32_t most)
{
	uint32_t at = 0, code = 0;

	for (uint32_t len = most; len; len--)
		for (uint32_t i = 0; i < h->count[len]; i++)
			lens[h->order[at++]] = (uint8_t)len;
	h->count[0] = 0;
	for (uint32_t len = 1; len <= most; len++) {
		code = (code + h->count[len - 1]) << 1;
		h->next[len] = (uint16_t)code;
	}
	for (uint32_t i = 0; i < symbols; i++)
		if (lens[i])
			codes[i] = (uint16_t)(wf_bits_reverse(
						      h->next[lens[i]]++) >>
					      (32 - lens[i]));
}

/* @most is 15 or 7, and 1 << @most more than @symbols. Symbols that do not come
 * have length 0. */
WF_PIECE_FAR void wf_huffman_make(struct wf_huffman_space *h,
				  const uint32_t *freq, uint32_t symbols,
				  uint32_t most, uint8_t *lens, uint16_t *codes)
{
	wf_lanes_sync();
	WF_EACH (i, symbols)
		lens[i] = 0;
	wf_huffman_order(h, freq, symbols);
	WF_ONE_LANE
	{
		if (h->used > 1)
			wf_huffman_lengths(h, freq, most);
		else
			for (uint32_t i = 0; i <= most; i++)
				h->count[i] = i == 1 ? (uint16_t)h->used : 0;
		wf_huffman_codes(h, lens, codes, symbols, most);
	}
	wf_lanes_sync();
}

#endif
