/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole symbols, fast. There are two loops. The wide one runs while there is
 * plenty of input and room: it looks at no end within a symbol and writes more
 * than it should behind matches. What it overwrites behind the output is put
 * back afterwards: it goes in stretches, and keeps a copy of what was there.
 * The exact loop writes what it must and stops before a symbol that is not all
 * there; it is for the ends of input and room.
 */
#include "deflate/cursor.h"

#include <endian.h>
#include <string.h>

#define WIDE_IN 24   /* bytes that a turn of the wide loop may read */
#define WIDE_OVER 32 /* bytes that it may write behind its output */
/* Two literals and the longest match. */
#define WIDE_OUT (2 + 258 + WIDE_OVER)
#define STRETCH 1024u	       /* output between two looks at the ends */
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

/* A match that begins in the window: false if nothing is there. */
static bool window_copy(const struct wf_inflate *s, struct wf_cursor *c,
			unsigned int distance, unsigned int len)
{
	unsigned int back = distance - (unsigned int)(c->out - c->begin);
	unsigned int at;

	if (back > s->whave || distance > c->reach)
		return false;
	at = s->wnext - back;
	if (back > s->wnext)
		at += s->wsize;
	if (len <= back && at + len <= s->wsize) {
		const uint8_t *from = s->window + at;
		uint8_t *to = c->out, *end = to + len;

		do {
			copy16(to, from);
			to += 16;
			from += 16;
		} while (to < end);
		c->out = end;
		return true;
	}
	wf_deflate_window_match(s, c, distance, len);
	return true;
}

/* Turns while input and output are before their limits. */
static inline __attribute__((always_inline)) void
wide_body(struct wf_inflate *s, struct wf_cursor *c, const struct tables *t,
	  const uint8_t *in_limit, const uint8_t *out_limit)
{
	const uint32_t *lit = t->lit, *dist = t->dist;
	const uint64_t lit_mask = t->lit_mask;
	const uint8_t *in = c->in;
	uint8_t *out = c->out;
	uint64_t hold = c->hold, before;
	/* Only its low byte counts: whole entries are subtracted from it. */
	uint32_t bits = c->bits, e;

#define REFILL()                                                               \
	do {                                                                   \
		hold |= load64(in) << (uint8_t)bits;                           \
		in += 7 - (bits >> 3 & 7);                                     \
		bits |= 56;                                                    \
	} while (0)
#define TAKE(entry)                                                            \
	do {                                                                   \
		before = hold;                                                 \
		hold >>= (uint8_t)(entry);                                     \
		bits -= (entry);                                               \
	} while (0)
#define VALUE(entry)                                                           \
	(((entry) >> 16) + (uint32_t)((before & MASK((uint8_t)(entry))) >>     \
				      wf_table_code(entry)))

	REFILL();
	e = lit[hold & lit_mask];
	do {
		uint32_t len, distance;
		uint8_t *to;

		TAKE(e);
		if (e & WF_TABLE_LITERAL) {
			*out++ = (uint8_t)(e >> 16);
			e = lit[hold & lit_mask];
			TAKE(e);
			if (e & WF_TABLE_LITERAL) {
				*out++ = (uint8_t)(e >> 16);
				e = lit[hold & lit_mask];
				TAKE(e);
				if (e & WF_TABLE_LITERAL) {
					*out++ = (uint8_t)(e >> 16);
					e = lit[hold & lit_mask];
					REFILL();
					continue;
				}
			}
		}
		if (__builtin_expect(e & WF_TABLE_OTHER, 0)) {
			if (e & WF_TABLE_SUB) {
				e = lit[wf_table_sub(e, hold)];
				TAKE(e);
				if (e & WF_TABLE_LITERAL) {
					*out++ = (uint8_t)(e >> 16);
					e = lit[hold & lit_mask];
					REFILL();
					continue;
				}
			}
			if (__builtin_expect(e & WF_TABLE_OTHER, 0)) {
				if (e & WF_TABLE_BAD) {
					wf_inflate_fail(
						s,
						"invalid literal/length code");
				} else {
					s->mode = WF_INFLATE_TYPE;
					s->back = -1;
				}
				break;
			}
		}
		len = VALUE(e);
		/* 14 bits at least are left after two literals and the longest
		 * length: enough for an index. */
		e = dist[hold & MASK(WF_TABLE_DIST_BITS)];
		if (__builtin_expect((uint8_t)bits < 28 + WF_TABLE_LIT_BITS, 0))
			REFILL();
		TAKE(e);
		if (__builtin_expect(e & WF_TABLE_OTHER, 0)) {
			if (e & WF_TABLE_SUB) {
				e = dist[wf_table_sub(e, hold)];
				TAKE(e);
			}
			if (e & WF_TABLE_OTHER) {
				wf_inflate_fail(s, "invalid distance code");
				break;
			}
		}
		distance = VALUE(e);
		e = lit[hold & lit_mask];
		REFILL();
		if (__builtin_expect(distance > (size_t)(out - c->begin), 0)) {
			c->out = out;
			if (!window_copy(s, c, distance, len)) {
				wf_inflate_fail(
					s, "invalid distance too far back");
				break;
			}
			out = c->out;
			continue;
		}
		to = out;
		out += len;
		wide_copy(to, to - distance, distance, out);
	} while (in < in_limit && out < out_limit);
#undef REFILL
#undef TAKE
#undef VALUE
	/* Whole bytes go back: there are more of them than came in with c. */
	bits &= 0xff;
	c->in = in - (bits >> 3);
	c->bits = bits & 7;
	c->hold = hold & MASK(c->bits);
	c->out = out;
}

