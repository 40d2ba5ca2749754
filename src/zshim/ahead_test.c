/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams that the driver of WD_COMP_DRIVER decompresses: the caller gets what
 * zlib gives it, call by call, whatever room it has, whatever it asks for in
 * between, and whatever is wrong with the stream; and the driver, which counts
 * its jobs, is asked once a stream.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <weft/wd_comp_drv.h>

#include "zreal/real.h"

#define SIZE 150000u
#define ROOM (SIZE + 1000u)

static uint8_t data[SIZE], packed[SIZE * 2];
static const struct wf_zreal *z;
static const int formats[] = { -15, 15, 31, 47 };

#define CALL(which, name, ...)                                                 \
	((which) ? z->name(__VA_ARGS__) : name(__VA_ARGS__))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- the driver ------------------------------------------------------------ */

static int jobs, good, answer;
static size_t given; /* of the last job */
static bool uses_zlib, lies;

/* As a driver that calls zlib would, and finds us in its place. */
static void use_zlib(void)
{
	uint8_t some[9000] = { 0 }, more[10000];
	uLongf len = sizeof(more), back = sizeof(some);

	compress(more, &len, data, sizeof(some));
	assert_int_equal(uncompress(some, &back, more, len), Z_OK);
}

static int work(struct wd_comp_job *job)
{
	z_stream s = { 0 };
	int ret;

	jobs++;
	given = job->src_len;
	if (uses_zlib)
		use_zlib();
	if (answer)
		return answer;
	z->inflateInit2_(&s, -15, ZLIB_VERSION, sizeof(s));
	if (job->dict_len)
		z->inflateSetDictionary(&s, job->dict, (uInt)job->dict_len);
	s.next_in = (uint8_t *)(uintptr_t)job->src;
	s.avail_in = (uInt)job->src_len;
	s.next_out = job->dst;
	s.avail_out = (uInt)job->dst_len;
	ret = z->inflate(&s, Z_FINISH);
	job->consumed = s.total_in;
	job->produced = s.total_out;
	job->ended = ret == Z_STREAM_END;
	z->inflateEnd(&s);
	if (lies)
		job->dst[job->produced / 2] ^= 1;
	good += job->ended;
	return job->ended	   ? 0 :
	       ret == Z_DATA_ERROR ? -EBADMSG :
	       s.avail_out	   ? -ENODATA :
				     -ENOSPC;
}

static const struct wd_alg_comp driver = {
	.name = "tester",
	.priority = 1,
	.node = -1,
	.can = WD_COMP_CAN_INFLATE | WD_COMP_CAN_INFLATE_DICT |
	       WD_COMP_CAN_REFUSE,
	.inflate = work,
};

static int setup(void **state)
{
	uint64_t seed = 1;

	(void)state;
	z = wf_zreal_get();
	/* Half of it is noise, so that there are several blocks of each kind. */
	for (size_t i = 0; i < SIZE; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		data[i] = i >> 14 & 1 ? (uint8_t)(seed >> 56) :
					(uint8_t)(seed >> 61);
	}
	return z ? wd_alg_comp_register(&driver) : -1;
}

static int begin(void **state)
{
	(void)state;
	jobs = 0;
	good = 0;
	answer = 0;
	uses_zlib = false;
	lies = false;
	return 0;
}

/* -- streams --------------------------------------------------------------- */

static size_t pack(int bits, size_t len, const uint8_t *dict, uInt dict_len)
{
	z_stream s = { 0 };

	assert_int_equal(z->deflateInit2_(&s, 6, Z_DEFLATED,
					  bits == 47 ? 31 : bits, 8, 0,
					  ZLIB_VERSION, sizeof(s)),
			 Z_OK);
	if (dict)
		z->deflateSetDictionary(&s, dict, dict_len);
	s.next_in = data;
	s.avail_in = (uInt)len;
	s.next_out = packed;
	s.avail_out = sizeof(packed);
	assert_int_equal(z->deflate(&s, Z_FINISH), Z_STREAM_END);
	z->deflateEnd(&s);
	return s.total_out;
}

/* The same stream twice: by weft, with the driver, and by zlib. */
struct twins {
	z_stream s[2];
	uint8_t out[2][ROOM];
	int ret;
};

static struct twins *open_twins(int bits, size_t n)
{
	struct twins *t = calloc(1, sizeof(*t));

