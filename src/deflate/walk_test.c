/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk says where inflate is when the last block begins and when it ends,
 * for every kind of block, and refuses what is cut or damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deflate/inflate.h"
#include "deflate/walk.h"
#include "zreal/real.h"

#define SIZE 150000u
#define ROOM (2 * SIZE)
#define BETWEEN 128 /* in data_type: between two blocks */
#define LAST 64	    /* ... the one before was the last */

static uint8_t data[SIZE], packed[ROOM], plain[SIZE];
static uint64_t seed = 1;

static size_t rnd(size_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)rnd(i / 20000 % 3 ? 40 : 256);
	for (size_t i = 1000; i < SIZE - 300; i += 1 + rnd(400))
		memmove(data + i, data + i - rnd(1000), rnd(300));
	return wf_zreal_get() ? 0 : -1;
}

static size_t pack(int level, int strategy, size_t len, int flush)
{
	const struct wf_zreal *z = wf_zreal_get();
	z_stream s = { .next_in = data, .next_out = packed, .avail_out = ROOM };
	size_t left = len;
	int ret;

	assert_int_equal(z->deflateInit2_(&s, level, Z_DEFLATED, -15, 8,
					  strategy, ZLIB_VERSION, sizeof(s)),
			 Z_OK);
	do {
		s.avail_in = (uInt)(flush ? 1 + rnd(20000) : left);
		if (s.avail_in > left)
			s.avail_in = (uInt)left;
		left -= s.avail_in;
		ret = z->deflate(&s, left ? flush : Z_FINISH);
	} while (ret == Z_OK);
	assert_int_equal(ret, Z_STREAM_END);
	z->deflateEnd(&s);
	return s.total_out;
}

static void *get(void *opaque, size_t size)
{
	(void)opaque;
	return malloc(size);
}

static void put(void *opaque, void *p)
{
	(void)opaque;
	free(p);
}

/* The same by inflate, which stops between blocks. */
static struct wf_walk by_inflate(size_t len)
{
	struct wf_inflate_codes *codes = malloc(sizeof(*codes));
	struct wf_inflate_io io = { packed, len, plain, SIZE };
	struct wf_walk walk = { 0 };
	enum wf_inflate_ret ret;
	struct wf_inflate s;
	int type;

	assert_non_null(codes);
	wf_deflate_inflate_init(&s, codes, (struct wd_comp_mem){ get, put, 0 },
				WF_INFLATE_RAW, 15);
	do {
		walk.final_bit = walk.end_bit;
		ret = wf_deflate_inflate_run(&s, &io, WF_INFLATE_BLOCK);
		assert_int_equal(ret, WF_INFLATE_OK);
		type = wf_deflate_inflate_data_type(&s);
		assert_true(type & BETWEEN);
		walk.end_bit = (size_t)(io.in - packed) * 8 - (type & 63);
	} while (!(type & LAST));
	wf_deflate_inflate_end(&s);
	free(codes);
	return walk;
}

static void test_streams(void **state)
{
	static const int flushes[] = { 0, Z_BLOCK, Z_PARTIAL_FLUSH,
				       Z_SYNC_FLUSH };

	(void)state;
	for (int i = 0; i < 4 * 5 * 10; i++) {
		size_t len = i % 7 ? SIZE - rnd(1000) : rnd(300);
		size_t n = pack(i / 20, i / 4 % 5, len, flushes[i % 4]);
		struct wf_walk want = by_inflate(n), got;

		/* Nothing looks at the bytes that follow. */
		memset(packed + n, 0xff, 16);
		assert_int_equal(wf_deflate_walk(packed, n + 16, &got), 0);
		assert_int_equal(got.final_bit, want.final_bit);
		assert_int_equal(got.end_bit, want.end_bit);
		assert_int_equal(wf_deflate_walk(packed, n, &got), 0);
		assert_int_equal(got.end_bit, want.end_bit);
	}
}

/* Memory that ends where the data does shows a read too far (ASan). */
static void test_cut(void **state)
{
	struct wf_walk walk;

	(void)state;
	for (int strategy = 0; strategy <= Z_FIXED; strategy++) {
		size_t n = pack(6, strategy, 3000, Z_BLOCK);

		for (size_t len = 0; len < n; len++) {
			uint8_t *exact = malloc(len ? len : 1);

			assert_non_null(exact);
			memcpy(exact, packed, len);
			assert_int_equal(wf_deflate_walk(exact, len, &walk),
					 -EBADMSG);
			free(exact);
		}
	}
}

static void test_refused(void **state)
{
	static const uint8_t type3[] = { 7, 0, 0 };
	static const uint8_t lengths[] = { 1, 5, 0, 0xfa, 0xfe, 1, 2, 3, 4, 5 };
	/* Symbol 286 of a fixed block, 11000110. */
	static const uint8_t symbol[] = { 0x1b, 0x03, 0, 0, 0, 0, 0, 0 };
	struct wf_walk walk;

	(void)state;
	assert_int_equal(wf_deflate_walk(type3, sizeof(type3), &walk),
			 -EBADMSG);
	assert_int_equal(wf_deflate_walk(lengths, sizeof(lengths), &walk),
			 -EBADMSG);
	assert_int_equal(wf_deflate_walk(symbol, sizeof(symbol), &walk),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
