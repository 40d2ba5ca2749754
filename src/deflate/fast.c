/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole symbols, fast. There are two loops. The wide one runs while there is
 * plenty of input and room: it looks at no end within a symbol and writes more
 * than it should behind matches. The loop overwrites bytes behind the output
 * and puts them back afterwards: it goes in stretches, and keeps a copy of
 * those bytes. The exact loop looks at both ends within each symbol, and stops
 * before one that is not all there; it writes no byte too many near the end of
 * the room.
 */
#include "deflate/cursor.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define WIDE_IN 24   /* bytes that a turn of the wide loop may read */
#define RICH_IN 16   /* ... of the exact loop, twice what a refill reads */
#define WIDE_OVER 32 /* bytes that it may write behind its output */
/* Two literals and the longest match. */
#define WIDE_OUT (2 + 258 + WIDE_OVER)
#define DIST_BITS_MOST (WF_TABLE_DIST_BITS + 13) /* without subtable */
#define NEAR (WIDE_OUT + 28)   /* output that the exact loop keeps a copy of */
#define LITTLE 128	       /* room that is not worth a copy */
#define RATIO 8		       /* of output to input: more is not expected */
#define STRETCH 3584u	       /* output between two looks at the ends */
#define NINES 2		       /* literals of 9 bits: more will come */
#define CHECK_EVERY (16 << 10) /* output is in the cache until then */

#define MASK(n) (((uint64_t)1 << (n)) - 1)

struct tables {
	const uint32_t *lit;
	const uint32_t *dist;
	uint64_t lit_mask;
	unsigned int lit_bits;
};

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

static inline void copy8(uint8_t *to, const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, 8);
	memcpy(to, &v, 8);
}

static inline void copy4(uint8_t *to, const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, 4);
	memcpy(to, &v, 4);
}

typedef uint8_t vec16 __attribute__((vector_size(16)));

static inline void copy16(uint8_t *to, const uint8_t *from)
{
	vec16 v;

	memcpy(&v, from, 16);
	memcpy(to, &v, 16);
}

/* A match within this call's output; up to WIDE_OVER bytes too many. */
static inline __attribute__((always_inline)) void
wide_copy(uint8_t *to, const uint8_t *from, unsigned int distance, uint8_t *end)
{
	if (__builtin_expect(distance >= 16, 1)) {
		copy16(to, from);
		copy16(to + 16, from + 16);
		to += 32;
		from += 32;
		while (__builtin_expect(to < end, 0)) {
			copy16(to, from);
			copy16(to + 16, from + 16);
			to += 32;
			from += 32;
		}
	} else if (distance == 1) {
		vec16 v = (vec16){ 0 } + *from;

		do {
			memcpy(to, &v, 16);
			to += 16;
		} while (to < end);
	} else if (distance >= 8) {
		do {
			copy8(to, from);
			copy8(to + 8, from + 8);
			to += 16;
			from += 16;
		} while (to < end);
	} else {
		/* Each copy makes @distance good bytes. */
		do {
			copy8(to, from);
			to += distance;
			from += distance;
		} while (to < end);
	}
}

/* Where a match is that lies in the window in one piece, else NULL. The window
 * must have it. */
static inline const uint8_t *in_window(const struct wf_inflate *s,
				       const struct wf_cursor *c,
				       unsigned int distance, unsigned int len)
{
	unsigned int back = distance - (unsigned int)(c->out - c->begin);
	unsigned int at = s->wnext - back;

	if (back > s->wnext)
		at += s->wsize;
	return len <= back && at + len <= s->wsize ? s->window + at : NULL;
}

/* A match that begins in the window: false if there is no such data. */
static inline bool window_copy(const struct wf_inflate *s, struct wf_cursor *c,
			       unsigned int distance, unsigned int len)
{
	const uint8_t *from;
	uint8_t *to = c->out, *end = to + len;

	if (!wf_deflate_window_has(s, c, distance))
		return false;
	from = in_window(s, c, distance, len);
	if (__builtin_expect(!from, 0)) {
		wf_deflate_window_match(s, c, distance, len);
		return true;
	}
	do {
		copy16(to, from);
		copy16(to + 16, from + 16);
		to += 32;
		from += 32;
	} while (__builtin_expect(to < end, 0));
	c->out = end;
	return true;
}