	for (int i = 0; i < 2; i++) {
		z_stream *s = &t->s[i];

		assert_int_equal(CALL(i, inflateInit2_, s, bits, ZLIB_VERSION,
				      (int)sizeof(*s)),
				 Z_OK);
		s->next_in = packed;
		s->avail_in = (uInt)n;
		s->next_out = t->out[i];
	}
	return t;
}

static void close_twins(struct twins *t)
{
	inflateEnd(&t->s[0]);
	z->inflateEnd(&t->s[1]);
	free(t);
}

static void check_same(const struct twins *t, int a, int b, size_t from)
{
	assert_int_equal(a, b);
	assert_int_equal(t->s[0].total_out, t->s[1].total_out);
	assert_memory_equal(t->out[0] + from, t->out[1] + from,
			    t->s[0].total_out - from);
	assert_int_equal(t->s[0].adler, t->s[1].adler);
	if (t->s[1].msg)
		assert_string_equal(t->s[0].msg, t->s[1].msg);
	else
		assert_null(t->s[0].msg);
}

/* A call of each with @room, then everything is compared that must be equal. */
static int step(struct twins *t, uInt room, int flush)
{
	size_t from = t->s[0].total_out;
	int ret[2];

	for (int i = 0; i < 2; i++) {
		uInt left = ROOM - (uInt)t->s[i].total_out;

		t->s[i].avail_out = room < left ? room : left;
		ret[i] = CALL(i, inflate, &t->s[i], flush);
	}
	check_same(t, ret[0], ret[1], from);
	return ret[0];
}

/* At its end the caller knows where it is, ... */
static void check_place(const struct twins *t)
{
	assert_int_equal(t->s[0].total_in, t->s[1].total_in);
	assert_int_equal(t->s[0].avail_in, t->s[1].avail_in);
	assert_int_equal(t->s[0].data_type, t->s[1].data_type);
}

/* ... and has the same window. */
static void check_end(struct twins *t)
{
	static uint8_t window[2][1u << 15];
	uInt len[2];

	check_place(t);
	for (int i = 0; i < 2; i++)
		assert_int_equal(CALL(i, inflateGetDictionary, &t->s[i],
				      window[i], &len[i]),
				 Z_OK);
	assert_int_equal(len[0], len[1]);
	assert_memory_equal(window[0], window[1], len[0]);
}

static void finish(struct twins *t, uInt room, int flush)
{
	int ret;

	do {
		ret = step(t, room, flush);
		/* Programs that stop when all input is gone lose nothing. */
		if (ret == Z_OK)
			assert_true(t->s[0].avail_in > 0);
	} while (ret == Z_OK || (ret == Z_BUF_ERROR && flush == Z_FINISH &&
				 t->s[0].total_out < SIZE));
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(t->s[0].total_out, SIZE);
	check_end(t);
}

/* -- tests ----------------------------------------------------------------- */

static void test_rooms(void **state)
{
	static const uInt rooms[] = { 1, 77, 5000, 16384, SIZE, ROOM };

	(void)state;
	for (size_t f = 0; f < COUNT(formats); f++) {
		size_t n = pack(formats[f], SIZE, NULL, 0);

		for (size_t i = 0; i < 2 * COUNT(rooms); i++) {
			struct twins *t;

			begin(NULL);
			/* With something behind it that is not the stream's. */
			t = open_twins(formats[f], n + 100);
			finish(t, rooms[i / 2], i & 1 ? Z_FINISH : Z_NO_FLUSH);
			assert_int_equal(good, 1);
			close_twins(t);
		}
	}
}

/* What a program sees of input and output is in proportion. */
static void test_ratio(void **state)
{
	size_t n = pack(15, SIZE, NULL, 0);
	struct twins *t = open_twins(15, n);

	(void)state;
	step(t, SIZE / 4, Z_NO_FLUSH);
	assert_in_range(t->s[0].total_in, n / 4 - 100, n / 4 + 100);
	close_twins(t);
}

