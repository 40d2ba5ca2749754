/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the offers to the driver of WD_COMP_DRIVER: which streams,
 * how much of their input, and how much of its output is kept. The rest is
 * weft's own work.
 */
#include "zshim/twins_test.h"

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

/* A stream without a checksum is for drivers that refuse what zlib refuses. */
static void test_unchecked(void **state)
{
	struct wd_alg_comp lax = driver;

	(void)state;
	lax.can &= ~WD_COMP_CAN_REFUSE;
	replace_driver(&driver, &lax);
	for (size_t f = 0; f < COUNT(formats); f++) {
		size_t n = pack(formats[f], SIZE, NULL, 0);
		struct twins *t = open_twins(formats[f], n);

		jobs = 0;
		assert_int_equal(step(t, ROOM, Z_FINISH), Z_STREAM_END);
		assert_int_equal(jobs, formats[f] < 0 ? 0 : 1);
		close_twins(t);
	}
	replace_driver(&lax, &driver);
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
	/* One that others follow, and then one that is large. (Bug: only a driver
	 * that told a part from damage was asked for all of it.) */
	t = open_twins(31, at);
	assert_int_equal(step(t, ROOM, Z_NO_FLUSH), Z_STREAM_END);
	close_twins(t);
	begin(NULL);
	strict = true;
	n = pack(15, SIZE, NULL, 0);
	assert_true(n > 65536);
	t = open_twins(15, n);
	finish(t, ROOM, Z_NO_FLUSH);
	assert_int_equal(good, 1);
	close_twins(t);
}

/* A driver with a limit for one job gets no more than that. */
static void test_limit(void **state)
{
	struct wd_alg_comp small = driver;
	size_t n = pack(31, 20000, NULL, 0);
	struct twins *t;

	(void)state;
	small.can |= WD_COMP_SIZED;
	small.version = WD_COMP_DRV_VERSION;
	small.size = sizeof(small);
	small.limits.src_max = n + 500;
	replace_driver(&driver, &small);
	memset(packed + n, 1, 100000);
	t = open_twins(31, n + 100000);
	assert_int_equal(step(t, ROOM, Z_NO_FLUSH), Z_STREAM_END);
	assert_int_equal(good, 1);
	assert_int_equal(given, n + 500);
	close_twins(t);
	replace_driver(&small, &driver);
}

/* Output that is kept for later calls has a limit for all streams: data beyond
 * it are decoded when they are wanted. */
static void test_kept(void **state)
{
	size_t n = pack(-15, SIZE, NULL, 0);
	uint8_t out[100];
	z_stream s[6];

	(void)state;
	boasts = true;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < COUNT(s); i++) {
			s[i] = (z_stream){ .next_in = packed,
					   .avail_in = (uInt)n,
					   .next_out = out,
					   .avail_out = sizeof(out) };
			memset(out, 1, sizeof(out));
			assert_int_equal(inflateInit2(&s[i], -15), Z_OK);
			assert_int_equal(inflate(&s[i], Z_NO_FLUSH), Z_OK);
			/* 256 MiB, which is four of them less their input. */
			assert_int_equal(memcmp(out, data, sizeof(out)) != 0,
					 i < 3);
		}
		for (size_t i = 0; i < COUNT(s); i++)
			assert_int_equal(inflateEnd(&s[i]), Z_OK);
	}
}

/* Messages without an end, each the first of a stream, are not for the driver:
 * it is asked now and then whether that has changed. */
static void test_parts(void **state)
{
	size_t n = pack(15, SIZE, NULL, 0);
	struct twins *t = open_twins(15, n);

	(void)state;
	for (int i = 0; i < 8 + 160; i++) {
		for (int k = 0; k < 2; k++) {
			CALL(k, inflateReset, &t->s[k]);
			t->s[k].next_in = packed;
			t->s[k].avail_in = 2000;
			t->s[k].next_out = t->out[k];
		}
		assert_int_equal(step(t, ROOM, Z_NO_FLUSH), Z_OK);
	}
	assert_in_range(jobs, 8 + 9, 8 + 11);
	for (int i = 0; i < 17 && !good; i++) {
		close_twins(t);
		t = open_twins(15, n);
		finish(t, ROOM, Z_NO_FLUSH);
	}
	assert_int_equal(good, 1);
	close_twins(t);
	t = open_twins(15, n);
	finish(t, ROOM, Z_NO_FLUSH);
	assert_int_equal(good, 2);
	close_twins(t);
}

/* The same for streams whose output is more than a driver takes. (Bug: it was
 * asked for each of them, with more memory each time.) */
static void test_too_long(void **state)
{
	size_t n = pack(15, SIZE, NULL, 0);
	int asked = 0;

	(void)state;
	for (int i = 0; i < 1 + 8 + 160; i++) {
		struct twins *t = open_twins(15, n);
		int before = jobs;

		/* The first is one that it can do. */
		answer = i ? -ENOSPC : 0;
		finish(t, ROOM, Z_NO_FLUSH);
		asked += jobs > before;
		close_twins(t);
	}
	assert_in_range(asked, 1 + 8 + 9, 1 + 8 + 11);
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
		cmocka_unit_test_setup(test_own, begin),
		cmocka_unit_test_setup(test_unchecked, begin),
		cmocka_unit_test_setup(test_members, begin),
		cmocka_unit_test_setup(test_limit, begin),
		cmocka_unit_test_setup(test_kept, begin),
		cmocka_unit_test_setup(test_parts, begin),
		cmocka_unit_test_setup(test_calls, begin),
		cmocka_unit_test_setup(test_too_long, begin),
	};

	return RUN_TWINS(tests);
}