/* An entry that is no literal and no length, nor leads to one. */
static void end_or_bad(struct wf_inflate *s, uint32_t entry)
{
	if (entry & WF_TABLE_BAD) {
		wf_inflate_fail(s, "invalid literal/length code");
		return;
	}
	s->mode = WF_INFLATE_TYPE;
	s->back = -1;
}

/* Input as both loops hold it. Bits above the count are input as well, or 0. */
struct reader {
	const uint8_t *in;
	uint64_t hold;
	/* In the wide loop only the low byte counts: whole entries are
	 * subtracted from it. */
	uint32_t bits;
	uint64_t before; /* hold before the last entry was taken */
};

#define INLINE static inline __attribute__((always_inline))

/* To 56 bits at least; 8 bytes of input must be there. */
INLINE void refill(struct reader *r)
{
	r->hold |= load64(r->in) << (r->bits & 63);
	r->in += 7 - (r->bits >> 3 & 7);
	r->bits |= 56;
}

INLINE void take(struct reader *r, uint32_t entry)
{
	r->before = r->hold;
	r->hold >>= entry & 63;
	r->bits -= entry;
}

/* The length or distance of the entry taken last. */
INLINE uint32_t value(const struct reader *r, uint32_t entry)
{
	return (entry >> 16) +
	       (uint32_t)((r->before & ~(~(uint64_t)0 << (entry & 63))) >>
			  wf_table_code(entry));
}

/* Puts whole bytes back: there are more of them than came in with c. */
INLINE void leave(struct wf_cursor *c, const struct reader *r, uint8_t *out)
{
	unsigned int bits = r->bits & 0xff;

	c->in = r->in - (bits >> 3);
	c->bits = bits & 7;
	c->hold = r->hold & MASK(c->bits);
	c->out = out;
}

/* A distance and its copy; false if it is bad. */
INLINE bool wide_match(struct wf_inflate *s, struct wf_cursor *c,
		       const struct tables *t, struct reader *r, uint8_t **out,
		       uint32_t len, uint32_t *next)
{
	/* 14 bits at least are left after two literals and the longest length:
	 * enough for an index. */
	uint32_t e = t->dist[r->hold & MASK(WF_TABLE_DIST_BITS)], distance;
	uint8_t *to = *out;

	if (__builtin_expect(e & WF_TABLE_OTHER, 0)) {
		refill(r);
		take(r, e);
		if (e & WF_TABLE_SUB) {
			e = t->dist[wf_table_sub(e, r->hold)];
			take(r, e);
		}
		if (e & WF_TABLE_OTHER) {
			wf_inflate_fail(s, "invalid distance code");
			return false;
		}
	} else {
		/* The next step needs the distance and an index; a refill
		 * brings a bit more than it counts. */
		if (__builtin_expect((uint8_t)r->bits <
					     DIST_BITS_MOST +
						     WF_TABLE_LIT_BITS - 1,
				     0))
			refill(r);
		take(r, e);
	}
	distance = value(r, e);
	*next = t->lit[r->hold & t->lit_mask];
	refill(r);
	if (__builtin_expect(distance > (size_t)(to - c->begin), 0)) {
		c->out = to;
		if (!window_copy(s, c, distance, len)) {
			wf_inflate_fail(s, "invalid distance too far back");
			return false;
		}
		*out = c->out;
		return true;
	}
	*out = to + len;
	/* For the next stretch, see run_wide(). */
	__builtin_prefetch(to + STRETCH + WIDE_OUT, 1);
	wide_copy(to, to - distance, distance, to + len);
	return true;
}

