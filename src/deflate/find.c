/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for block headers. A header is tested at every bit, so the order
 * of tests is by price: 51 offsets at once for the fields of 3, 5 and 5 bits
 * (one in ten passes), then the sum of the code that the code lengths are
 * written in (one in 2400), then the code lengths themselves.
 */
#include "deflate/find.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define OFFSETS 51  /* that a word of 64 bits answers at once */
#define BEHIND 24   /* bytes behind an offset that the quick tests read */
#define PRECODES 19 /* RFC 1951 3.2.7 */
#define PRECODE_BITS 7
#define LENGTHS_MOST (286 + 30)
#define CODE_MOST 15

static uint64_t load(const uint8_t *in)
{
	uint64_t word;

	memcpy(&word, in, sizeof(word));
	return le64toh(word);
}

/* 64 bits from @bit on. */
static uint64_t bits_at(const uint8_t *in, uint64_t bit)
{
	unsigned int shift = bit & 7;
	uint64_t low = load(in + bit / 8) >> shift;

	return shift ? low | (uint64_t)in[bit / 8 + 8] << (64 - shift) : low;
}

/* How much of the space of a code its lengths 1 to 7 take: 2^(7 - length). */
#define SHARE(l) ((l) ? 128u >> (l) : 0)
#define SHARES(i)                                                              \
	(uint16_t)(SHARE((i)&7) + SHARE((i) >> 3 & 7) + SHARE((i) >> 6 & 7) +  \
		   SHARE((i) >> 9 & 7))
#define FOUR(i) SHARES(i), SHARES((i) + 1), SHARES((i) + 2), SHARES((i) + 3)
#define SIXTEEN(i) FOUR(i), FOUR((i) + 4), FOUR((i) + 8), FOUR((i) + 12)
#define FOURTH(i)                                                              \
	SIXTEEN(i), SIXTEEN((i) + 16), SIXTEEN((i) + 32), SIXTEEN((i) + 48)
#define LINE(i)                                                                \
	FOURTH(i), FOURTH((i) + 64), FOURTH((i) + 128), FOURTH((i) + 192)
#define PAGE(i) LINE(i), LINE((i) + 256), LINE((i) + 512), LINE((i) + 768)

/* The shares of four lengths of three bits. */
static const uint16_t shares[4096] = { PAGE(0), PAGE(1024), PAGE(2048),
				       PAGE(3072) };

/* Whether the precode whose count stands at @word is complete. */
static bool has_precode(uint64_t word)
{
	unsigned int bits = 3 * ((word & 15) + 4);
	unsigned int sum;

	word = word >> 4 & ((1ull << bits) - 1);
	sum = shares[word & 4095] + shares[word >> 12 & 4095] +
	      shares[word >> 24 & 4095] + shares[word >> 36 & 4095] +
	      shares[word >> 48];
	return sum == 128;
}

struct reader {
	const uint8_t *in;
	size_t len;
	uint64_t bit;
};

/* The next @count bits; zeros behind the end. */
static unsigned int peek(const struct reader *r, unsigned int count)
{
	size_t at = r->bit / 8;
	uint32_t word = 0;

	if (at + 4 <= r->len) {
		memcpy(&word, r->in + at, 4);
		word = le32toh(word);
	} else {
		for (size_t i = at; i < r->len; i++)
			word |= (uint32_t)r->in[i] << 8 * (i - at);
	}
	return word >> (r->bit & 7) & ((1u << count) - 1);
}

static unsigned int take(struct reader *r, unsigned int count)
{
	unsigned int value = peek(r, count);

	r->bit += count;
	return value;
}

