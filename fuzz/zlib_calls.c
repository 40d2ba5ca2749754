/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib's API in weft and in zlib itself, compared. The input is a program:
 * streams with all kinds of parameters, cut everywhere, flushed, copied, reset,
 * changed, damaged. Inflating must return the same as zlib for every call, to
 * the byte. Compressed bytes may differ; the data that they unpack to, and the
 * counts, may not.
 */
#include "target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "zreal/real.h"

#define DATA (200u << 10)
#define PACKED (DATA * 2)
#define CALLS_MOST 400000

struct wf_fuzz_stats wf_fuzz_stats;

struct program {
	const uint8_t *next;
	size_t left;
	uint64_t more; /* random numbers continue after the end of the input */
};

static uint8_t data[DATA], packed[2][PACKED], plain[2][DATA + 64];

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "line %d: %s\n", __LINE__, #cond);     \
			abort();                                               \
		}                                                              \
	} while (0)

static unsigned int next(struct program *p, unsigned int below)
{
	uint64_t value = 0;

	for (int i = 0; i < 3; i++) {
		if (p->left) {
			value = value << 8 | *p->next++;
			p->left--;
		} else {
			p->more = p->more * 6364136223846793005ull + 1;
			value = value << 8 | p->more >> 56;
		}
	}
	return (unsigned int)(value % below);
}

static unsigned int size(struct program *p, unsigned int most)
{
	static const unsigned int scale[] = { 2, 20, 300, 5000, 70000, DATA };
	unsigned int n = next(p, scale[next(p, 6)]);

	return n < most ? n : most;
}

static void make_data(struct program *p)
{
	unsigned int alphabet = 1 + next(p, next(p, 3) ? 12 : 256);

	for (size_t i = 0; i < DATA; i++) {
		p->more = p->more * 6364136223846793005ull +
			  1442695040888963407ull;
		data[i] = (uint8_t)((p->more >> 40) % alphabet);
		/* Runs and repeats, so that there are matches to find. */
		if (i > 600 && !((p->more >> 20) % 64)) {
			size_t n = (p->more >> 50) % 500;

			n = n < DATA - i ? n : DATA - i;
			memmove(data + i, data + i - 1 - (p->more >> 30) % 600,
				n);
			i += n;
		}
	}
}

/* One library: the real one (1), or weft by zlib's names (0). */
struct side {
	const struct wf_zreal *z;
	int which;
	z_stream s;
	size_t out;
};

#define CALL(side, name, ...)                                                  \
	((side)->which ? (side)->z->name(__VA_ARGS__) : name(__VA_ARGS__))

static void feed(struct side *side, struct program *p, size_t at, size_t len,
		 int flush, unsigned int cut)
{
	unsigned int calls = 0;
	int ret;

	(void)p;
	side->s.next_in = data + at;
	side->s.avail_in = (uInt)len;
	do {
		uInt room = cut < PACKED - side->out ? cut : PACKED - side->out;
		uLong before = side->s.total_out;

		CHECK(room);
		side->s.next_out = packed[side->which] + side->out;
		side->s.avail_out = room;
		ret = CALL(side, deflate, &side->s, flush);
		CHECK(ret == Z_OK || ret == Z_STREAM_END || ret == Z_BUF_ERROR);
		CHECK(side->s.total_out - before == room - side->s.avail_out);
		side->out += room - side->s.avail_out;
		CHECK(++calls < CALLS_MOST);
	} while (flush == Z_FINISH ? ret != Z_STREAM_END :
				     side->s.avail_in || !side->s.avail_out);
	CHECK(!side->s.avail_in);
}

/* The real zlib unpacks our output to the original data. */
static void check_output(const struct wf_zreal *z, int bits,
			 const uint8_t *dict, uInt dict_len, size_t len,
			 size_t fed, bool whole)
{
	z_stream s = { 0 };
	int ret;

	CHECK(z->inflateInit2_(&s, bits, ZLIB_VERSION, sizeof(s)) == Z_OK);
	if (dict_len && bits < 0)
		CHECK(z->inflateSetDictionary(&s, dict, dict_len) == Z_OK);
	s.next_in = packed[0];
	s.avail_in = (uInt)len;
	s.next_out = plain[0];
	s.avail_out = sizeof(plain[0]);
	ret = z->inflate(&s, Z_SYNC_FLUSH);
	if (ret == Z_NEED_DICT) {
		CHECK(z->inflateSetDictionary(&s, dict, dict_len) == Z_OK);
		ret = z->inflate(&s, Z_SYNC_FLUSH);
	}
	CHECK(ret == (whole ? Z_STREAM_END : Z_OK) ||
	      (!whole && ret == Z_BUF_ERROR));
	CHECK(s.total_out == fed);
	CHECK(!whole || !s.avail_in);
	CHECK(!memcmp(plain[0], data, fed));
	z->inflateEnd(&s);
}