/* Turns while input and output are before their limits. */
INLINE void wide_body(struct wf_inflate *s, struct wf_cursor *c,
		      const struct tables *tables, const uint8_t *in_limit,
		      const uint8_t *out_limit)
{
	const struct tables t = *tables;
	struct reader r = { c->in, c->hold, c->bits, 0 };
	uint8_t *out = c->out;
	uint32_t e;

	refill(&r);
	e = t.lit[r.hold & t.lit_mask];
	do {
		take(&r, e);
		if (e & WF_TABLE_LITERAL) {
			*out++ = (uint8_t)(e >> 16);
			e = t.lit[r.hold & t.lit_mask];
			take(&r, e);
			if (e & WF_TABLE_LITERAL) {
				*out++ = (uint8_t)(e >> 16);
				e = t.lit[r.hold & t.lit_mask];
				take(&r, e);
				if (e & WF_TABLE_LITERAL) {
					*out++ = (uint8_t)(e >> 16);
					e = t.lit[r.hold & t.lit_mask];
					refill(&r);
					continue;
				}
			}
		}
		if (__builtin_expect(e & WF_TABLE_OTHER, 0)) {
			if (e & WF_TABLE_SUB) {
				e = t.lit[wf_table_sub(e, r.hold)];
				take(&r, e);
				if (e & WF_TABLE_LITERAL) {
					*out++ = (uint8_t)(e >> 16);
					e = t.lit[r.hold & t.lit_mask];
					refill(&r);
					continue;
				}
			}
			if (e & WF_TABLE_OTHER) {
				end_or_bad(s, e);
				break;
			}
		}
		if (!wide_match(s, c, &t, &r, &out, value(&r, e), &e))
			break;
	} while (r.in < in_limit && out < out_limit);
	leave(c, &r, out);
}

/* A match within this call's output, and no byte too many: for the last bytes
 * of the room. Not inlined: it is rare, and loops that gcc unrolls here slow
 * down the one that calls them. */
static __attribute__((noinline)) void
exact_copy(uint8_t *to, unsigned int distance, unsigned int len)
{
	const uint8_t *from = to - distance;
	uint8_t *end = to + len;

	/* Without a loop: two words that overlap. */
	if (len <= 16 && len >= 4 && distance >= len) {
		if (len >= 8) {
			copy8(to, from);
			copy8(end - 8, from + len - 8);
		} else {
			copy4(to, from);
			copy4(end - 4, from + len - 4);
		}
		return;
	}
	if (distance >= 8) {
		while (end - to >= 8) {
			copy8(to, from);
			to += 8;
			from += 8;
		}
	}
	while (to < end)
		*to++ = *from++;
}

/* A match that is longer than the room: copies as much as fits. False if there
 * is no such data. The rest of the state is then as zlib has it. */
static __attribute__((noinline)) bool cut_match(struct wf_inflate *s,
						struct wf_cursor *c,
						unsigned int distance,
						unsigned int len, int bits)
{
	unsigned int room = (unsigned int)(c->out_end - c->out);

	if (room) {
		if (!wf_deflate_window_has(s, c, distance))
			return false;
		wf_deflate_window_match(s, c, distance, room);
	}
	s->mode = WF_INFLATE_MATCH;
	s->was = len;
	s->length = len - room;
	s->distance = distance;
	s->back = bits;
	return true;
}

/* A literal without room. */
static inline void cut_literal(struct wf_inflate *s, uint32_t e, int bits)
{
	s->mode = WF_INFLATE_LITERAL;
	s->length = wf_table_base(e);
	s->back = bits;
}

/* A distance and its copy; false if it is bad, or not all there: then nothing
 * is taken; or if it is cut. @used: bits of the length; @safe: copies that end
 * before may go on behind their end. */
INLINE bool exact_match(struct wf_inflate *s, struct wf_cursor *c,
			const struct tables *t, struct reader *r, uint8_t **out,
			unsigned int len, unsigned int used,
			const uint8_t *safe)
{
	uint64_t rest = r->hold >> used;
	uint32_t e = t->dist[rest & MASK(WF_TABLE_DIST_BITS)];
	unsigned int distance;
	uint8_t *to = *out;
	bool whole = true;

	if (__builtin_expect(e & WF_TABLE_SUB, 0)) {
		rest >>= WF_TABLE_DIST_BITS;
		used += WF_TABLE_DIST_BITS;
		e = t->dist[wf_table_sub(e, rest)];
	}
	used += wf_table_drop(e);
	if (used > r->bits || e & WF_TABLE_OTHER)
		return false;
	distance = wf_table_value(e, rest);
	if (__builtin_expect(len > (size_t)(c->out_end - to), 0)) {
		c->out = to;
		if (!cut_match(s, c, distance, len, (int)used))
			return false;
		*out = c->out;
		whole = false;
	} else if (distance <= (size_t)(to - c->begin)) {
		*out = to + len;
		if (__builtin_expect(*out <= safe, 1))
			wide_copy(to, to - distance, distance, *out);
		else
			exact_copy(to, distance, len);
	} else {
		c->out = to;
		if (__builtin_expect(to + len <= safe, 1)) {
			if (!window_copy(s, c, distance, len))
				return false;
		} else {
			if (!wf_deflate_window_has(s, c, distance))
				return false;
			wf_deflate_window_match(s, c, distance, len);
		}
		*out = c->out;
	}
	r->hold >>= used;
	r->bits -= used;
	return whole;
}

