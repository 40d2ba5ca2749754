/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes random deflate streams.
 */
#include "deflate_writer.h"

#include <stdbool.h>
#include <string.h>

#define LITS 288
#define DISTS 32
#define PRES 19

struct writer {
	struct wf_fuzz_program *p;
	uint8_t *to;
	size_t room;
	uint64_t bits; /* written so far */
	size_t made;
	size_t before;
	unsigned int wrong;
};

struct code {
	uint8_t lens[LITS];
	uint16_t codes[LITS]; /* first bit lowest */
	uint16_t used[LITS];
	unsigned int count;
};

static const uint16_t len_base[] = { 3,	  4,   5,   6,	 7,   8,  9,  10,
				     11,  13,  15,  17,	 19,  23, 27, 31,
				     35,  43,  51,  59,	 67,  83, 99, 115,
				     131, 163, 195, 227, 258, 0,  0 };
static const uint8_t len_extra[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
				     1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4,
				     4, 4, 5, 5, 5, 5, 0, 0, 0 };
static const uint8_t order[PRES] = { 16, 17, 18, 0, 8,	7, 9,  6, 10, 5,
				     11, 4,  12, 3, 13, 2, 14, 1, 15 };

unsigned int wf_fuzz_next(struct wf_fuzz_program *p, unsigned int below)
{
	unsigned int value;

	if (p->left >= 2) {
		value = (unsigned int)p->next[0] << 8 | p->next[1];
		p->next += 2;
		p->left -= 2;
		if (below <= 1u << 12)
			return value % below;
	} else {
		value = 0;
	}
	p->more = p->more * 6364136223846793005ull + 1442695040888963407ull;
	return (value ^ (unsigned int)(p->more >> 33)) % below;
}

#define next wf_fuzz_next
#define rarely wf_fuzz_rarely

static bool is_wrong(struct writer *w)
{
	return w->wrong && rarely(w->p, w->wrong);
}

static void put(struct writer *w, unsigned int value, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		size_t at = w->bits >> 3;

		if (at >= w->room)
			return;
		if (!(w->bits & 7))
			w->to[at] = 0;
		w->to[at] |= (uint8_t)((value >> i & 1) << (w->bits & 7));
		w->bits++;
	}
}

static bool is_full(const struct writer *w)
{
	return (w->bits >> 3) + 16 >= w->room;
}

static void make_codes(struct code *c, unsigned int symbols)
{
	unsigned int code = 0;

	c->count = 0;
	for (unsigned int len = 1; len <= 15; len++) {
		code <<= 1;
		for (unsigned int i = 0; i < symbols; i++) {
			unsigned int turned = 0;

			if (c->lens[i] != len)
				continue;
			for (unsigned int b = 0; b < len; b++)
				turned |= (code >> b & 1) << (len - 1 - b);
			c->codes[i] = (uint16_t)turned;
			c->used[c->count++] = (uint16_t)i;
			code++;
		}
	}
}

/* A complete set of @count codes for the symbols that @c marks as used. */
static void make_set(struct writer *w, struct code *c, unsigned int symbols,
		     unsigned int count, unsigned int longest)
{
	unsigned int skew = next(w->p, 4), have = 1;
	uint8_t lens[LITS];

	lens[0] = 0;
	while (have < count) {
		unsigned int i = skew ? have - 1 : next(w->p, have);

		if (skew && rarely(w->p, 1 + skew * 2))
			i = next(w->p, have);
		while (lens[i] >= longest)
			i = (i + 1) % have;
		lens[i]++;
		lens[have++] = lens[i];
	}
	if (count == 1)
		lens[0] = 1;
	memset(c->lens, 0, sizeof(c->lens));
	for (unsigned int i = 0; i < count; i++)
		c->lens[c->used[i]] = lens[i];
	make_codes(c, symbols);
}

/* Lists @count symbols below @symbols. */
static void pick(struct writer *w, struct code *c, unsigned int symbols,
		 unsigned int count, int must)
{
	bool in[LITS] = { false };
	unsigned int n = 0;

	if (must >= 0) {
		in[must] = true;
		c->used[n++] = (uint16_t)must;
	}
	while (n < count) {
		unsigned int i = next(w->p, symbols);

		while (in[i])
			i = (i + 1) % symbols;
		in[i] = true;
		c->used[n++] = (uint16_t)i;
	}
}

static void put_code(struct writer *w, const struct code *c, unsigned int sym)
{
	put(w, c->codes[sym], c->lens[sym]);
}

