/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk: RFC 1951 without output. Literals cost nothing but their bits, so
 * a table entry skips up to three of them at once, together with the length
 * code that follows. It must not trust its input beyond the end it is given.
 */
#include "drv/walk.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BITS 15
#define LIT_BITS 11 /* index of the table for literals and lengths */
#define DIST_BITS 9
#define LITLENS 288
#define DISTS 32
#define END_OF_BLOCK 256

enum kind {
	KIND_LITERAL,
	KIND_LENGTH,
	KIND_END,
	KIND_LONG,   /* the code is longer than the index */
	KIND_INVALID /* no code begins like this */
};

struct entry {
	uint8_t kind;
	uint8_t bits; /* to skip, extra bits included */
	uint8_t code; /* bits of the code alone */
};

struct codes {
	uint16_t count[MAX_BITS + 1];
	uint16_t symbols[LITLENS];
};

struct bits {
	const uint8_t *next;
	const uint8_t *end;
	const uint8_t *start;
	uint64_t bits;
	unsigned int count; /* valid bits; bits beyond the end read as zero */
	unsigned int past;  /* bytes made up beyond the end */
};

struct walker {
	struct bits in;
	struct codes lit_codes;
	struct codes dist_codes;
	struct entry base[1 << LIT_BITS];
	struct entry lit[1 << LIT_BITS];
	struct entry dist[1 << DIST_BITS];
};

static const uint8_t length_extra[LITLENS - 257] = {
	0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
	2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
};

/* At least 56 bits after it. */
static inline void refill(struct bits *w)
{
	if (__builtin_expect(w->end - w->next >= 8, 1)) {
		uint64_t more;

		memcpy(&more, w->next, 8);
		w->bits |= le64toh(more) << w->count;
		w->next += (63 - w->count) >> 3;
		w->count |= 56;
		return;
	}
	while (w->count < 56) {
		if (w->next < w->end)
			w->bits |= (uint64_t)*w->next++ << w->count;
		else
			w->past++;
		w->count += 8;
	}
}

static inline void skip(struct bits *w, unsigned int bits)
{
	w->bits >>= bits;
	w->count -= bits;
}

static inline unsigned int take(struct bits *w, unsigned int bits)
{
	unsigned int value = (unsigned int)(w->bits & ((1u << bits) - 1));

	skip(w, bits);
	return value;
}

static size_t position(const struct bits *w)
{
	return (size_t)(w->next - w->start + w->past) * 8 - w->count;
}

static bool overran(const struct bits *w)
{
	return position(w) > (size_t)(w->end - w->start) * 8;
}

static unsigned int reverse(unsigned int code, unsigned int bits)
{
	unsigned int out = 0;

	for (; bits; bits--, code >>= 1)
		out = out << 1 | (code & 1);
	return out;
}

/* RFC 1951 3.2.2: sorts the symbols by code. -EBADMSG for sets that zlib
 * refuses: oversubscribed, or incomplete beyond one code of one bit (which a
 * set of code lengths may not be either). */
static int sort_codes(struct codes *codes, const uint8_t *lengths, size_t n,
		      int most_if_open)
{
	uint16_t offset[MAX_BITS + 2] = { 0 };
	int left = 1, longest = 0;

	memset(codes->count, 0, sizeof(codes->count));
	for (size_t i = 0; i < n; i++)
		codes->count[lengths[i]]++;
	codes->count[0] = 0;
	for (int bits = 1; bits <= MAX_BITS; bits++) {
		left = (left << 1) - codes->count[bits];
		if (codes->count[bits])
			longest = bits;
		if (left < 0)
			return -EBADMSG;
		offset[bits + 1] =
			(uint16_t)(offset[bits] + codes->count[bits]);
	}
	if (left > 0 && longest > most_if_open)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		if (lengths[i])
			codes->symbols[offset[lengths[i]]++] = (uint16_t)i;
	}
	return 0;
}

static struct entry lit_entry(unsigned int symbol, unsigned int bits)
{
	struct entry e = { .code = (uint8_t)bits, .bits = (uint8_t)bits };