/* Questions that only a decoder can answer. */
static void ask(struct twins *t, int what)
{
	z_stream copies[2];
	int bits[2];

	switch (what) {
	case 0:
		assert_int_equal(inflateMark(&t->s[0]),
				 z->inflateMark(&t->s[1]));
		break;
	case 1:
		assert_int_equal(inflateSyncPoint(&t->s[0]),
				 z->inflateSyncPoint(&t->s[1]));
		break;
	case 2:
		for (int i = 0; i < 2; i++) {
			assert_int_equal(
				CALL(i, inflateCopy, &copies[i], &t->s[i]),
				Z_OK);
			CALL(i, inflateEnd, &t->s[i]);
			assert_int_equal(
				CALL(i, inflateCopy, &t->s[i], &copies[i]),
				Z_OK);
			CALL(i, inflateEnd, &copies[i]);
		}
		break;
	default:
		/* To the next border of blocks. */
		assert_int_equal(step(t, ROOM, Z_BLOCK), Z_OK);
		for (int i = 0; i < 2; i++)
			bits[i] = t->s[i].data_type;
		assert_int_equal(bits[0], bits[1]);
	}
}

static void test_questions(void **state)
{
	static const uInt first[] = { 1, 40, 3333, 20000, 100001 };

	(void)state;
	for (size_t f = 0; f < COUNT(formats); f++) {
		size_t n = pack(formats[f], SIZE, NULL, 0);

		for (size_t i = 0; i < 4 * COUNT(first); i++) {
			struct twins *t = open_twins(formats[f], n + 9);

			begin(NULL);
			assert_int_equal(step(t, first[i / 4], Z_NO_FLUSH),
					 Z_OK);
			ask(t, (int)(i & 3));
			assert_int_equal(step(t, 500, Z_NO_FLUSH), Z_OK);
			ask(t, (int)(i & 3));
			finish(t, 7000, Z_NO_FLUSH);
			assert_int_equal(good, 1);
			close_twins(t);
		}
	}
}

/* Damage is what zlib says that it is, and comes after the same output. */
static void test_damage(void **state)
{
	(void)state;
	for (size_t f = 1; f < COUNT(formats); f++) {
		for (int i = 0; i < 3; i++) {
			size_t n = pack(formats[f], SIZE, NULL, 0);
			struct twins *t;
			int ret = Z_OK;

			if (i < 2)
				packed[i ? n - 2 : n / 2] ^= 0x5a;
			else
				n -= 5; /* the end is not there */
			t = open_twins(formats[f], n);
			while (ret == Z_OK)
				ret = step(t, 30000, Z_NO_FLUSH);
			assert_int_equal(ret,
					 i < 2 ? Z_DATA_ERROR : Z_BUF_ERROR);
			close_twins(t);
		}
	}
}

/* In parts it is nobody's but weft's, and so it is if the driver fails. */
static void test_own(void **state)
{
	size_t n = pack(15, SIZE, NULL, 0);
	struct twins *t;
	int ret = Z_OK;

	(void)state;
	t = open_twins(15, 0);
	for (size_t at = 0; ret != Z_STREAM_END; at += 3000) {
		uInt left = (uInt)(n - at < 3000 ? n - at : 3000);

		t->s[0].avail_in = left;
		t->s[1].avail_in = left;
		ret = step(t, ROOM, Z_NO_FLUSH);
		assert_int_equal(t->s[0].avail_in, 0);
	}
	check_end(t);
	assert_int_equal(jobs, 1);
	close_twins(t);
	answer = -ENODEV;
	t = open_twins(15, n);
	finish(t, 9999, Z_NO_FLUSH);
	assert_int_equal(jobs, 2);
	close_twins(t);
}

/* A driver that returns other bytes does no harm: the checksum of the stream says
 * so, and weft does it. */
static void test_lies(void **state)
{
	(void)state;
	lies = true;
	for (size_t f = 1; f < COUNT(formats); f++) {
		size_t n = pack(formats[f], SIZE, NULL, 0);

		for (uInt room = 10000; room < 10 * SIZE; room *= 20) {
			struct twins *t = open_twins(formats[f], n);

			finish(t, room, Z_NO_FLUSH);
			close_twins(t);
		}
	}
	assert_int_equal(good, 6);
}

/* A stream without a checksum is for drivers that refuse what zlib refuses. */
static void test_unchecked(void **state)
{
	struct wd_alg_comp lax = driver;

	(void)state;
	lax.can &= ~WD_COMP_CAN_REFUSE;
	assert_int_equal(wd_alg_comp_unregister(&driver), 0);
	assert_int_equal(wd_alg_comp_register(&lax), 0);
	for (size_t f = 0; f < COUNT(formats); f++) {
		size_t n = pack(formats[f], SIZE, NULL, 0);
		struct twins *t = open_twins(formats[f], n);

		jobs = 0;
		assert_int_equal(step(t, ROOM, Z_FINISH), Z_STREAM_END);
		assert_int_equal(jobs, formats[f] < 0 ? 0 : 1);
		close_twins(t);
	}
	assert_int_equal(wd_alg_comp_unregister(&lax), 0);
	assert_int_equal(wd_alg_comp_register(&driver), 0);
}