/* Encodes the lengths of codes as symbols with repeats. */
struct runs {
	uint8_t sym[LITS + DISTS];
	uint8_t extra[LITS + DISTS];
	unsigned int count;
};

static void make_runs(struct writer *w, struct runs *r, const uint8_t *lens,
		      unsigned int count)
{
	unsigned int i = 0;

	r->count = 0;
	while (i < count) {
		unsigned int n = 1, most;

		while (i + n < count && lens[i + n] == lens[i])
			n++;
		if (is_wrong(w) && rarely(w->p, 60))
			n += 150; /* beyond the end */
		if (!lens[i] && n >= 11 && !rarely(w->p, 8)) {
			most = n < 138 ? n : 138;
			r->sym[r->count] = 18;
			r->extra[r->count++] = (uint8_t)(most - 11);
		} else if (!lens[i] && n >= 3 && !rarely(w->p, 4)) {
			most = n < 10 ? n : 10;
			r->sym[r->count] = 17;
			r->extra[r->count++] = (uint8_t)(most - 3);
		} else if (((i && lens[i - 1] == lens[i]) ||
			    (is_wrong(w) && rarely(w->p, 60))) &&
			   n >= 3 && !rarely(w->p, 4)) {
			most = n < 6 ? n : 6;
			r->sym[r->count] = 16;
			r->extra[r->count++] = (uint8_t)(most - 3);
		} else {
			most = 1;
			r->sym[r->count] = lens[i];
			r->extra[r->count++] = 0;
		}
		i += most;
	}
}

static void put_header(struct writer *w, const struct code *lit,
		       unsigned int nlen, const struct code *dist,
		       unsigned int ndist)
{
	uint8_t lens[LITS + DISTS];
	bool seen[PRES] = { false };
	unsigned int npre = PRES, n = 0;
	struct code pre;
	struct runs r;

	memcpy(lens, lit->lens, nlen);
	memcpy(lens + nlen, dist->lens, ndist);
	make_runs(w, &r, lens, nlen + ndist);
	for (unsigned int i = 0; i < r.count; i++) {
		if (!seen[r.sym[i]])
			pre.used[n++] = r.sym[i];
		seen[r.sym[i]] = true;
	}
	while (n < 2 || (n < PRES && rarely(w->p, 3))) {
		unsigned int i = next(w->p, PRES);

		if (seen[i])
			continue;
		seen[i] = true;
		pre.used[n++] = (uint16_t)i;
	}
	make_set(w, &pre, PRES, n, 7);
	if (is_wrong(w))
		pre.lens[next(w->p, PRES)] = (uint8_t)next(w->p, 8);
	if (is_wrong(w) && rarely(w->p, 4))
		memset(pre.lens, 0, sizeof(pre.lens));
	while (npre > 4 && !pre.lens[order[npre - 1]])
		npre--;
	put(w, nlen - 257, 5);
	put(w, ndist - 1, 5);
	put(w, npre - 4, 4);
	for (unsigned int i = 0; i < npre; i++)
		put(w, pre.lens[order[i]], 3);
	for (unsigned int i = 0; i < r.count; i++) {
		put_code(w, &pre, r.sym[i]);
		if (r.sym[i] >= 16)
			put(w, r.extra[i],
			    r.sym[i] == 16 ? 2 :
			    r.sym[i] == 17 ? 3 :
					     7);
	}
}

static void put_distance(struct writer *w, const struct code *dist)
{
	size_t known = w->before + w->made;
	bool far = is_wrong(w);

	for (int tries = 0; dist->count; tries++) {
		unsigned int sym = dist->used[next(w->p, dist->count)];
		unsigned int extra = sym < 4 ? 0 : sym / 2 - 1;
		unsigned int base =
			sym < 4 ? sym + 1 : ((2 + sym % 2) << extra) + 1;
		unsigned int span = 1u << extra;

		if (sym > 29)
			extra = 0;
		if (sym <= 29 && !far && base > known && tries < 50)
			continue;
		if (sym > 29 && !far && tries < 50)
			continue;
		if (sym <= 29 && !far && known >= base &&
		    known - base + 1 < span)
			span = (unsigned int)(known - base + 1);
		put_code(w, dist, sym);
		put(w, next(w->p, span), extra);
		return;
	}
	put(w, next(w->p, 2), 1); /* there is no code at all */
}

