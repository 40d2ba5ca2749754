/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of streams that a driver does: a driver that counts its jobs and can
 * be made to fail in several ways, and twins, the same stream by weft with that
 * driver and by zlib, call by call.
 */
#ifndef WF_ZSHIM_TWINS_TEST_H
#define WF_ZSHIM_TWINS_TEST_H

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
static bool strict; /* takes what is cut for damaged, as libdeflate does */
static bool boasts; /* claims that there is much output */

#define MUCH (64u << 20)

/* As a driver that calls zlib would, and finds us in its place. */
static inline void use_zlib(void)
{
	uint8_t some[9000] = { 0 }, more[10000];
	uLongf len = sizeof(more), back = sizeof(some);

	compress(more, &len, data, sizeof(some));
	assert_int_equal(uncompress(some, &back, more, len), Z_OK);
}

static inline int work(struct wd_comp_job *job)
{
	z_stream s = { 0 };
	int ret;

	jobs++;
	given = job->src_len;
	if (uses_zlib)
		use_zlib();
	if (answer)
		return answer;
	if (boasts) {
		/* Nobody touches it, so that the test needs no memory. */
		job->consumed = 1000;
		job->produced = job->dst_len;
		job->ended = 1;
		return job->dst_len < MUCH ? -ENOSPC : 0;
	}
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
	       s.avail_out	   ? (strict ? -EBADMSG : -ENODATA) :
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

static inline int setup(void **state)
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

static inline int begin(void **state)
{
	(void)state;
	jobs = 0;
	good = 0;
	answer = 0;
	uses_zlib = false;
	lies = false;
	strict = false;
	boasts = false;
	return 0;
}

#define RUN_TWINS(tests)                                                       \
	(setenv("WD_COMP_DRIVER", "tester", 1),                                \
	 cmocka_run_group_tests(tests, setup, NULL))

/* The driver with another table; then the usual one again. */
static inline void replace_driver(const struct wd_alg_comp *old,
				  const struct wd_alg_comp *table)
{
	assert_int_equal(wd_alg_comp_unregister(old), 0);
	assert_int_equal(wd_alg_comp_register(table), 0);
}

/* -- streams --------------------------------------------------------------- */

static inline size_t pack(int bits, size_t len, const uint8_t *dict,
			  uInt dict_len)
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

static inline struct twins *open_twins(int bits, size_t n)
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

static inline void close_twins(struct twins *t)
{
	inflateEnd(&t->s[0]);
	z->inflateEnd(&t->s[1]);
	free(t);
}

static inline void check_same(const struct twins *t, int a, int b, size_t from)
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

#define BETWEEN 128 /* in data_type: between two blocks */

/* A call of each with @room, then everything is compared that must be equal. */
static inline int step(struct twins *t, uInt room, int flush)
{
	size_t from = t->s[0].total_out;
	int ret[2];

	for (int i = 0; i < 2; i++) {
		uInt left = ROOM - (uInt)t->s[i].total_out;

		t->s[i].avail_out = room < left ? room : left;
		ret[i] = CALL(i, inflate, &t->s[i], flush);
	}
	check_same(t, ret[0], ret[1], from);
	/* (Bug: said of every place in a stream that the driver had done.) */
	if (t->s[0].data_type & BETWEEN)
		assert_true(t->s[1].data_type & BETWEEN);
	return ret[0];
}

/* At its end the caller knows where it is, ... */
static inline void check_place(const struct twins *t)
{
	assert_int_equal(t->s[0].total_in, t->s[1].total_in);
	assert_int_equal(t->s[0].avail_in, t->s[1].avail_in);
	assert_int_equal(t->s[0].data_type, t->s[1].data_type);
}

/* ... and has the same window. */
static inline void check_end(struct twins *t)
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

static inline void finish(struct twins *t, uInt room, int flush)
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

#endif