/* Where less than 8 bytes of input are left: to 56 bits, or to its end.
 * @eight: so many bytes before the end can be read. */
INLINE void refill_end(struct reader *r, const uint8_t *in_end, bool eight)
{
	size_t left = (size_t)(in_end - r->in), n = (63 - r->bits) >> 3;

	if (__builtin_expect(eight, 1)) {
		n = n < left ? n : left;
		r->hold |= load64(in_end - 8) >> 8 * (7 - left) >> 8 << r->bits;
		r->in += n;
		r->bits += 8 * (uint32_t)n;
		return;
	}
	while (r->bits < 56 && r->in < in_end) {
		r->hold |= (uint64_t)*r->in++ << r->bits;
		r->bits += 8;
	}
}

/* One literal of the three below. */
INLINE bool rich_literal(const struct tables *t, struct reader *r,
			 uint8_t **out, uint32_t *e)
{
	if (!(*e & WF_TABLE_LITERAL))
		return false;
	r->hold >>= *e & 63;
	r->bits -= *e & 0xff;
	*(*out)++ = (uint8_t)(*e >> 16);
	*e = t->lit[r->hold & t->lit_mask];
	return true;
}

/* In a fixed block a literal has 8 bits, or 9 from 144 on. If there are none of
 * 9 bits (text), the processor predicts that the next has 8, and need not wait
 * for its entry to know where the one behind it is. */
INLINE bool eight_literal(const struct tables *t, struct reader *r,
			  uint8_t **out, uint32_t *e)
{
	if ((*e & (WF_TABLE_LITERAL | 0xff)) != (WF_TABLE_LITERAL | 8))
		return false;
	r->hold >>= 8;
	r->bits -= 8;
	*(*out)++ = (uint8_t)(*e >> 16);
	*e = t->lit[r->hold & t->lit_mask];
	return true;
}

/* If both occur, prediction fails: look up what follows 8 bits and what follows
 * 9 bits. */
INLINE bool either_literal(const struct tables *t, struct reader *r,
			   uint8_t **out, uint32_t *e)
{
	uint32_t behind8 = t->lit[r->hold >> 8 & t->lit_mask];
	uint32_t behind9 = t->lit[r->hold >> 9 & t->lit_mask];
	uint32_t is_nine = -(*e & 1);

	if (!(*e & WF_TABLE_LITERAL))
		return false;
	r->hold >>= *e & 63;
	r->bits -= *e & 0xff;
	*(*out)++ = (uint8_t)(*e >> 16);
	*e = behind8 ^ ((behind8 ^ behind9) & is_nine);
	return true;
}

/* Up to three of them; there are 24 bits, and room for them. */
INLINE void fixed_literals(const struct tables *t, struct reader *r,
			   uint8_t **out, uint32_t *e, unsigned int nines)
{
	if (nines < NINES) {
		if (eight_literal(t, r, out, e) && eight_literal(t, r, out, e))
			eight_literal(t, r, out, e);
	} else {
		if (either_literal(t, r, out, e))
			either_literal(t, r, out, e);
	}
}