static void put_symbols(struct writer *w, const struct code *lit,
			const struct code *dist, unsigned int count)
{
	bool literals = rarely(w->p, 4);

	while (count-- && !is_full(w)) {
		unsigned int sym = lit->used[next(w->p, lit->count)];
		unsigned int extra;

		if (literals && sym > 256)
			sym = lit->used[next(w->p, lit->count)];
		if (sym == 256)
			continue;
		if (sym > 256 && !w->wrong && (!dist->count || !w->made))
			continue;
		if (sym > 285 && !is_wrong(w))
			continue;
		put_code(w, lit, sym);
		if (sym < 256) {
			w->made++;
			continue;
		}
		extra = next(w->p, 1u << len_extra[sym - 257]);
		put(w, extra, len_extra[sym - 257]);
		put_distance(w, dist);
		w->made += len_base[sym - 257] + extra;
	}
	if (lit->lens[256])
		put_code(w, lit, 256);
}

static void put_dynamic(struct writer *w, unsigned int count)
{
	unsigned int nlen = 257 + next(w->p, 30), ndist = 1 + next(w->p, 30);
	unsigned int used = 2 + next(w->p, rarely(w->p, 3) ? nlen - 2 : 20);
	struct code lit, dist;

	if (is_wrong(w) && rarely(w->p, 4))
		nlen = 257 + next(w->p, 32);
	if (is_wrong(w) && rarely(w->p, 4))
		ndist = 1 + next(w->p, 32);
	nlen = nlen < LITS ? nlen : LITS;
	used = used < nlen ? used : nlen;
	/* One code only, of one bit: the end of the block. */
	if (rarely(w->p, 12))
		used = 1;
	pick(w, &lit, nlen, used, is_wrong(w) && rarely(w->p, 4) ? 0 : 256);
	make_set(w, &lit, nlen, used, 15);
	used = next(w->p, rarely(w->p, 4) ? 3 : ndist + 1);
	used = used < ndist ? used : ndist;
	pick(w, &dist, ndist, used, -1);
	memset(dist.lens, 0, sizeof(dist.lens));
	dist.count = 0;
	if (used)
		make_set(w, &dist, ndist, used, 15);
	if (is_wrong(w))
		lit.lens[next(w->p, nlen)] = (uint8_t)next(w->p, 16);
	if (is_wrong(w))
		dist.lens[next(w->p, ndist)] = (uint8_t)next(w->p, 16);
	put_header(w, &lit, nlen, &dist, ndist);
	put_symbols(w, &lit, &dist, count);
}

static void put_fixed(struct writer *w, unsigned int count)
{
	struct code lit, dist;

	memset(lit.lens, 8, 144);
	memset(lit.lens + 144, 9, 112);
	memset(lit.lens + 256, 7, 24);
	memset(lit.lens + 280, 8, 8);
	make_codes(&lit, LITS);
	memset(dist.lens, 0, sizeof(dist.lens));
	memset(dist.lens, 5, DISTS);
	make_codes(&dist, DISTS);
	put_symbols(w, &lit, &dist, count);
}

static void put_stored(struct writer *w, unsigned int count)
{
	put(w, next(w->p, 128), (unsigned int)(-w->bits & 7));
	put(w, count, 16);
	put(w, is_wrong(w) ? next(w->p, 65536) : ~count & 0xffff, 16);
	w->made += count;
	while (count-- && !is_full(w))
		put(w, next(w->p, 256), 8);
}

size_t wf_fuzz_write_deflate(struct wf_fuzz_program *p, uint8_t *to,
			     size_t room, size_t size, size_t before,
			     unsigned int wrong, size_t *made)
{
	struct writer w = {
		.p = p, .to = to, .room = room, .before = before, .wrong = wrong
	};
	bool last;

	do {
		unsigned int type = next(p, 8);
		unsigned int count = next(p, rarely(p, 3) ? 8 : 300);

		last = w.bits >> 3 >= size || rarely(p, 6);
		type = type < 5 ? 2 : type < 7 ? 1 : 0;
		if (is_wrong(&w) && rarely(p, 20))
			type = 3;
		put(&w, last, 1);
		put(&w, type, 2);
		if (type == 2)
			put_dynamic(&w, count);
		else if (type == 1)
			put_fixed(&w, count);
		else
			put_stored(&w, count);
	} while (!last && !is_full(&w));
	*made = w.made;
	return (size_t)((w.bits + 7) >> 3);
}