static int pick_bits(struct program *p)
{
	static const int kinds[] = { 15, -15, 31, 15, -15, 31 };
	int bits = kinds[next(p, 6)];

	if (!next(p, 8))
		bits += bits < 0 ? (int)next(p, 7) : -(int)next(p, 7);
	return bits;
}

static void one_change(struct side *side, struct program *p, int what, int a,
		       int b)
{
	z_stream copy = { 0 };
	unsigned int pending;
	int bits;

	(void)p;
	switch (what) {
	case 0:
		side->s.next_in = data;
		side->s.avail_in = 0;
		side->s.next_out = packed[side->which] + side->out;
		side->s.avail_out = (uInt)(PACKED - side->out);
		CHECK(CALL(side, deflateParams, &side->s, a, b) == Z_OK);
		side->out = PACKED - side->s.avail_out;
		break;
	case 1:
		CHECK(CALL(side, deflateCopy, &copy, &side->s) == Z_OK);
		CALL(side, deflateEnd, &side->s);
		/* The state refers to its stream: copy it back the same way. */
		CHECK(CALL(side, deflateCopy, &side->s, &copy) == Z_OK);
		CALL(side, deflateEnd, &copy);
		break;
	case 2:
		CHECK(CALL(side, deflatePending, &side->s, &pending, &bits) ==
		      Z_OK);
		CHECK(!pending);
		break;
	default:
		CHECK(CALL(side, deflateTune, &side->s, 4, 5, 16, 8) == Z_OK);
		break;
	}
}

static void run_deflate(struct program *p, const struct wf_zreal *z)
{
	struct side sides[2] = { { .z = z }, { .z = z, .which = 1 } };
	int level = (int)next(p, 11) - 1, bits = pick_bits(p);
	int mem = 1 + (int)next(p, 9);
	int strategy = next(p, 3) ? 0 : (int)next(p, 5);
	int changes = 0, ret[2];
	uInt dict_len = next(p, 6) ? 0 : 1 + size(p, 40000);
	size_t at = 0;
	bool header = bits > 15 && !next(p, 4), primed = false;
	gz_header head = { .name = (Bytef *)(uintptr_t) "a name",
			   .hcrc = (int)next(p, 2) };

	for (int i = 0; i < 2; i++) {
		ret[i] = CALL(&sides[i], deflateInit2_, &sides[i].s, level,
			      Z_DEFLATED, bits, mem, strategy, ZLIB_VERSION,
			      (int)sizeof(z_stream));
		if (ret[i] == Z_OK && header)
			CHECK(CALL(&sides[i], deflateSetHeader, &sides[i].s,
				   &head) == Z_OK);
		if (ret[i] == Z_OK && dict_len && bits < 16)
			CHECK(CALL(&sides[i], deflateSetDictionary, &sides[i].s,
				   data + 100, dict_len) == Z_OK);
	}
	CHECK(ret[0] == ret[1]);
	if (ret[0] != Z_OK)
		return;
	CHECK(sides[0].s.adler == sides[1].s.adler);
	if (!next(p, 5)) {
		/* All at once, in the room that deflateBound() returns. */
		uInt len = size(p, DATA);
		uLong bound = deflateBound(&sides[0].s, len);

		CHECK(bound <= PACKED);
		sides[0].s.next_in = data;
		sides[0].s.avail_in = len;
		sides[0].s.next_out = packed[0];
		sides[0].s.avail_out = (uInt)bound;
		CHECK(deflate(&sides[0].s, Z_FINISH) == Z_STREAM_END);
		check_output(z, bits == -8 ? -9 : bits, data + 100, dict_len,
			     sides[0].s.total_out, len, true);
		CHECK(deflateReset(&sides[0].s) == Z_OK);
		z->deflateReset(&sides[1].s);
		if (dict_len && bits < 16) {
			deflateSetDictionary(&sides[0].s, data + 100, dict_len);
			z->deflateSetDictionary(&sides[1].s, data + 100,
						dict_len);
		}
	}
	while (at < DATA && changes < 40) {
		size_t n = size(p, (unsigned int)(DATA - at));
		int flush = next(p, 3) ? Z_NO_FLUSH : (int)next(p, 4);
		unsigned int cut = 1 + next(p, next(p, 2) ? 70000 : 40);
		int a = (int)next(p, 10), b = next(p, 3) ? 0 : (int)next(p, 5);
		int what = next(p, 5) ? -1 : (int)next(p, 4);

		cut = n > 3000 && cut < 40 ? cut + 200 : cut;
		cut = flush && cut < 8 ? 8 : cut;
		for (int i = 0; i < 2; i++) {
			feed(&sides[i], p, at, n, flush, cut);
			if (what >= 0 && at + n)
				one_change(&sides[i], p, what, a, b);
		}
		at += n;
		changes++;
		CHECK(sides[0].s.total_in == sides[1].s.total_in);
		CHECK(sides[0].s.total_out == sides[0].out);
		/* The counts go on after deflateParams(0), as in zlib. */
		CHECK(sides[0].s.adler == sides[1].s.adler);
		if (flush >= Z_PARTIAL_FLUSH && flush != Z_BLOCK && !primed)
			check_output(z, bits == -8 ? -9 : bits, data + 100,
				     dict_len, sides[0].out, at, false);
		if (!next(p, 12))
			break;
	}
	for (int i = 0; i < 2; i++) {
		feed(&sides[i], p, at, 0, Z_FINISH, 1 + next(p, 30000));
		CHECK(CALL(&sides[i], deflate, &sides[i].s, Z_FINISH) ==
			      Z_STREAM_END ||
		      !sides[i].s.avail_out);
	}
	CHECK(sides[0].s.adler == sides[1].s.adler);
	check_output(z, bits == -8 ? -9 : bits, data + 100, dict_len,
		     sides[0].out, at, true);
	for (int i = 0; i < 2; i++)
		CHECK(CALL(&sides[i], deflateEnd, &sides[i].s) == Z_OK);
	wf_fuzz_stats.completed++;
}