INLINE void exact_body(struct wf_inflate *s, struct wf_cursor *c,
		       const struct tables *tables, const uint8_t *safe,
		       const bool fixed)
{
	const struct tables t = *tables;
	struct reader r = { c->in, c->hold, c->bits, 0 };
	const uint8_t *in_end = c->in_end;
	uint8_t *out = c->out, *out_end = c->out_end;
	bool eight = in_end - r.in >= 8;
	unsigned int nines = 0;

	for (;;) {
		unsigned int used = 0;
		uint64_t rest;
		uint32_t e;

		if (fixed) {
			if (in_end - r.in >= 8)
				refill(&r);
			else
				refill_end(&r, in_end, eight);
			e = t.lit[r.hold & t.lit_mask];
			/* After them there are bits for a match: 31. */
			if (r.bits >= 24 && out_end - out >= 3)
				fixed_literals(&t, &r, &out, &e, nines);
		} else if (in_end - r.in >= RICH_IN && out_end - out >= 3) {
			/* Three literals without a look at the ends: 33 bits.
			 */
			refill(&r);
			e = t.lit[r.hold & t.lit_mask];
			if (rich_literal(&t, &r, &out, &e) &&
			    rich_literal(&t, &r, &out, &e) &&
			    rich_literal(&t, &r, &out, &e))
				continue;
			refill(&r);
		} else {
			if (in_end - r.in >= 8)
				refill(&r);
			else
				refill_end(&r, in_end, eight);
			e = t.lit[r.hold & t.lit_mask];
		}
		if (e & WF_TABLE_LITERAL) {
			if (__builtin_expect((e & 0xff) > r.bits, 0))
				break;
			r.hold >>= e & 63;
			r.bits -= e & 0xff;
			if (__builtin_expect(out == out_end, 0)) {
				cut_literal(s, e, e & 0xff);
				break;
			}
			*out++ = (uint8_t)(e >> 16);
			nines += e & 1;
			continue;
		}
		rest = r.hold;
		if (!fixed && __builtin_expect((e & WF_TABLE_SUB) != 0, 0)) {
			used = t.lit_bits;
			rest >>= used;
			e = t.lit[wf_table_sub(e, rest)];
		}
		used += wf_table_drop(e);
		if (__builtin_expect(used > r.bits, 0))
			break;
		if (e & WF_TABLE_LITERAL) {
			r.hold >>= used;
			r.bits -= used;
			if (out == out_end) {
				cut_literal(s, e, (int)used);
				break;
			}
			*out++ = (uint8_t)(e >> 16);
			continue;
		}
		if (e & WF_TABLE_OTHER) {
			/* A bad symbol is left to symbol.c, which counts its
			 * parts. */
			if (e & WF_TABLE_BAD)
				break;
			r.hold >>= used;
			r.bits -= used;
			end_or_bad(s, e);
			break;
		}
		if (!exact_match(s, c, &t, &r, &out, wf_table_value(e, rest),
				 used, safe))
			break;
	}
	leave(c, &r, out);
}

/* Each loop twice: with BMI2 a shift by a variable count is one instruction
 * instead of three. */
struct loops {
	void (*wide)(struct wf_inflate *s, struct wf_cursor *c,
		     const struct tables *t, const uint8_t *in_limit,
		     const uint8_t *out_limit);
	void (*exact)(struct wf_inflate *s, struct wf_cursor *c,
		      const struct tables *t, const uint8_t *safe);
	void (*fixed)(struct wf_inflate *s, struct wf_cursor *c,
		      const struct tables *t, const uint8_t *safe);
};

static void wide_plain(struct wf_inflate *s, struct wf_cursor *c,
		       const struct tables *t, const uint8_t *in_limit,
		       const uint8_t *out_limit)
{
	wide_body(s, c, t, in_limit, out_limit);
}

static void exact_plain(struct wf_inflate *s, struct wf_cursor *c,
			const struct tables *t, const uint8_t *safe)
{
	exact_body(s, c, t, safe, false);
}

static void fixed_plain(struct wf_inflate *s, struct wf_cursor *c,
			const struct tables *t, const uint8_t *safe)
{
	exact_body(s, c, t, safe, true);
}

static const struct loops plain = { wide_plain, exact_plain, fixed_plain };

#if defined(__x86_64__)
/* Writes the bytes that are there. In memory that was never written to, a
 * read first would make the kernel map a page of zeros, and the write
 * another page. */
static inline void touch(uint8_t *p)
{
	__asm__ volatile("orb $0, %0" : "+m"(*p));
}

