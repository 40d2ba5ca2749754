/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoder of chunks. Output in bytes and output in 16 bits are one loop:
 * a copy of n elements from d elements back is a copy of 2n bytes from 2d
 * bytes back. Input is read eight bytes at a time; its last bytes are copied
 * to where more may be read, so that the loop has one form only.
 */
#include "deflate/chunk.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "deflate/inflate.h"
#include "deflate/table.h"

#define WINDOW WF_CHUNK_WINDOW
#define MATCH_MOST 258
#define IN_SLACK 32 /* bytes that one turn of the loop may load */
/* One turn may write so much: three literals, a match, and 64 bytes too
 * much. */
#define OUT_SLACK(wide) (((MATCH_MOST + 3) << (wide)) + 64)
#define MARKER 0x8000u

struct wf_chunk_tables {
	uint32_t lit[WF_TABLE_LIT_SIZE];
	uint32_t dist[WF_TABLE_DIST_SIZE];
	uint32_t pre[1 << WF_TABLE_PRE_BITS];
	uint8_t lens[WF_TABLE_LITS + WF_TABLE_DISTS];
};

/* The input: @left bits in @buf, then the bytes at @in. */
struct bits {
	uint64_t buf;
	unsigned int left;
	const uint8_t *in;
	const uint8_t *fast; /* before it, IN_SLACK bytes can be read */
	const uint8_t *end;
	const uint8_t *mem; /* in memory, what is `base` in the input */
	uint64_t base;
	bool padded;
};

enum outcome { BLOCK_OVER, WANTS_INPUT, WANTS_ROOM, IS_BAD };

static uint64_t load(const uint8_t *in)
{
	uint64_t word;

	memcpy(&word, in, sizeof(word));
	return le64toh(word);
}

static uint64_t bit_of(const struct bits *b)
{
	return (b->base + (uint64_t)(b->in - b->mem)) * 8 - b->left;
}

static uint64_t end_of(const struct bits *b)
{
	return (b->base + (uint64_t)(b->end - b->mem)) * 8;
}

/* Makes sure of IN_SLACK bytes, by zeros behind the end. False: that far
 * behind it that nothing is worth a try. */
static bool ensure(struct wf_chunk *c, struct bits *b)
{
	size_t left;

	if (b->in < b->fast)
		return true;
	if (b->padded)
		return false;
	left = (size_t)(b->end - b->in);
	memset(c->pad, 0, sizeof(c->pad));
	memcpy(c->pad, b->in, left);
	b->base += (uint64_t)(b->in - b->mem);
	b->mem = c->pad;
	b->in = c->pad;
	b->end = c->pad + left;
	b->fast = c->pad + sizeof(c->pad) - IN_SLACK;
	b->padded = true;
	return true;
}

static void refill(struct bits *b)
{
	b->buf |= load(b->in) << b->left;
	b->in += (63 - b->left) >> 3;
	b->left |= 56;
}

static unsigned int take(struct bits *b, unsigned int n)
{
	unsigned int value = (unsigned int)b->buf & ((1u << n) - 1);

	b->buf >>= n;
	b->left -= n;
	return value;
}

/* The input from a bit on. */
static bool seek(struct wf_chunk *c, struct bits *b, uint64_t bit)
{
	if (bit > (uint64_t)c->len * 8)
		return false;
	*b = (struct bits){
		.mem = c->in,
		.in = c->in + bit / 8,
		.end = c->in + c->len,
		.fast = c->len > IN_SLACK ? c->in + c->len - IN_SLACK : c->in,
	};
	if (!ensure(c, b))
		return false;
	refill(b);
	take(b, bit & 7);
	return true;
}

/* @n bytes from @d back, both at least 1; writes up to 32 bytes too many. */
static inline __attribute__((always_inline)) void copy_back(uint8_t *out,
							    size_t d, size_t n)
{
	const uint8_t *from = out - d;
	uint8_t *end = out + n;

	/* A pattern that is shorter than a word: each round doubles it. Bytes
	 * that are stored behind it are written again. */
	while (wf_unlikely(d < 16)) {
		uint8_t word[16];

		memcpy(word, from, 16);
		memcpy(out, word, 16);
		out += d;
		d *= 2;
		if (out >= end)
			return;
	}
	do {
		memcpy(out, from, 16);
		memcpy(out + 16, from + 16, 16);
		out += 32;
		from += 32;
	} while (out < end);
}

