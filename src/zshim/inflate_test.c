/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the shim's promises about streams beside zlib's answers,
 * which the fuzzer compares: which driver does them, what they allocate, that
 * output may overwrite input that is used, and that a window outlives
 * inflateResetKeep(). A driver that only counts sees what goes to drivers.
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

#define SIZE 200000u

static uint8_t data[SIZE], packed[SIZE * 2], plain[SIZE * 2];
static const struct wf_zreal *z;

/* The same call by weft (0) or by zlib (1). */
#define CALL(which, name, ...)                                                 \
	((which) ? z->name(__VA_ARGS__) : name(__VA_ARGS__))

static int inflates, deflates;

static int count_inflate(struct wd_comp_job *job)
{
	(void)job;
	inflates++;
	return -ENODEV; /* the next driver does it */
}

static int count_deflate(struct wd_comp_job *job)
{
	(void)job;
	deflates++;
	return -ENODEV;
}

static const struct wd_alg_comp counter = {
	.name = "counter",
	.priority = 1000,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE | WD_COMP_CAN_REFUSE,
	.levels = 0x3ff,
	.deflate = count_deflate,
	.inflate = count_inflate,
};

static int setup(void **state)
{
	uint64_t seed = 1;

	(void)state;
	z = wf_zreal_get();
	/* Six of eight bits are noise. */
	for (size_t i = 0; i < SIZE; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		data[i] = (uint8_t)(seed >> 58);
	}
	return z ? wd_alg_comp_register(&counter) : -1;
}

static int teardown(void **state)
{
	(void)state;
	return wd_alg_comp_unregister(&counter);
}

static size_t pack(int bits, size_t len, uint8_t *to)
{
	z_stream s = { 0 };

	assert_int_equal(z->deflateInit2_(&s, 6, Z_DEFLATED, bits, 8, 0,
					  ZLIB_VERSION, sizeof(s)),
			 Z_OK);
	s.next_in = data;
	s.avail_in = (uInt)len;
	s.next_out = to;
	s.avail_out = SIZE * 2;
	assert_int_equal(z->deflate(&s, Z_FINISH), Z_STREAM_END);
	z->deflateEnd(&s);
	return s.total_out;
}

static void open_inflate(int which, z_stream *s, int bits)
{
	assert_int_equal(CALL(which, inflateInit2_, s, bits, ZLIB_VERSION,
			      (int)sizeof(*s)),
			 Z_OK);
}

static void unpack(int bits, size_t packed_len, size_t len, int flush)
{
	z_stream s = { 0 };
	int ret;

	open_inflate(0, &s, bits);
	s.next_in = packed;
	s.avail_in = (uInt)packed_len;
	s.next_out = plain;
	s.avail_out = (uInt)len + 1;
	ret = inflate(&s, flush);
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(s.total_out, len);
	assert_memory_equal(plain, data, len);
	assert_int_equal(inflateEnd(&s), Z_OK);
}

/* A stream is nobody else's: neither a driver nor zlib is asked, whatever its
 * size and however it is cut. */
static void test_streams_are_ours(void **state)
{
	static const size_t sizes[] = { 0, 80, 256, 1024, 4096, 16384, SIZE };

	(void)state;
	inflates = 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uLongf len = SIZE;
		size_t n;

		for (int bits = 15; bits <= 31; bits += 16) {
			n = pack(bits, sizes[i], packed);
			unpack(bits, n, sizes[i], Z_FINISH);
			unpack(bits, n, sizes[i], Z_NO_FLUSH);
			unpack(47, n, sizes[i], Z_FINISH);
		}
		n = pack(15, sizes[i], packed);
		/* As git: much behind it, room for this one only. */
		unpack(15, n + SIZE, sizes[i], Z_FINISH);
		assert_int_equal(uncompress(plain, &len, packed, n), Z_OK);
		assert_int_equal(len, sizes[i]);
	}
	assert_int_equal(inflates, 0);
}

/* The other way: what clears large tables is not asked for a small buffer, nor
 * for small flushes. */
static void test_small_deflate(void **state)
{
	static const int flushes[] = { Z_PARTIAL_FLUSH, Z_SYNC_FLUSH,
				       Z_FULL_FLUSH, Z_BLOCK };
	uLongf len;

	(void)state;
	deflates = 0;
	for (int level = 1; level <= 9; level++) {
		for (uLong n = 0; n <= 256; n += 64) {
			len = sizeof(packed);
			assert_int_equal(
				compress2(packed, &len, data, n, level), Z_OK);
			unpack(15, len, n, Z_FINISH);
		}
	}
	for (int i = 0; i < 4; i++) {
		z_stream s = { 0 };

		assert_int_equal(deflateInit(&s, 6), Z_OK);
		s.next_in = data;
		s.next_out = packed;
		s.avail_out = sizeof(packed);
		for (int k = 0; k < 5; k++) {
			s.avail_in = 700;
			assert_int_equal(deflate(&s, flushes[i]), Z_OK);
		}
		assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
		unpack(15, s.total_out, 3500, Z_FINISH);
		assert_int_equal(deflateEnd(&s), Z_OK);
	}
	assert_int_equal(deflates, 0);
	len = sizeof(packed);
	assert_int_equal(compress(packed, &len, data, SIZE), Z_OK);
	assert_int_equal(deflates, 1);
}