static void wide_plain(struct wf_inflate *s, struct wf_cursor *c,
		       const struct tables *t, const uint8_t *in_limit,
		       const uint8_t *out_limit)
{
	wide_body(s, c, t, in_limit, out_limit);
}

#if defined(__x86_64__)
/* Shifts by a variable count cost one instruction instead of three. */
__attribute__((target("bmi2"))) static void
wide_bmi2(struct wf_inflate *s, struct wf_cursor *c, const struct tables *t,
	  const uint8_t *in_limit, const uint8_t *out_limit)
{
	wide_body(s, c, t, in_limit, out_limit);
}

static inline void wide(struct wf_inflate *s, struct wf_cursor *c,
			const struct tables *t, const uint8_t *in_limit,
			const uint8_t *out_limit)
{
	if (__builtin_cpu_supports("bmi2"))
		wide_bmi2(s, c, t, in_limit, out_limit);
	else
		wide_plain(s, c, t, in_limit, out_limit);
}
#else
static inline void wide(struct wf_inflate *s, struct wf_cursor *c,
			const struct tables *t, const uint8_t *in_limit,
			const uint8_t *out_limit)
{
	wide_plain(s, c, t, in_limit, out_limit);
}
#endif

/* Stretch by stretch, until the input or the room is too small. */
static void run_wide(struct wf_inflate *s, struct wf_cursor *c,
		     const struct tables *t)
{
	uint8_t kept[STRETCH + WIDE_OUT];
	const uint8_t *in_limit = c->in_end - WIDE_IN;
	uint8_t *out_limit = c->out_end - WIDE_OUT;

	while (s->mode == WF_INFLATE_CODE && c->in < in_limit &&
	       c->out < out_limit) {
		uint8_t *begin = c->out, *limit = out_limit;

		if ((size_t)(limit - begin) > STRETCH)
			limit = begin + STRETCH;
		memcpy(kept, begin, (size_t)(limit - begin) + WIDE_OUT);
		wide(s, c, t, in_limit, limit);
		memcpy(c->out, kept + (c->out - begin), WIDE_OVER);
		if (c->out - c->checked >= CHECK_EVERY)
			wf_deflate_inflate_check(s, c);
	}
}