/*
 * run_block() is made of these macros; they use its variables. Of `left` only
 * the low byte counts there, so that whole entries can be subtracted from it.
 * `was` is the input before the last entry was taken: its extra bits are in it.
 */
#define REFILL()                                                               \
	(buf |= load(in) << (left & 63), in += 7 - (left >> 3 & 7), left |= 56)
#define TAKE(entry) (was = buf, buf >>= (entry)&63, left -= (entry))
#define VALUE(entry)                                                           \
	(((entry) >> 16) +                                                     \
	 (uint32_t)((was & ~(~0ull << ((entry)&63))) >> wf_table_code(entry)))
#define PUT(entry)                                                             \
	do {                                                                   \
		uint16_t byte_ = (uint8_t)((entry) >> 16);                     \
		memcpy(out, &byte_, 1 << wide);                                \
		out += 1 << wide;                                              \
	} while (0)
#define NEXT() (lit[buf & mask])

/* Bits of a distance without a subtable, and of the symbol's index after it. */
#define DIST_BITS (WF_TABLE_DIST_BITS + 13 + WF_TABLE_LIT_BITS)

/*
 * The symbols of one block, or as many as there is input and room for. Each
 * time round there are 56 bits, and the entry of the next symbol has been
 * looked up: enough for two literals from the root and a length
 * (11 + 11 + 20), then for the index of a distance.
 */
static inline __attribute__((always_inline)) enum outcome
run_block(struct bits *b, const struct wf_table_pair *t, uint8_t **output,
	  const uint8_t *low, const uint8_t *room, const int wide)
{
	const uint32_t *lit = t->lit, *dist = t->dist;
	const uint64_t mask = (1ull << t->lit_bits) - 1;
	const uint8_t *in = b->in, *fast = b->fast;
	uint64_t buf = b->buf, was;
	uint32_t left = b->left, e, d;
	uint8_t *out = *output;
	enum outcome outcome = IS_BAD;

	REFILL();
	e = NEXT();
	while (in < fast && out < room) {
		size_t length, distance;

		TAKE(e);
		if (e & WF_TABLE_LITERAL) {
			PUT(e);
			e = NEXT();
			TAKE(e);
			if (e & WF_TABLE_LITERAL) {
				PUT(e);
				e = NEXT();
				TAKE(e);
				if (e & WF_TABLE_LITERAL) {
					PUT(e);
					e = NEXT();
					REFILL();
					continue;
				}
			}
		}
		if (wf_unlikely(e & WF_TABLE_OTHER)) {
			if (e & WF_TABLE_SUB) {
				e = lit[wf_table_sub(e, buf)];
				TAKE(e);
			}
			if (e & WF_TABLE_LITERAL) {
				PUT(e);
				REFILL();
				e = NEXT();
				continue;
			}
			if (e & WF_TABLE_OTHER) {
				if (!(e & WF_TABLE_BAD))
					outcome = BLOCK_OVER;
				goto out;
			}
		}
		length = (size_t)VALUE(e) << wide;
		d = dist[buf & ((1u << WF_TABLE_DIST_BITS) - 1)];
		if (wf_unlikely(d & WF_TABLE_OTHER) ||
		    (uint8_t)left < DIST_BITS)
			REFILL();
		TAKE(d);
		if (wf_unlikely(d & WF_TABLE_OTHER)) {
			if (d & WF_TABLE_SUB) {
				d = dist[wf_table_sub(d, buf)];
				TAKE(d);
			}
			if (d & WF_TABLE_OTHER)
				goto out;
		}
		distance = (size_t)VALUE(d) << wide;
		e = NEXT();
		REFILL();
		if (wf_unlikely((size_t)(out - low) < distance))
			goto out;
		copy_back(out, distance, length);
		out += length;
	}
	outcome = in < fast ? WANTS_ROOM : WANTS_INPUT;
out:
	b->in = in;
	b->buf = buf;
	b->left = (uint8_t)left;
	*output = out;
	return outcome;
}

typedef enum outcome (*block_func)(struct bits *b,
				   const struct wf_table_pair *t,
				   uint8_t **output, const uint8_t *low,
				   const uint8_t *room);