static void same(const struct side *a, const struct side *b, int ra, int rb)
{
	CHECK(ra == rb);
	CHECK(a->s.avail_in == b->s.avail_in);
	CHECK(a->s.avail_out == b->s.avail_out);
	CHECK(a->s.total_in == b->s.total_in);
	CHECK(a->s.total_out == b->s.total_out);
	CHECK(a->s.adler == b->s.adler);
	CHECK(!a->s.msg == !b->s.msg);
	CHECK(!a->s.msg || !strcmp(a->s.msg, b->s.msg));
}

static size_t pack_real(struct program *p, const struct wf_zreal *z, int bits,
			size_t len)
{
	z_stream s = { 0 };
	int level = (int)next(p, 10),
	    strategy = next(p, 3) ? 0 : (int)next(p, 5);
	size_t at = 0;

	CHECK(z->deflateInit2_(&s, level, Z_DEFLATED, bits, 1 + (int)next(p, 9),
			       strategy, ZLIB_VERSION, sizeof(s)) == Z_OK);
	s.next_out = packed[0];
	s.avail_out = PACKED;
	do {
		size_t n = size(p, (unsigned int)(len - at));

		s.next_in = data + at;
		s.avail_in = (uInt)n;
		z->deflate(&s, next(p, 3) ? Z_NO_FLUSH : (int)next(p, 4));
		at += n;
	} while (at < len && next(p, 10));
	s.avail_in = (uInt)(len - at);
	s.next_in = data + at;
	CHECK(z->deflate(&s, Z_FINISH) == Z_STREAM_END);
	at = s.total_out;
	z->deflateEnd(&s);
	return at;
}

/* Queries between two steps, which must not disturb them. */
static void ask(struct program *p, struct side sides[2], bool ended)
{
	unsigned int what = next(p, ended ? 3 : 5), bits = next(p, 16);
	int value = (int)next(p, 65536);
	long ret[2] = { 0, 0 };

	for (int i = 0; i < 2; i++) {
		struct side *d = &sides[i];

		switch (what) {
		case 0:
			ret[i] = CALL(d, inflateMark, &d->s);
			break;
		case 1:
			ret[i] = CALL(d, inflateSyncPoint, &d->s);
			break;
		case 2:
			ret[i] = CALL(d, inflateValidate, &d->s, value & 1);
			break;
		case 3:
			ret[i] = CALL(d, inflatePrime, &d->s, (int)bits, value);
			break;
		default:
			ret[i] = CALL(d, inflateSync, &d->s);
			break;
		}
	}
	CHECK(ret[0] == ret[1]);
	same(&sides[0], &sides[1], 0, 0);
}