	if (symbol < END_OF_BLOCK) {
		e.kind = KIND_LITERAL;
	} else if (symbol == END_OF_BLOCK) {
		e.kind = KIND_END;
	} else if (symbol >= 286) {
		e.kind = KIND_INVALID;
	} else {
		e.kind = KIND_LENGTH;
		e.bits = (uint8_t)(e.bits + length_extra[symbol - 257]);
	}
	return e;
}

static struct entry dist_entry(unsigned int symbol, unsigned int bits)
{
	struct entry e = { .kind = KIND_LENGTH, .code = (uint8_t)bits };

	if (symbol >= 30)
		e.kind = KIND_INVALID;
	e.bits = (uint8_t)(bits + (symbol < 4 ? 0 : symbol / 2 - 1));
	return e;
}

static void fill_table(struct entry *table, unsigned int index_bits,
		       const struct codes *codes,
		       struct entry (*make)(unsigned int, unsigned int))
{
	unsigned int code = 0, at = 0, size = 1u << index_bits;
	struct entry none = { .kind = KIND_INVALID };
	struct entry longer = { .kind = KIND_LONG };

	for (unsigned int i = 0; i < size; i++)
		table[i] = none;
	for (unsigned int bits = 1; bits <= MAX_BITS; bits++, code <<= 1) {
		for (unsigned int n = codes->count[bits]; n; n--, code++) {
			unsigned int rev = reverse(code, bits);

			if (bits > index_bits) {
				table[rev & (size - 1)] = longer;
				at++;
				continue;
			}
			struct entry e = make(codes->symbols[at++], bits);

			for (; rev < size; rev += 1u << bits)
				table[rev] = e;
		}
	}
}

/* Joins literals that fit into one index with what follows them. */
static void join_literals(struct walker *w)
{
	for (unsigned int i = 0; i < 1u << LIT_BITS; i++) {
		struct entry e = w->base[i];
		unsigned int used = e.code;

		while (e.kind == KIND_LITERAL && used < LIT_BITS) {
			struct entry f = w->base[i >> used];

			if (f.kind > KIND_END || used + f.code > LIT_BITS)
				break;
			used += f.code;
			e.bits = (uint8_t)(e.bits + f.bits);
			e.kind = f.kind;
		}
		w->lit[i] = e;
	}
}

/* A code longer than the index, bit by bit. */
static struct entry decode_long(struct bits *w, const struct codes *codes,
				struct entry (*make)(unsigned int,
						     unsigned int))
{
	unsigned int code = 0, first = 0, index = 0;
	struct entry none = { .kind = KIND_INVALID };

	for (unsigned int bits = 1; bits <= MAX_BITS; bits++) {
		code |= (unsigned int)(w->bits >> (bits - 1)) & 1;
		if (code < first + codes->count[bits])
			return make(codes->symbols[index + code - first], bits);
		index += codes->count[bits];
		first = (first + codes->count[bits]) << 1;
		code <<= 1;
	}
	return none;
}

static int build(struct walker *w, const uint8_t *lengths, size_t lits,
		 size_t dists)
{
	if (!lengths[END_OF_BLOCK] ||
	    sort_codes(&w->lit_codes, lengths, lits, 1) ||
	    sort_codes(&w->dist_codes, lengths + lits, dists, 1))
		return -EBADMSG;
	fill_table(w->base, LIT_BITS, &w->lit_codes, lit_entry);
	fill_table(w->dist, DIST_BITS, &w->dist_codes, dist_entry);
	join_literals(w);
	return 0;
}