/* Exactly @len bytes. */
static inline void exact_copy(uint8_t *to, unsigned int distance,
			      unsigned int len)
{
	const uint8_t *from = to - distance;
	uint8_t *end = to + len;

	if (distance >= 8 && len >= 8) {
		do {
			copy8(to, from);
			to += 8;
			from += 8;
		} while (end - to >= 8);
		/* The rest with what is right already. */
		copy8(end - 8, end - 8 - distance);
		return;
	}
	do {
		*to++ = *from++;
	} while (to < end);
}

static void run_exact(struct wf_inflate *s, struct wf_cursor *c,
		      const struct tables *t)
{
	const uint8_t *in = c->in, *in_end = c->in_end;
	uint64_t hold = c->hold;
	unsigned int bits = c->bits;

	for (;;) {
		unsigned int used, len, distance;
		uint64_t rest;
		uint32_t e;

		if (bits < 48) {
			if (__builtin_expect(in_end - in >= 8, 1)) {
				hold |= load64(in) << bits;
				in += (63 - bits) >> 3;
				bits |= 56;
			} else {
				hold &= MASK(bits);
				while (bits < 56 && in < in_end) {
					hold |= (uint64_t)*in++ << bits;
					bits += 8;
				}
			}
		}
		e = t->lit[hold & t->lit_mask];
		used = 0;
		rest = hold;
		if (__builtin_expect(e & WF_TABLE_SUB, 0)) {
			used = t->lit_bits;
			rest >>= used;
			e = t->lit[wf_table_sub(e, rest)];
		}
		used += wf_table_drop(e);
		if (used > bits)
			break;
		if (e & WF_TABLE_LITERAL) {
			if (c->out == c->out_end)
				break;
			*c->out++ = (uint8_t)(e >> 16);
			hold >>= used;
			bits -= used;
			continue;
		}
		if (e & WF_TABLE_OTHER) {
			if (e & WF_TABLE_BAD)
				break;
			hold >>= used;
			bits -= used;
			s->mode = WF_INFLATE_TYPE;
			s->back = -1;
			break;
		}
		len = wf_table_value(e, rest);
		rest = hold >> used;
		e = t->dist[rest & MASK(WF_TABLE_DIST_BITS)];
		if (__builtin_expect(e & WF_TABLE_SUB, 0)) {
			rest >>= WF_TABLE_DIST_BITS;
			used += WF_TABLE_DIST_BITS;
			e = t->dist[wf_table_sub(e, rest)];
		}
		used += wf_table_drop(e);
		if (used > bits || e & WF_TABLE_OTHER ||
		    len > (size_t)(c->out_end - c->out))
			break;
		distance = wf_table_value(e, rest);
		if (distance > (size_t)(c->out - c->begin)) {
			if (!wf_deflate_window_has(s, c, distance))
				break;
			wf_deflate_window_match(s, c, distance, len);
		} else {
			exact_copy(c->out, distance, len);
			c->out += len;
		}
		hold >>= used;
		bits -= used;
	}
	c->in = in - (bits >> 3);
	c->bits = bits & 7;
	c->hold = hold & MASK(c->bits);
}

void wf_deflate_fast_run(struct wf_inflate *s, struct wf_cursor *c)
{
	const struct wf_table_pair own = { s->lit, s->dist, s->lit_bits };
	const struct wf_table_pair *p = s->fixed ? &wf_deflate_fixed : &own;
	struct tables t = { p->lit, p->dist, MASK(p->lit_bits), p->lit_bits };

	if (c->in_end - c->in > WIDE_IN && c->out_end - c->out > WIDE_OUT &&
	    !c->in_place)
		run_wide(s, c, &t);
	if (s->mode == WF_INFLATE_CODE)
		run_exact(s, c, &t);
}