/* Each 7 bits that may come to symbol << 3 | length. The code is complete. */
static void read_precode(struct reader *r, uint8_t *table)
{
	static const uint8_t order[PRECODES] = { 16, 17, 18, 0,	 8, 7,	9,
						 6,  10, 5,  11, 4, 12, 3,
						 13, 2,	 14, 1,	 15 };
	uint8_t lengths[PRECODES] = { 0 };
	unsigned int count = take(r, 4) + 4, code = 0;

	for (unsigned int i = 0; i < count; i++)
		lengths[order[i]] = (uint8_t)take(r, 3);
	for (unsigned int l = 1; l <= PRECODE_BITS; l++) {
		for (unsigned int s = 0; s < PRECODES; s++) {
			unsigned int turned = 0;

			if (lengths[s] != l)
				continue;
			/* Huffman codes come with their top bit first. */
			for (unsigned int i = 0; i < l; i++)
				turned |= (code >> i & 1) << (l - 1 - i);
			for (; turned < 1u << PRECODE_BITS; turned += 1u << l)
				table[turned] = (uint8_t)(s << 3 | l);
			code++;
		}
		code <<= 1;
	}
}

/* Complete, or one code of one bit (@may_be_one), or none (@may_be_none). */
static bool is_complete(const uint8_t *lengths, unsigned int count,
			bool may_be_none)
{
	unsigned int sum = 0, used = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (!lengths[i])
			continue;
		sum += 1u << (CODE_MOST - lengths[i]);
		used++;
	}
	return sum == 1u << CODE_MOST || (!used && may_be_none) ||
	       (used == 1 && sum == 1u << (CODE_MOST - 1));
}

/* The whole header, as inflate would judge it. */
static bool is_header(const uint8_t *in, size_t len, uint64_t bit)
{
	struct reader r = { in, len, bit + 3 };
	unsigned int literals = take(&r, 5) + 257;
	unsigned int all = literals + take(&r, 5) + 1, n = 0;
	uint8_t lengths[LENGTHS_MOST + 138], table[1 << PRECODE_BITS];

	read_precode(&r, table);
	while (n < all) {
		unsigned int entry = table[peek(&r, PRECODE_BITS)];
		unsigned int symbol = entry >> 3, again = 1;
		uint8_t value = (uint8_t)symbol;

		r.bit += entry & 7;
		if (r.bit > len * 8)
			return false;
		if (symbol == 16) {
			if (!n)
				return false;
			value = lengths[n - 1];
			again = 3 + take(&r, 2);
		} else if (symbol > 16) {
			value = 0;
			again = symbol == 17 ? 3 + take(&r, 3) :
					       11 + take(&r, 7);
		}
		if (again > all - n)
			return false;
		memset(lengths + n, value, again);
		n += again;
	}
	return lengths[256] && is_complete(lengths, literals, false) &&
	       is_complete(lengths + literals, all - literals, true);
}

/* One bit for each of the first 51 offsets: type 2, not the last block, and
 * counts of codes that may be (30 and 31 may not). */
static uint64_t offsets_of(uint64_t w)
{
	uint64_t types = ~w & ~(w >> 1) & w >> 2;
	uint64_t pairs = w & w >> 1;
	uint64_t fours = pairs & pairs >> 2; /* ones at b, b+1, b+2, b+3 */

	return types & ~(fours >> 4) & ~(fours >> 9) & ((1ull << OFFSETS) - 1);
}

uint64_t wf_deflate_find_block(const uint8_t *in, size_t len, uint64_t from,
			       uint64_t to)
{
	uint64_t end = len > BEHIND ? (uint64_t)(len - BEHIND) * 8 : 0;

	if (to < end)
		end = to;
	for (uint64_t at = from; at < end; at += OFFSETS) {
		uint64_t some = offsets_of(bits_at(in, at));

		while (some) {
			uint64_t bit = at + (unsigned int)__builtin_ctzll(some);

			some &= some - 1;
			if (has_precode(bits_at(in, bit + 13)) &&
			    is_header(in, len, bit))
				return bit < end ? bit : WF_FIND_NONE;
		}
	}
	return WF_FIND_NONE;
}

uint64_t wf_deflate_find_member(const uint8_t *in, size_t len, uint64_t from,
				uint64_t to)
{
	uint64_t at = from;

	if (to > len)
		to = len;
	while (at < to) {
		const uint8_t *p = memchr(in + at, 0x1f, (size_t)(to - at));

		if (!p)
			break;
		at = (uint64_t)(p - in);
		if (len - at >= 18 && p[1] == 0x8b && p[2] == 8 &&
		    !(p[3] & 0xe0))
			return at;
		at++;
	}
	return WF_FIND_NONE;
}