__attribute__((target("bmi,bmi2"))) static void
wide_bmi2(struct wf_inflate *s, struct wf_cursor *c, const struct tables *t,
	  const uint8_t *in_limit, const uint8_t *out_limit)
{
	wide_body(s, c, t, in_limit, out_limit);
}

__attribute__((target("bmi,bmi2"))) static void
exact_bmi2(struct wf_inflate *s, struct wf_cursor *c, const struct tables *t,
	   const uint8_t *safe)
{
	exact_body(s, c, t, safe, false);
}

__attribute__((target("bmi,bmi2"))) static void
fixed_bmi2(struct wf_inflate *s, struct wf_cursor *c, const struct tables *t,
	   const uint8_t *safe)
{
	exact_body(s, c, t, safe, true);
}

static const struct loops bmi2 = { wide_bmi2, exact_bmi2, fixed_bmi2 };

static inline const struct loops *pick(void)
{
	return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi") ?
		       &bmi2 :
		       &plain;
}
#else
static inline void touch(uint8_t *p)
{
	(void)p;
}

static inline const struct loops *pick(void)
{
	return &plain;
}
#endif

static_assert(STRETCH + WIDE_OUT <= 4096, "a stretch touches two pages");

/*
 * Stretch by stretch, until the input or the room is too small. A stretch is
 * copied before it is written to: by then its lines are in the cache, because
 * the loop has asked for them one stretch ahead.
 */
static void run_wide(struct wf_inflate *s, struct wf_cursor *c,
		     const struct tables *t, const struct loops *loops)
{
	uint8_t kept[STRETCH + WIDE_OUT];
	const uint8_t *in_limit = c->in_end - WIDE_IN;
	uint8_t *out_limit = c->out_end - WIDE_OUT;

	while (s->mode == WF_INFLATE_CODE && c->in < in_limit &&
	       c->out < out_limit) {
		size_t most = (size_t)(c->in_end - c->in) * RATIO;
		uint8_t *begin = c->out, *limit = out_limit;

		most = most < STRETCH ? most : STRETCH;
		if ((size_t)(limit - begin) > most)
			limit = begin + most;
		/* Two pages at most: a stretch is smaller than one. */
		touch(begin);
		touch(limit + WIDE_OUT - 1);
		memcpy(kept, begin, (size_t)(limit - begin) + WIDE_OUT);
		loops->wide(s, c, t, in_limit, limit);
		memcpy(c->out, kept + (c->out - begin), WIDE_OVER);
		if (c->out - c->checked >= CHECK_EVERY)
			wf_deflate_inflate_check(s, c);
	}
}

/* The end of the room, or of the input. */
static void run_exact(struct wf_inflate *s, struct wf_cursor *c,
		      const struct tables *t, const struct loops *loops)
{
	uint8_t kept[NEAR];
	uint8_t *begin = c->out, *end = c->out_end;
	size_t len;

	if (c->in_place)
		end = begin;
	else if (end - begin > NEAR)
		end = begin + NEAR;
	len = (size_t)(end - begin);
	/* The copy costs more than it saves. */
	if (len <= LITTLE) {
		(s->fixed ? loops->fixed : loops->exact)(s, c, t, begin);
		return;
	}
	memcpy(kept, begin, len);
	(s->fixed ? loops->fixed : loops->exact)(s, c, t, end - WIDE_OVER);
	if (c->out < end) {
		size_t at = (size_t)(c->out - begin), over = len - at;

		memcpy(c->out, kept + at, over < WIDE_OVER ? over : WIDE_OVER);
	}
}

void wf_deflate_fast_run(struct wf_inflate *s, struct wf_cursor *c)
{
	const struct wf_table_pair own = { s->codes->lit, s->codes->dist,
					   s->lit_bits };
	const struct wf_table_pair *p = s->fixed ? &wf_deflate_fixed : &own;
	struct tables t = { p->lit, p->dist, MASK(p->lit_bits), p->lit_bits };
	const struct loops *loops = pick();

	if (c->in_end - c->in > WIDE_IN && c->out_end - c->out > WIDE_OUT &&
	    !c->in_place)
		run_wide(s, c, &t, loops);
	if (s->mode == WF_INFLATE_CODE)
		run_exact(s, c, &t, loops);
}