static int read_dynamic(struct walker *w)
{
	static const uint8_t order[19] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
					   11, 4,  12, 3, 13, 2, 14, 1, 15 };
	uint8_t lengths[LITLENS + DISTS] = { 0 };
	unsigned int lits, dists, n, i = 0;
	struct bits *in = &w->in;
	struct codes codes;

	refill(in);
	lits = 257 + take(in, 5);
	dists = 1 + take(in, 5);
	n = 4 + take(in, 4);
	for (unsigned int k = 0; k < n; k++) {
		refill(in);
		lengths[order[k]] = (uint8_t)take(in, 3);
	}
	if (lits > 286 || dists > 30 || sort_codes(&codes, lengths, 19, 0))
		return -EBADMSG;
	memset(lengths, 0, sizeof(lengths));
	while (i < lits + dists) {
		unsigned int code = 0, first = 0, index = 0, bits, symbol = 19;
		unsigned int repeat;

		refill(in);
		for (bits = 1; bits <= 7; bits++) {
			code |= take(in, 1);
			if (code < first + codes.count[bits]) {
				symbol = codes.symbols[index + code - first];
				break;
			}
			index += codes.count[bits];
			first = (first + codes.count[bits]) << 1;
			code <<= 1;
		}
		if (symbol < 16) {
			lengths[i++] = (uint8_t)symbol;
			continue;
		}
		if (symbol == 19 || (symbol == 16 && !i))
			return -EBADMSG;
		if (symbol == 16)
			repeat = 3 + take(in, 2);
		else
			repeat = symbol == 17 ? 3 + take(in, 3) :
						11 + take(in, 7);
		if (i + repeat > lits + dists)
			return -EBADMSG;
		memset(lengths + i, symbol == 16 ? lengths[i - 1] : 0, repeat);
		i += repeat;
	}
	return build(w, lengths, lits, dists);
}

static int read_fixed(struct walker *w)
{
	uint8_t lengths[LITLENS + DISTS];

	memset(lengths, 8, 144);
	memset(lengths + 144, 9, 256 - 144);
	memset(lengths + 256, 7, 280 - 256);
	memset(lengths + 280, 8, 288 - 280);
	memset(lengths + 288, 5, DISTS);
	return build(w, lengths, LITLENS, DISTS);
}

static int walk_coded(struct walker *w)
{
	/* Its own: in memory that others may see, it would be stored each time. */
	struct bits in = w->in;

	for (;;) {
		struct entry e;

		/* 56 bits hold the longest: 15 + 5 and 15 + 13. */
		refill(&in);
		e = w->lit[in.bits & ((1u << LIT_BITS) - 1)];
		if (__builtin_expect(e.kind >= KIND_LONG, 0)) {
			if (e.kind == KIND_LONG)
				e = decode_long(&in, &w->lit_codes, lit_entry);
			if (e.kind == KIND_INVALID)
				return -EBADMSG;
		}
		skip(&in, e.bits);
		if (e.kind == KIND_LITERAL) {
			if (in.past > 8)
				return -EBADMSG;
			continue;
		}
		if (e.kind == KIND_END) {
			w->in = in;
			return 0;
		}
		e = w->dist[in.bits & ((1u << DIST_BITS) - 1)];
		if (e.kind == KIND_LONG)
			e = decode_long(&in, &w->dist_codes, dist_entry);
		if (e.kind == KIND_INVALID || in.past > 8)
			return -EBADMSG;
		skip(&in, e.bits);
	}
}

static int walk_stored(struct bits *w)
{
	size_t at = (position(w) + 7) / 8;
	size_t total = (size_t)(w->end - w->start), len;

	if (at + 4 > total)
		return -EBADMSG;
	len = w->start[at] | (size_t)w->start[at + 1] << 8;
	if ((len ^ 0xffff) !=
	    (w->start[at + 2] | (size_t)w->start[at + 3] << 8))
		return -EBADMSG;
	at += 4 + len;
	if (at > total)
		return -EBADMSG;
	w->next = w->start + at;
	w->bits = 0;
	w->count = 0;
	w->past = 0;
	return 0;
}

static int walk_blocks(struct walker *w, struct wf_walk *walk)
{
	int last, type, ret;

	do {
		refill(&w->in);
		walk->final_bit = position(&w->in);
		last = (int)take(&w->in, 1);
		type = (int)take(&w->in, 2);
		if (type == 0) {
			ret = walk_stored(&w->in);
		} else if (type == 3) {
			ret = -EBADMSG;
		} else {
			ret = type == 1 ? read_fixed(w) : read_dynamic(w);
			if (!ret)
				ret = walk_coded(w);
		}
		if (ret || overran(&w->in))
			return -EBADMSG;
	} while (!last);
	walk->end_bit = position(&w->in);
	return 0;
}

int wf_drv_walk(const uint8_t *data, size_t len, struct wf_walk *walk)
{
	/* Its tables are too large for the stacks of some threads. */
	struct walker *w = malloc(sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->in = (struct bits){ .next = data, .start = data, .end = data + len };
	ret = walk_blocks(w, walk);
	free(w);
	return ret;
}