/* The decoder is at the end of the stream, but the caller has not given all of
 * that: its end comes with the last byte. (Bug: with the next one.) */
static void test_debt(void **state)
{
	size_t n = pack(-15, SIZE, NULL, 0);
	uint8_t *out = malloc(ROOM);
	z_stream s = { 0 };
	int ret;

	(void)state;
	assert_int_equal(inflateInit2(&s, -15), Z_OK);
	s.next_in = packed;
	s.avail_in = (uInt)n;
	s.next_out = out;
	s.avail_out = 1000;
	assert_int_equal(inflate(&s, Z_NO_FLUSH), Z_OK);
	s.avail_in = 10;
	s.avail_out = ROOM - 1000;
	assert_int_equal(inflate(&s, Z_NO_FLUSH), Z_OK);
	inflateMark(&s);
	do {
		s.avail_in = 1;
		s.avail_out = ROOM - (uInt)s.total_out;
		ret = inflate(&s, Z_NO_FLUSH);
	} while (ret == Z_OK && s.total_in < n);
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(s.total_in, n);
	assert_int_equal(s.total_out, SIZE);
	assert_memory_equal(out, data, SIZE);
	inflateEnd(&s);
	free(out);
}

/* A header that comes alone, a reset, a dictionary, a small stream. */
static void test_begin(void **state)
{
	size_t n = pack(31, SIZE, NULL, 0);
	struct twins *t = open_twins(31, 10);

	(void)state;
	assert_int_equal(step(t, 100, Z_NO_FLUSH), Z_OK);
	t->s[0].avail_in = (uInt)n - 10;
	t->s[1].avail_in = (uInt)n - 10;
	assert_int_equal(step(t, 100, Z_NO_FLUSH), Z_OK);
	assert_int_equal(good, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(CALL(i, inflateReset, &t->s[i]), Z_OK);
		t->s[i].next_in = packed;
		t->s[i].avail_in = (uInt)n;
		t->s[i].next_out = t->out[i];
	}
	finish(t, 5000, Z_NO_FLUSH);
	assert_int_equal(good, 2);
	close_twins(t);

	n = pack(15, SIZE, data + 1000, 5000);
	t = open_twins(15, n);
	assert_int_equal(step(t, 100, Z_NO_FLUSH), Z_NEED_DICT);
	for (int i = 0; i < 2; i++)
		assert_int_equal(CALL(i, inflateSetDictionary, &t->s[i],
				      data + 1000, 5000),
				 Z_OK);
	finish(t, 5000, Z_NO_FLUSH);
	assert_int_equal(good, 3);
	close_twins(t);

	n = pack(15, 100, NULL, 0);
	t = open_twins(15, n);
	assert_int_equal(step(t, 100, Z_NO_FLUSH), Z_STREAM_END);
	assert_int_equal(good, 3);
	close_twins(t);
}

/* Streams one behind the other: the driver gets no more of the input than it
 * needs, but for the first of them. */
static void test_members(void **state)
{
	size_t n = pack(31, 20000, NULL, 0), at = n;
	struct twins *t;

	(void)state;
	for (; at + n < sizeof(packed); at += n)
		memcpy(packed + at, packed, n);
	t = open_twins(31, at);
	for (size_t i = 0; i < at / n; i++) {
		given = 0;
		assert_int_equal(step(t, ROOM, Z_NO_FLUSH), Z_STREAM_END);
		assert_int_equal(t->s[0].total_in, n);
		assert_int_equal(good, i + 1);
		if (i)
			assert_in_range(given, n - 18,
					5 * n > 65536 ? 5 * n : 65536);
		for (int k = 0; k < 2; k++) {
			CALL(k, inflateReset, &t->s[k]);
			t->s[k].next_out = t->out[k];
		}
	}
	close_twins(t);
	assert_true(at > 4 * 65536);
	/* And then one that is large. */
	begin(NULL);
	n = pack(15, SIZE, NULL, 0);
	t = open_twins(15, n);
	finish(t, ROOM, Z_NO_FLUSH);
	assert_int_equal(good, 1);
	close_twins(t);
}

