/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk: blocks begin as in inflate (inflate.h), which stops behind each
 * header; their symbols are passed over without output. Literals cost nothing
 * but their bits, so an entry of the joined table skips several of them at
 * once, together with the length that follows. It must not trust its input
 * beyond the end it is given.
 */
#include "deflate/walk.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "deflate/inflate.h"

#define JOINED_BITS WF_TABLE_LIT_BITS
#define MASK(n) (((uint64_t)1 << (n)) - 1)

/* An entry skips symbols; its kind says what the last of them is. */
enum kind {
	KIND_LITERAL,
	KIND_LENGTH,
	KIND_OTHER, /* nothing is skipped: see the block's own table */
};

struct entry {
	uint8_t kind;
	uint8_t bits; /* to skip, extra bits included */
};

struct walker {
	const uint8_t *begin;
	const uint8_t *end;
	struct wf_inflate s;
	struct wf_inflate_codes codes;
	struct entry joined[1 << JOINED_BITS];
};

struct bits {
	const uint8_t *next;
	const uint8_t *end;
	uint64_t bits;
	unsigned int count; /* valid bits; bits beyond the end read as zero */
	unsigned int past;  /* bytes made up beyond the end */
};

/* At least 56 bits after it. */
static inline void refill(struct bits *b)
{
	if (__builtin_expect(b->end - b->next >= 8, 1)) {
		uint64_t more;

		memcpy(&more, b->next, 8);
		b->bits |= le64toh(more) << b->count;
		b->next += (63 - b->count) >> 3;
		b->count |= 56;
		return;
	}
	while (b->count < 56) {
		if (b->next < b->end)
			b->bits |= (uint64_t)*b->next++ << b->count;
		else
			b->past++;
		b->count += 8;
	}
}

static inline void skip(struct bits *b, unsigned int count)
{
	b->bits >>= count;
	b->count -= count;
}

/* Literals whose codes fit into one index are joined with what follows. */
static void join(struct walker *w, const struct wf_table_pair *t)
{
	const uint64_t mask = MASK(t->lit_bits);

	for (unsigned int i = 0; i < 1u << JOINED_BITS; i++) {
		uint32_t e = t->lit[i & mask];
		unsigned int used = wf_table_code(e), bits = wf_table_drop(e);

		if (e & WF_TABLE_OTHER) {
			w->joined[i] = (struct entry){ KIND_OTHER, 0 };
			continue;
		}
		while (e & WF_TABLE_LITERAL && used < JOINED_BITS) {
			uint32_t next = t->lit[i >> used & mask];

			if (next & WF_TABLE_OTHER ||
			    used + wf_table_code(next) > JOINED_BITS)
				break;
			e = next;
			used += wf_table_code(e);
			bits += wf_table_drop(e);
		}
		w->joined[i] = (struct entry){
			e & WF_TABLE_LITERAL ? KIND_LITERAL : KIND_LENGTH,
			(uint8_t)bits,
		};
	}
}

/* The entry of the next code, which is behind the root's bits then if it is a
 * subtable's. */
static inline uint32_t look_up(const uint32_t *table, unsigned int root,
			       struct bits *b)
{
	uint32_t e = table[b->bits & MASK(root)];

	if (e & WF_TABLE_SUB) {
		skip(b, root);
		e = table[wf_table_sub(e, b->bits)];
	}
	return e;
}

/* The symbols of a block. *@bit is the first one, then the one behind them. */
static int pass(struct walker *w, const struct wf_table_pair *t, uint64_t *bit)
{
	struct bits b = { .next = w->begin + *bit / 8, .end = w->end };

	refill(&b);
	skip(&b, *bit & 7);
	/* At most 8 bytes are made up, unless all of them are. */
	while (b.past <= 8) {
		struct entry j;
		uint32_t e;

		/* 56 bits hold literals (11), literals and a length (11 + 5)
		 * and a distance (15 + 13). */
		refill(&b);
		j = w->joined[b.bits & MASK(JOINED_BITS)];
		skip(&b, j.bits);
		if (j.kind == KIND_LITERAL) {
			j = w->joined[b.bits & MASK(JOINED_BITS)];
			skip(&b, j.bits);
			if (j.kind == KIND_LITERAL)
				continue;
		}
		if (__builtin_expect(j.kind == KIND_OTHER, 0)) {
			refill(&b); /* 15 + 5, and the distance */
			e = look_up(t->lit, t->lit_bits, &b);
			if (e & WF_TABLE_OTHER && e & WF_TABLE_BAD)
				return -EBADMSG;
			skip(&b, wf_table_drop(e));
			if (e & WF_TABLE_OTHER) {
				*bit = (uint64_t)(b.next - w->begin + b.past) *
					       8 -
				       b.count;
				return 0;
			}
			if (e & WF_TABLE_LITERAL)
				continue;
		}
		e = look_up(t->dist, WF_TABLE_DIST_BITS, &b);
		if (e & WF_TABLE_OTHER)
			return -EBADMSG;
		skip(&b, wf_table_drop(e));
	}
	return -EBADMSG;
}

/* The header of the block at *@bit, as inflate reads it. */
static int begin_block(struct walker *w, uint64_t *bit)
{
	static uint8_t nowhere[1];
	const uint8_t *in = w->begin + *bit / 8;
	unsigned int used = *bit & 7;
	struct wf_inflate_io io = { .out = nowhere };
	struct wf_inflate *s = &w->s;

	if (in >= w->end)
		return -EBADMSG;
	wf_deflate_inflate_reset_keep(s);
	if (used)
		wf_deflate_inflate_prime(s, (int)(8 - used), *in++ >> used);
	io.in = in;
	io.in_len = (size_t)(w->end - in);
	wf_deflate_inflate_run(s, &io, WF_INFLATE_TREES);
	*bit = (uint64_t)(io.in - w->begin) * 8 - s->bits;
	return s->mode == WF_INFLATE_CODE_NEW ||
			       s->mode == WF_INFLATE_COPY_NEW ?
		       0 :
		       -EBADMSG;
}

static int walk_block(struct walker *w, uint64_t *bit)
{
	const struct wf_inflate *s = &w->s;
	struct wf_table_pair t = { w->codes.lit, w->codes.dist, 0 };
	int ret = begin_block(w, bit);

	if (ret)
		return ret;
	if (s->mode == WF_INFLATE_COPY_NEW) {
		*bit += (uint64_t)s->length * 8;
		return 0;
	}
	t.lit_bits = s->lit_bits;
	if (s->fixed)
		t = wf_deflate_fixed;
	join(w, &t);
	return pass(w, &t, bit);
}

int wf_deflate_walk(const uint8_t *data, size_t len, struct wf_walk *walk)
{
	/* Too large for the stacks of some threads. */
	struct walker *w = malloc(sizeof(*w));
	uint64_t bit = 0;
	int ret;

	if (!w)
		return -ENOMEM;
	w->begin = data;
	w->end = data + len;
	wf_deflate_inflate_init(&w->s, &w->codes, (struct wd_comp_mem){ 0 },
				WF_INFLATE_RAW, 15);
	do {
		walk->final_bit = bit;
		ret = walk_block(w, &bit);
		if (bit > (uint64_t)len * 8)
			ret = -EBADMSG;
	} while (!ret && !w->s.last);
	walk->end_bit = bit;
	free(w);
	return ret;
}