static void *count_alloc(void *opaque, unsigned int items, unsigned int size)
{
	++*(int *)opaque;
	return malloc((size_t)items * size);
}

static void count_free(void *opaque, void *ptr)
{
	(void)opaque;
	free(ptr);
}

/* A stream asks for memory as often as zlib's does. */
static void test_allocates_as_zlib(void **state)
{
	size_t n = pack(15, 80, packed);
	int count[2] = { 0, 0 };

	(void)state;
	for (int which = 0; which < 2; which++) {
		z_stream s = { .zalloc = count_alloc,
			       .zfree = count_free,
			       .opaque = &count[which] };

		open_inflate(which, &s, 15);
		s.next_in = packed;
		s.avail_in = (uInt)n;
		s.next_out = plain;
		s.avail_out = 80;
		assert_int_equal(CALL(which, inflate, &s, Z_FINISH),
				 Z_STREAM_END);
		assert_int_equal(CALL(which, inflateEnd, &s), Z_OK);
	}
	assert_int_equal(count[0], count[1]);
}

/* Compressed data at the end of the buffer that it is decompressed to. A call
 * wrote to it and then gave zlib what was left of its input. */
static void test_in_place(void **state)
{
	static uint8_t buf[SIZE + 1000];
	size_t n = pack(15, SIZE, packed), at = sizeof(buf) - n;

	(void)state;
	for (int i = 0; i < 6; i++) {
		int which = i & 1;
		int flush = i / 2 == 0 ? Z_FINISH : Z_NO_FLUSH;
		z_stream s = { 0 };
		int ret;

		memcpy(buf + at, packed, n);
		open_inflate(which, &s, 15);
		s.next_in = buf + at;
		s.next_out = buf;
		s.avail_out = sizeof(buf);
		s.avail_in = (uInt)(i / 2 == 2 ? n / 2 : n);
		ret = CALL(which, inflate, &s, flush);
		if (i / 2 == 2) {
			assert_int_equal(ret, Z_OK);
			s.avail_in = (uInt)(n - n / 2);
			ret = CALL(which, inflate, &s, flush);
		}
		assert_int_equal(ret, Z_STREAM_END);
		assert_int_equal(s.total_out, SIZE);
		assert_memory_equal(buf, data, SIZE);
		CALL(which, inflateEnd, &s);
	}
}

/* One stream, inflateResetKeep(), and one that looks back at the end of the
 * first: what zlib answers to each call. */
struct kept {
	int first;
	uInt window; /* after the first */
	int second;
	uLong out;
};

static struct kept reset_keep(int which, int bits, int flush, bool cut)
{
	static uint8_t second[SIZE];
	size_t n = pack(bits, SIZE, packed);
	z_stream d = { .next_in = data + SIZE - 20000, .avail_in = 20000 };
	z_stream s = { .next_in = packed, .next_out = plain };
	struct kept kept = { 0 };

	z->deflateInit2_(&d, 6, Z_DEFLATED, -15, 8, 0, ZLIB_VERSION, sizeof(d));
	z->deflateSetDictionary(&d, data + SIZE - 20000, 20000);
	/* The same header, which says nothing of a dictionary. */
	memcpy(second, packed, 10);
	d.next_out = second + (bits < 0 ? 0 : bits == 15 ? 2 : 10);
	d.avail_out = SIZE - 10;
	assert_int_equal(z->deflate(&d, Z_FINISH), Z_STREAM_END);
	z->deflateEnd(&d);
	open_inflate(which, &s, bits);
	s.avail_in = (uInt)(cut ? n / 2 : n);
	s.avail_out = SIZE;
	kept.first = CALL(which, inflate, &s, flush);
	if (cut) {
		s.avail_in = (uInt)(n - n / 2);
		kept.first = CALL(which, inflate, &s, flush);
	}
	CALL(which, inflateGetDictionary, &s, NULL, &kept.window);
	assert_int_equal(CALL(which, inflateResetKeep, &s), Z_OK);
	s.next_in = second;
	s.avail_in = sizeof(second);
	s.next_out = plain + SIZE;
	s.avail_out = 20000;
	kept.second = CALL(which, inflate, &s, Z_NO_FLUSH);
	kept.out = s.total_out;
	CALL(which, inflateEnd, &s);
	return kept;
}

/* The window is kept where zlib keeps it, and only there. */
static void test_reset_keep(void **state)
{
	static const int formats[] = { -15, 15, 31 };
	static const int flushes[] = { Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH };
	int looked_back = 0;

	(void)state;
	for (int i = 0; i < 18; i++) {
		int bits = formats[i % 3], flush = flushes[i / 3 % 3];
		struct kept weft = reset_keep(0, bits, flush, i >= 9);
		struct kept real = reset_keep(1, bits, flush, i >= 9);

		assert_int_equal(weft.first, real.first);
		assert_int_equal(weft.window, real.window);
		assert_int_equal(weft.second, real.second);
		assert_int_equal(weft.out, real.out);
		looked_back += real.out == 20000;
	}
	assert_true(looked_back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams_are_ours),
		cmocka_unit_test(test_small_deflate),
		cmocka_unit_test(test_allocates_as_zlib),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_reset_keep),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
