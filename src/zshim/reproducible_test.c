/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With WD_COMP_REPRODUCIBLE set, the same input at the same level gives the
 * same bytes, however it is cut into calls: by zlib's API and by weft's own.
 * With zlib-ng underneath it does so for the same calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <weft/wd_comp.h>

#define SIZE 400000u

static uint8_t data[SIZE], packed[2][SIZE * 2];
static uint64_t seed = 1;

static size_t rnd(size_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static int setup(void **state)
{
	(void)state;
	/* Some of it does not compress at all. */
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)rnd(i / 50000 % 3 ? 40 : 256);
	for (size_t i = 1000; i < SIZE - 300; i += 1 + rnd(600))
		memmove(data + i, data + i - rnd(1000), rnd(300));
	return 0;
}

static size_t next_cut(size_t left, size_t most)
{
	size_t n = most ? 1 + rnd(rnd(2) ? most : 100) : left;

	return n < left ? n : left;
}

static size_t by_zlib(int bits, int level, size_t most, uint8_t *to)
{
	z_stream s = { .next_in = data, .next_out = to };
	int ret;

	assert_int_equal(deflateInit2(&s, level, Z_DEFLATED, bits, 8, 0), Z_OK);
	do {
		size_t left = SIZE - s.total_in;

		s.avail_in = (uInt)next_cut(left, most);
		s.avail_out = (uInt)next_cut(SIZE * 2 - s.total_out, most);
		ret = deflate(&s, s.avail_in == left ? Z_FINISH : Z_NO_FLUSH);
	} while (ret == Z_OK || ret == Z_BUF_ERROR);
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(deflateEnd(&s), Z_OK);
	return s.total_out;
}

static size_t by_weft(int alg, int level, size_t most, uint8_t *to)
{
	struct wd_comp_ctx ctx = { .stream_mode = WD_COMP_STATEFUL,
				   .new_stream = 1,
				   .comp_level = level,
				   .alg_type = alg };
	size_t at = 0, end = 0;

	do {
		size_t in = next_cut(SIZE - at, most);
		size_t out = next_cut(SIZE * 2 - end, most);

		ctx.flush_type =
			in == SIZE - at ? WD_COMP_FINISH : WD_COMP_NO_FLUSH;
		assert_int_equal(
			wd_alg_deflate(&ctx, data + at, &in, to + end, &out),
			0);
		at += in;
		end += out;
	} while (ctx.status != WD_COMP_END);
	wd_alg_end(&ctx);
	return end;
}

static void test_cuts(void **state)
{
	static const size_t cuts[] = { 5000, 70000, 300000 };
	bool is_ng = strstr(zlibVersion(), "zlib-ng");

	(void)state;
	for (int i = 0; i < 9 * 3; i++) {
		int level = i % 9 + 1;
		int bits = i / 9 == 0 ? -15 : i / 9 == 1 ? 15 : 31;
		size_t first = is_ng ? cuts[i % 3] : 0;
		uint64_t begin = seed;
		size_t n = by_zlib(bits, level, first, packed[0]);

		if (is_ng)
			seed = begin;
		assert_int_equal(by_zlib(bits, level, cuts[i % 3], packed[1]),
				 n);
		assert_memory_equal(packed[0], packed[1], n);
		begin = seed;
		n = by_weft(i / 9, level, first, packed[0]);
		if (is_ng)
			seed = begin;
		assert_int_equal(by_weft(i / 9, level, cuts[i % 3], packed[1]),
				 n);
		assert_memory_equal(packed[0], packed[1], n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),
	};

	setenv("WD_COMP_REPRODUCIBLE", "1", 1);
	return cmocka_run_group_tests(tests, setup, NULL);
}