static void inflate_steps(struct program *p, struct side sides[2], size_t len)
{
	static const int flushes[] = { Z_NO_FLUSH,   Z_SYNC_FLUSH, Z_FINISH,
				       Z_SYNC_FLUSH, Z_BLOCK,	   Z_TREES };
	unsigned int kinds = next(p, 4) ? 3 : 6, copies = next(p, 10);
	size_t at = 0, out = 0;
	int idle = 0, ret[2] = { Z_OK, Z_OK };
	bool all = !next(p, 3), asks = !next(p, 4);

	while (idle < 3) {
		size_t n = all ? len - at : size(p, (unsigned int)(len - at));
		size_t room = all && next(p, 4) ? DATA + 64 - out :
						  size(p, DATA + 64);
		int flush = flushes[next(p, kinds)];

		room = room < DATA + 64 - out ? room : DATA + 64 - out;
		for (int i = 0; i < 2; i++) {
			struct side *d = &sides[i];

			d->s.next_in = packed[0] + at;
			d->s.avail_in = (uInt)n;
			d->s.next_out = plain[i] + out;
			d->s.avail_out = (uInt)room;
			ret[i] = CALL(d, inflate, &d->s, flush);
		}
		same(&sides[0], &sides[1], ret[0], ret[1]);
		n -= sides[0].s.avail_in;
		room -= sides[0].s.avail_out;
		CHECK(!memcmp(plain[0] + out, plain[1] + out, room));
		idle = n || room ? 0 : idle + 1;
		at += n;
		out += room;
		if (ret[0] == Z_STREAM_END && at < len && next(p, 2)) {
			for (int i = 0; i < 2; i++)
				ret[i] = CALL(&sides[i], inflateReset,
					      &sides[i].s);
			same(&sides[0], &sides[1], ret[0], ret[1]);
		}
		if (asks && !next(p, 6)) {
			size_t left = sides[0].s.avail_in;

			ask(p, sides, ret[0] == Z_STREAM_END);
			at += left - sides[0].s.avail_in;
		}
		if (!copies--) {
			for (int i = 0; i < 2; i++) {
				z_stream copy = { 0 };

				CHECK(CALL(&sides[i], inflateCopy, &copy,
					   &sides[i].s) == Z_OK);
				CALL(&sides[i], inflateEnd, &sides[i].s);
				CHECK(CALL(&sides[i], inflateCopy, &sides[i].s,
					   &copy) == Z_OK);
				CALL(&sides[i], inflateEnd, &copy);
			}
		}
	}
	if (ret[0] == Z_STREAM_END)
		wf_fuzz_stats.completed++;
	else
		wf_fuzz_stats.failed++;
}

static void run_inflate(struct program *p, const struct wf_zreal *z)
{
	static const int readers[] = { 15, 31, 47, 0, -15, 40 };
	struct side sides[2] = { { .z = z }, { .z = z, .which = 1 } };
	int bits = pick_bits(p), with = bits, ret[2];
	size_t len;

	bits = bits == -8 ? -9 : bits;
	len = pack_real(p, z, bits, size(p, DATA));
	if (!next(p, 3) && bits > 15) /* another member */
		len += size(p, (unsigned int)len);
	if (!next(p, 3))
		packed[0][next(p, (unsigned int)len)] ^=
			(uint8_t)(1 + next(p, 255));
	if (!next(p, 4))
		len = next(p, (unsigned int)len + 1);
	if (!next(p, 4))
		with = readers[next(p, 6)];
	for (int i = 0; i < 2; i++)
		ret[i] = CALL(&sides[i], inflateInit2_, &sides[i].s, with,
			      ZLIB_VERSION, (int)sizeof(z_stream));
	CHECK(ret[0] == ret[1]);
	if (ret[0] != Z_OK)
		return;
	same(&sides[0], &sides[1], 0, 0);
	if (!next(p, 10)) {
		for (int i = 0; i < 2; i++)
			ret[i] = CALL(&sides[i], inflateReset2, &sides[i].s,
				      with);
		same(&sides[0], &sides[1], ret[0], ret[1]);
	}
	inflate_steps(p, sides, len);
	for (int i = 0; i < 2; i++)
		CHECK(CALL(&sides[i], inflateEnd, &sides[i].s) == Z_OK);
}

/* compress() and uncompress(), also with too little room. */
static void run_whole(struct program *p, const struct wf_zreal *z)
{
	uLong len = size(p, DATA), room = compressBound(len), src, dst, want;
	int a, b;

	CHECK(room == z->compressBound(len));
	CHECK(compress2(packed[0], &room, data, len, (int)next(p, 11) - 1) ==
	      Z_OK);
	check_output(z, 15, NULL, 0, room, len, true);
	src = next(p, 3) ? room : next(p, (unsigned int)room + 1);
	if (!next(p, 3))
		packed[0][next(p, (unsigned int)room)] ^= 1;
	dst = next(p, 2) ? len : size(p, DATA);
	want = src;
	room = dst;
	a = uncompress2(plain[0], &dst, packed[0], &src);
	b = z->uncompress2(plain[1], &room, packed[0], &want);
	CHECK(a == b);
	CHECK(dst == room && src == want);
	CHECK(!memcmp(plain[0], plain[1], dst));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	struct program p = { input, len, len + 1 };
	const struct wf_zreal *z = wf_zreal_get();
	unsigned int kind;

	CHECK(z);
	p.more = next(&p, 1u << 24);
	make_data(&p);
	kind = next(&p, 5);
	if (kind < 2)
		run_deflate(&p, z);
	else if (kind < 4)
		run_inflate(&p, z);
	else
		run_whole(&p, z);
	return 0;
}