/* A caller that gives the rest of the input only when it has all output. */
static void test_starved(void **state)
{
	size_t n = pack(31, SIZE, NULL, 0), left;
	struct twins *t = open_twins(31, n);
	z_stream *s = &t->s[0];
	int ret;

	(void)state;
	s->avail_out = 1000;
	assert_int_equal(inflate(s, Z_NO_FLUSH), Z_OK);
	left = s->avail_in;
	s->avail_in = 0;
	while (s->total_out < SIZE) {
		s->avail_out = 9999;
		assert_int_equal(inflate(s, Z_NO_FLUSH), Z_OK);
	}
	assert_int_equal(inflate(s, Z_NO_FLUSH), Z_BUF_ERROR);
	assert_memory_equal(t->out[0], data, SIZE);
	do {
		s->avail_in = left < 1000 ? (uInt)left : 1000;
		left -= s->avail_in;
		ret = inflate(s, Z_NO_FLUSH);
		assert_int_equal(s->avail_in, 0);
	} while (ret == Z_OK);
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(s->total_in, n);
	assert_int_equal(left, 0);
	close_twins(t);
}

static uint64_t seed;

static unsigned int draw(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % below;
}

/* Calls as they come, until the stream ends or is found to be bad. */
static void play(void)
{
	static const int flushes[] = { Z_NO_FLUSH, Z_NO_FLUSH, Z_SYNC_FLUSH,
				       Z_FINISH,   Z_BLOCK,    Z_TREES };
	int bits = formats[draw(COUNT(formats))], ret = Z_OK;
	size_t n = pack(bits, 1 + draw(SIZE), NULL, 0);
	struct twins *t;

	if (!draw(4))
		packed[draw((unsigned int)n)] ^= (uint8_t)(1u << draw(8));
	t = open_twins(bits, n);
	for (int i = 0; i < 10000; i++) {
		uInt room = 1 + draw(1u << draw(17));
		/* Seldom, so that the driver's result is used for long. */
		int flush = flushes[draw(draw(8) ? 3 : 6)];

		ret = step(t, room, flush);
		if (ret != Z_OK && ret != Z_BUF_ERROR)
			break;
		if (t->s[0].total_out >= ROOM - 1 ||
		    (ret == Z_BUF_ERROR && flush != Z_FINISH))
			break;
		if (!draw(8))
			ask(t, (int)draw(3));
	}
	/* zlib leaves the output of the last call out of its window; after a
	 * question, a part of it may be in ours. */
	if (ret == Z_STREAM_END)
		check_place(t);
	close_twins(t);
}

static void test_random(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		seed = (uint64_t)i + 1;
		play();
	}
	assert_true(good > 100);
}

static void test_calls(void **state)
{
	size_t n = pack(15, SIZE, NULL, 0);
	static uint8_t plain[SIZE];
	uLongf len = SIZE;

	(void)state;
	assert_int_equal(uncompress(plain, &len, packed, n), Z_OK);
	assert_int_equal(len, SIZE);
	assert_memory_equal(plain, data, SIZE);
	assert_int_equal(good, 1);
	len = SIZE - 1;
	assert_int_equal(uncompress(plain, &len, packed, n), Z_BUF_ERROR);
	/* A driver that calls zlib itself is not its own driver. */
	begin(NULL);
	uses_zlib = true;
	len = SIZE;
	assert_int_equal(uncompress(plain, &len, packed, n), Z_OK);
	assert_int_equal(jobs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rooms, begin),
		cmocka_unit_test_setup(test_ratio, begin),
		cmocka_unit_test_setup(test_questions, begin),
		cmocka_unit_test_setup(test_damage, begin),
		cmocka_unit_test_setup(test_own, begin),
		cmocka_unit_test_setup(test_lies, begin),
		cmocka_unit_test_setup(test_unchecked, begin),
		cmocka_unit_test_setup(test_debt, begin),
		cmocka_unit_test_setup(test_begin, begin),
		cmocka_unit_test_setup(test_members, begin),
		cmocka_unit_test_setup(test_starved, begin),
		cmocka_unit_test_setup(test_random, begin),
		cmocka_unit_test_setup(test_calls, begin),
	};

	setenv("WD_COMP_DRIVER", "tester", 1);
	return cmocka_run_group_tests(tests, setup, NULL);
}