static enum outcome run_narrow(struct bits *b, const struct wf_table_pair *t,
			       uint8_t **output, const uint8_t *low,
			       const uint8_t *room)
{
	return run_block(b, t, output, low, room, 0);
}

static enum outcome run_wide(struct bits *b, const struct wf_table_pair *t,
			     uint8_t **output, const uint8_t *low,
			     const uint8_t *room)
{
	return run_block(b, t, output, low, room, 1);
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static enum outcome
run_narrow_bmi2(struct bits *b, const struct wf_table_pair *t, uint8_t **output,
		const uint8_t *low, const uint8_t *room)
{
	return run_block(b, t, output, low, room, 0);
}

__attribute__((target("bmi2"))) static enum outcome
run_wide_bmi2(struct bits *b, const struct wf_table_pair *t, uint8_t **output,
	      const uint8_t *low, const uint8_t *room)
{
	return run_block(b, t, output, low, room, 1);
}

static block_func runner_of(bool wide)
{
	if (__builtin_cpu_supports("bmi2"))
		return wide ? run_wide_bmi2 : run_narrow_bmi2;
	return wide ? run_wide : run_narrow;
}
#else
static block_func runner_of(bool wide)
{
	return wide ? run_wide : run_narrow;
}
#endif

/* The code lengths of a dynamic block and its tables. */
static enum outcome read_tables(struct wf_chunk *c, struct bits *b,
				struct wf_table_pair *pair)
{
	static const uint8_t order[WF_TABLE_PRES] = { 16, 17, 18, 0,  8, 7,  9,
						      6,  10, 5,  11, 4, 12, 3,
						      13, 2,  14, 1,  15 };
	struct wf_chunk_tables *t = c->tables;
	uint8_t pre[WF_TABLE_PRES] = { 0 };
	unsigned int lits, dists, pres, n = 0;

	/* 56 bits: the part before the lengths takes 14, they take 57. */
	refill(b);
	lits = take(b, 5) + 257;
	dists = take(b, 5) + 1;
	pres = take(b, 4) + 4;
	if (lits > WF_TABLE_LITS || dists > WF_TABLE_DISTS)
		return IS_BAD;
	refill(b);
	for (unsigned int i = 0; i < pres; i++) {
		if (i == 10)
			refill(b);
		pre[order[i]] = (uint8_t)take(b, 3);
	}
	if (wf_deflate_table_pre(t->pre, pre))
		return IS_BAD;
	while (n < lits + dists) {
		unsigned int symbol, again = 1;
		uint32_t e;
		uint8_t value;

		if (!ensure(c, b))
			return WANTS_INPUT;
		refill(b);
		e = t->pre[b->buf & ((1u << WF_TABLE_PRE_BITS) - 1)];
		take(b, wf_table_code(e));
		symbol = wf_table_base(e);
		value = (uint8_t)symbol;
		if (symbol == 16) {
			if (!n)
				return IS_BAD;
			value = t->lens[n - 1];
			again = 3 + take(b, 2);
		} else if (symbol > 16) {
			value = 0;
			again = symbol == 17 ? 3 + take(b, 3) : 11 + take(b, 7);
		}
		if (again > lits + dists - n)
			return IS_BAD;
		memset(t->lens + n, value, again);
		n += again;
	}
	if (!t->lens[256] ||
	    wf_deflate_table_lit(t->lit, &pair->lit_bits, t->lens, lits) ||
	    wf_deflate_table_dist(t->dist, t->lens + lits, dists))
		return IS_BAD;
	pair->lit = t->lit;
	pair->dist = t->dist;
	return BLOCK_OVER;
}

static uint8_t *room_end(const struct wf_chunk *c)
{
	return c->room + c->size - OUT_SLACK(c->is_wide);
}

static enum outcome run_codes(struct wf_chunk *c, struct bits *b,
			      const struct wf_table_pair *pair)
{
	block_func run = runner_of(c->is_wide);
	enum outcome outcome;

	do {
		outcome = run(b, pair, &c->out, c->low, room_end(c));
	} while (outcome == WANTS_INPUT && ensure(c, b));
	return outcome;
}

static enum outcome run_stored(struct wf_chunk *c, struct bits *b)
{
	uint64_t at;
	unsigned int len, not_len;

	take(b, b->left & 7);
	refill(b);
	len = take(b, 16);
	not_len = take(b, 16);
	if (len != (not_len ^ 0xffff))
		return IS_BAD;
	at = bit_of(b) / 8;
	if (at > c->len || len > c->len - at)
		return WANTS_INPUT;
	if (c->out > room_end(c) ||
	    (size_t)len << c->is_wide > (size_t)(room_end(c) - c->out))
		return WANTS_ROOM;
	if (c->is_wide) {
		for (size_t i = 0; i < len; i++) {
			uint16_t byte = c->in[at + i];

			memcpy(c->out + 2 * i, &byte, 2);
		}
	} else {
		memcpy(c->out, c->in + at, len);
	}
	c->out += (size_t)len << c->is_wide;
	return seek(c, b, (at + len) * 8) ? BLOCK_OVER : WANTS_INPUT;
}

/* From its header to its end. */
static enum outcome run_one(struct wf_chunk *c, struct bits *b, bool *last)
{
	struct wf_table_pair pair = wf_deflate_fixed;
	enum outcome outcome = BLOCK_OVER;
	unsigned int type;

	if (!ensure(c, b))
		return WANTS_INPUT;
	refill(b);
	*last = take(b, 1);
	type = take(b, 2);
	if (type == 3)
		return IS_BAD;
	if (!type)
		outcome = run_stored(c, b);
	else if (type == 2)
		outcome = read_tables(c, b, &pair);
	if (type && outcome == BLOCK_OVER)
		outcome = run_codes(c, b, &pair);
	/* The bits from behind the end were zeros. */
	return outcome == BLOCK_OVER && bit_of(b) > end_of(b) ? WANTS_INPUT :
								outcome;
}

int wf_deflate_chunk_init(struct wf_chunk *chunk)
{
	chunk->ends = NULL;
	chunk->ends_room = 0;
	chunk->tables = malloc(sizeof(*chunk->tables));
	return chunk->tables ? 0 : -ENOMEM;
}

void wf_deflate_chunk_exit(struct wf_chunk *chunk)
{
	free(chunk->ends);
	free(chunk->tables);
}

static void go_narrow(struct wf_chunk *c, uint8_t *at, size_t have)
{
	c->is_wide = false;
	c->low = at + WINDOW - have;
	c->narrow_at = at + WINDOW;
	c->out = c->narrow_at;
}

void wf_deflate_chunk_begin(struct wf_chunk *c, struct wf_border begin,
			    const uint8_t *window, size_t have)
{
	c->begin = begin;
	c->border = begin;
	c->wide = 0;
	c->narrow = 0;
	c->ends_count = 0;
	c->narrow_at = NULL;
	if (begin.member)
		have = 0;
	if (begin.member || window) {
		if (have)
			memcpy(c->room + WINDOW - have, window, have);
		go_narrow(c, c->room, have);
		return;
	}
	for (unsigned int i = 0; i < WINDOW; i++) {
		uint16_t marker = (uint16_t)(MARKER + i);

		memcpy(c->room + 2 * i, &marker, 2);
	}
	c->is_wide = true;
	c->low = c->room;
	c->out = c->room + 2 * WINDOW;
}

/* Whether any of @n elements is a marker. */
static bool has_marker(const uint16_t *v, size_t n)
{
	unsigned int any = 0;

	for (size_t i = 0; i < n; i += 64) {
		for (size_t j = 0; j < 64; j++)
			any |= v[i + j];
		if (any & MARKER)
			return true;
	}
	return false;
}

/* Continues in bytes behind the output so far. @window: the data before the
 * chunk. */
static bool become_narrow(struct wf_chunk *c, const uint8_t *window)
{
	const uint16_t *last = (const uint16_t *)(const void *)c->out - WINDOW;
	uint8_t *at = c->out;

	if ((size_t)(c->room + c->size - at) < WINDOW + OUT_SLACK(1))
		return false;
	for (unsigned int i = 0; i < WINDOW; i++)
		at[i] = last[i] & MARKER ? window[last[i] & (MARKER - 1)] :
					   (uint8_t)last[i];
	c->wide = (size_t)(c->out - c->room) / 2 - WINDOW;
	go_narrow(c, at, WINDOW);
	return true;
}

/* Elements since the window: how far output has got. */
static void count_output(struct wf_chunk *c)
{
	if (c->is_wide)
		c->wide = (size_t)(c->out - c->room) / 2 - WINDOW;
	else
		c->narrow = (size_t)(c->out - c->narrow_at);
}

bool wf_deflate_chunk_end(struct wf_chunk *c, const uint8_t *trailer)
{
	struct wf_chunk_end *end;

	if (c->ends_count == c->ends_room) {
		size_t room = c->ends_room ? c->ends_room * 2 : 16;
		struct wf_chunk_end *ends =
			realloc(c->ends, room * sizeof(*ends));

		if (!ends)
			return false;
		c->ends = ends;
		c->ends_room = room;
	}
	end = &c->ends[c->ends_count++];
	end->at = wf_chunk_total(c);
	memcpy(end->trailer, trailer, c->trailer);
	return true;
}

/* Behind the last block of a member. */
static bool end_member(struct wf_chunk *c, struct bits *b)
{
	uint64_t at = (bit_of(b) + 7) / 8;

	if (at > c->len || c->trailer > c->len - at)
		return false;
	count_output(c);
	if (!wf_deflate_chunk_end(c, c->in + at))
		return false;
	c->border = (struct wf_border){ (at + c->trailer) * 8, true };
	/* Nothing may look back from here; there may be no window to keep. */
	if (c->is_wide)
		go_narrow(c, c->out, 0);
	else
		c->low = c->out;
	return true;
}

/* The length of a header; 0 for what someone else must look at. */
static size_t header_size(const uint8_t *in, size_t len)
{
	struct wf_inflate header;
	size_t used;

	wf_deflate_inflate_init(&header, NULL, (struct wd_comp_mem){ 0 },
				WF_INFLATE_GZIP | WF_INFLATE_CHECK, 15);
	return wf_deflate_head_read(&header, in, len, &used) == 1 ? used : 0;
}

/* Whether the search for blocks would find this border. */
static bool can_be_found(const struct wf_chunk *c, struct bits *b)
{
	refill(b);
	return c->exact || (b->buf & 7) == 4;
}

static enum wf_chunk_why why_of(const struct wf_chunk *c, enum outcome outcome)
{
	if (outcome == WANTS_ROOM)
		return WF_CHUNK_FULL;
	if (outcome == WANTS_INPUT)
		return WF_CHUNK_SHORT;
	return wf_chunk_total(c) || c->border.bit != c->begin.bit ?
		       WF_CHUNK_BAD :
		       WF_CHUNK_BEGIN;
}

/* Between two blocks: whether to stop, and whether bytes will do. */
static bool is_over(struct wf_chunk *c, struct bits *b, enum wf_chunk_why *why)
{
	const uint8_t *window = NULL;
	enum wf_chunk_answer answer;

	if (c->border.bit >= c->stop && c->border.bit != c->begin.bit &&
	    can_be_found(c, b)) {
		*why = WF_CHUNK_STOP;
		return true;
	}
	if (!c->is_wide)
		return false;
	answer = c->ask ? c->ask(c->arg, &window) : WF_CHUNK_GO_ON;
	if (answer == WF_CHUNK_LEAVE) {
		*why = WF_CHUNK_AWAY;
		return true;
	}
	if (answer == WF_CHUNK_HAVE ||
	    (c->wide >= WINDOW &&
	     !has_marker((const uint16_t *)(const void *)c->out - WINDOW,
			 WINDOW)))
		become_narrow(c, window);
	return false;
}

/* The header of the member at c->border. False: not for us. */
static bool begin_member(struct wf_chunk *c, struct bits *b)
{
	uint64_t at = c->border.bit / 8;
	size_t head = 0;

	if (!c->members || at >= c->len)
		return false;
	head = header_size(c->in + at, c->len - at);
	return head && seek(c, b, (at + head) * 8);
}

enum wf_chunk_why wf_deflate_chunk_run(struct wf_chunk *c)
{
	enum wf_chunk_why why = WF_CHUNK_STOP;
	struct bits b;

	if (!c->begin.member && !seek(c, &b, c->begin.bit))
		return WF_CHUNK_BEGIN;
	for (;;) {
		struct wf_border border = c->border;
		enum outcome outcome;
		bool last = false;

		if (!border.member && is_over(c, &b, &why))
			return why;
		if (border.member && border.bit >= c->stop &&
		    border.bit != c->begin.bit)
			return WF_CHUNK_STOP;
		if (border.member && !begin_member(c, &b))
			return WF_CHUNK_AFTER;
		/* The next border is behind a block: none between a header and
		 * its first block. */
		outcome = run_one(c, &b, &last);
		if (outcome != BLOCK_OVER)
			return why_of(c, outcome);
		if (last) {
			if (!end_member(c, &b))
				return WF_CHUNK_SHORT;
			continue;
		}
		count_output(c);
		c->border = (struct wf_border){ bit_of(&b), false };
	}
}

bool wf_deflate_chunk_window(const struct wf_chunk *c,
			     uint8_t window[WF_CHUNK_WINDOW], size_t *have)
{
	uint8_t fresh[WF_CHUNK_WINDOW];
	size_t total = wf_chunk_total(c);
	size_t narrow = c->narrow < WINDOW ? c->narrow : WINDOW;
	size_t wide = c->wide < WINDOW - narrow ? c->wide : WINDOW - narrow;
	size_t old = WINDOW - narrow - wide;
	const uint16_t *v = (const uint16_t *)(const void *)c->room + WINDOW +
			    c->wide - wide;

	memcpy(fresh, window + WINDOW - old, old);
	for (size_t i = 0; i < wide; i++) {
		if (!(v[i] & MARKER))
			fresh[old + i] = (uint8_t)v[i];
		else
			fresh[old + i] = window[v[i] & (MARKER - 1)];
	}
	if (narrow)
		memcpy(fresh + WINDOW - narrow,
		       c->narrow_at + c->narrow - narrow, narrow);
	/* Where less than a window is before the chunk, every marker is to be
	 * looked at. That is at the beginning of a member only. */
	if (*have < WINDOW) {
		const uint16_t *all =
			(const uint16_t *)(const void *)c->room + WINDOW;

		for (size_t i = 0; i < c->wide; i++) {
			if (all[i] & MARKER &&
			    (all[i] & (MARKER - 1)) < WINDOW - *have)
				return false;
		}
	}
	memcpy(window, fresh, WINDOW);
	if (c->ends_count)
		*have = total - c->ends[c->ends_count - 1].at;
	else
		*have += total;
	if (*have > WINDOW)
		*have = WINDOW;
	return true;
}

void wf_deflate_chunk_table(uint8_t *table,
			    const uint8_t window[WF_CHUNK_WINDOW])
{
	for (unsigned int i = 0; i < 256; i++)
		table[i] = (uint8_t)i;
	memcpy(table + MARKER, window, WINDOW);
}

/* Eight elements, as they are to lie in memory. One store in place of eight:
 * stores are what limits this. */
static inline uint64_t resolve_eight(const uint16_t *v, const uint8_t *table)
{
	uint64_t low = table[v[0]] | (uint32_t)table[v[1]] << 8 |
		       (uint32_t)table[v[2]] << 16 |
		       (uint32_t)table[v[3]] << 24;
	uint64_t high = table[v[4]] | (uint32_t)table[v[5]] << 8 |
			(uint32_t)table[v[6]] << 16 |
			(uint32_t)table[v[7]] << 24;

	return htole64(low | high << 32);
}

const uint8_t *wf_deflate_chunk_resolve(struct wf_chunk *c, size_t from,
					size_t count, const uint8_t *table)
{
	const uint16_t *v =
		(const uint16_t *)(const void *)c->room + WINDOW + from;
	uint8_t *start = c->room + 2 * WINDOW + from, *out = start;

	while (count >= 32) {
		unsigned int any = 0;

		for (int i = 0; i < 32; i++)
			any |= v[i];
		/* Each part is read before bytes are written over it. */
		if (any & MARKER) {
			for (int i = 0; i < 32; i += 8) {
				uint64_t bytes = resolve_eight(v + i, table);

				memcpy(out + i, &bytes, 8);
			}
		} else {
			uint16_t some[32];

			memcpy(some, v, sizeof(some));
			for (int i = 0; i < 32; i++)
				out[i] = (uint8_t)some[i];
		}
		v += 32;
		out += 32;
		count -= 32;
	}
	while (count--)
		*out++ = table[*v++];
	return start;
}
