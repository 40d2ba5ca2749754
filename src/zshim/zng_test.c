/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib-ng's names: a program that knows only them packs, flushes, copies,
 * changes parameters and unpacks; and what it packs, zlib unpacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zreal/real.h"
#include "zshim/zng.h"

#define SIZE 300000u

int32_t zng_deflateInit2(struct wf_zng_stream *, int32_t, int32_t, int32_t,
			 int32_t, int32_t);
int32_t zng_deflateInit_(struct wf_zng_stream *, int32_t, const char *,
			 int32_t);
int32_t zng_deflate(struct wf_zng_stream *, int32_t);
int32_t zng_deflateEnd(struct wf_zng_stream *);
int32_t zng_deflateCopy(struct wf_zng_stream *, struct wf_zng_stream *);
int32_t zng_deflateSetParams(struct wf_zng_stream *, struct wf_zng_value *,
			     size_t);
int32_t zng_deflateGetParams(struct wf_zng_stream *, struct wf_zng_value *,
			     size_t);
unsigned long zng_deflateBound(struct wf_zng_stream *, unsigned long);
int32_t zng_inflateInit2(struct wf_zng_stream *, int32_t);
int32_t zng_inflate(struct wf_zng_stream *, int32_t);
int32_t zng_inflateReset(struct wf_zng_stream *);
int32_t zng_inflateEnd(struct wf_zng_stream *);
int32_t zng_compress2(uint8_t *, size_t *, const uint8_t *, size_t, int32_t);
int32_t zng_uncompress(uint8_t *, size_t *, const uint8_t *, size_t);
uint32_t zng_crc32(uint32_t, const uint8_t *, uint32_t);
uint32_t zng_adler32_combine(uint32_t, uint32_t, off64_t);
gzFile zng_gzopen(const char *, const char *);
int32_t zng_gzwrite(gzFile, const void *, uint32_t);
int32_t zng_gzread(gzFile, void *, uint32_t);
int32_t zng_gzclose(gzFile);
const char *zlibng_version(void);

static uint8_t data[SIZE], packed[SIZE * 2], plain[SIZE];

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * (i >> 9) >> 6);
	return 0;
}

static void check_real(int bits, size_t len)
{
	const struct wf_zreal *z = wf_zreal_get();
	z_stream s = { 0 };

	assert_int_equal(z->inflateInit2_(&s, bits, ZLIB_VERSION, sizeof(s)),
			 Z_OK);
	s.next_in = packed;
	s.avail_in = (uInt)len;
	s.next_out = plain;
	s.avail_out = SIZE;
	assert_int_equal(z->inflate(&s, Z_FINISH), Z_STREAM_END);
	assert_int_equal(s.total_out, SIZE);
	assert_memory_equal(plain, data, SIZE);
	z->inflateEnd(&s);
}

static void test_streams(void **state)
{
	static const int kinds[] = { 15, 31, -15, 12 };

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct wf_zng_stream s = { 0 }, copy = { 0 };
		int level = 1, got, bits = kinds[i & 3];
		struct wf_zng_value value = { WF_ZNG_LEVEL, &level,
					      sizeof(level), 9 };

		assert_int_equal(zng_deflateInit2(&s, 6, 8, bits, 8, 0), Z_OK);
		s.next_in = data;
		s.avail_in = SIZE / 2;
		s.next_out = packed;
		s.avail_out = sizeof(packed);
		assert_int_equal(zng_deflate(&s, i & 4 ? Z_SYNC_FLUSH : 0),
				 Z_OK);
		assert_int_equal(s.total_in, SIZE / 2);
		if (i & 8)
			assert_int_equal(zng_deflateSetParams(&s, &value, 1),
					 Z_OK);
		value.buf = &got;
		assert_int_equal(zng_deflateGetParams(&s, &value, 1), Z_OK);
		assert_int_equal(got, i & 8 ? 1 : 6);
		value.size = 1;
		assert_int_equal(zng_deflateSetParams(&s, &value, 1),
				 Z_BUF_ERROR);
		assert_int_equal(zng_deflateCopy(&copy, &s), Z_OK);
		assert_int_equal(zng_deflateEnd(&s), Z_DATA_ERROR);
		copy.avail_in = SIZE - SIZE / 2;
		assert_int_equal(zng_deflate(&copy, Z_FINISH), Z_STREAM_END);
		if (bits == 15)
			assert_int_equal(copy.adler, adler32(1, data, SIZE));
		check_real(bits, copy.total_out);
		s = (struct wf_zng_stream){ 0 };
		assert_int_equal(zng_inflateInit2(&s, bits), Z_OK);
		for (int twice = 0; twice < 2; twice++) {
			s.next_in = packed;
			s.avail_in = (uint32_t)copy.total_out;
			s.next_out = plain;
			s.avail_out = SIZE;
			memset(plain, 0, SIZE);
			assert_int_equal(zng_inflate(&s, Z_NO_FLUSH),
					 Z_STREAM_END);
			assert_int_equal(s.avail_in, 0);
			assert_memory_equal(plain, data, SIZE);
			assert_int_equal(zng_inflateReset(&s), Z_OK);
		}
		assert_int_equal(zng_inflateEnd(&s), Z_OK);
		assert_int_equal(zng_deflateEnd(&copy), Z_OK);
		assert_int_equal(zng_deflateEnd(&copy), Z_STREAM_ERROR);
	}
}

static void test_whole(void **state)
{
	struct wf_zng_stream s = { 0 };
	size_t n = sizeof(packed), m = SIZE;
	char path[] = "/tmp/weft-zng-XXXXXX";
	int fd = mkstemp(path);
	gzFile file;

	(void)state;
	assert_int_equal(zlibng_version()[0], '2');
	assert_int_equal(zng_deflateInit_(&s, 6, "1.2", sizeof(s)),
			 Z_VERSION_ERROR);
	assert_int_equal(zng_deflateInit_(&s, 6, zlibng_version(), sizeof(s)),
			 Z_OK);
	assert_true(zng_deflateBound(&s, 1000) > 1000);
	assert_int_equal(zng_deflateEnd(&s), Z_OK);
	assert_int_equal(zng_compress2(packed, &n, data, SIZE, 4), Z_OK);
	assert_int_equal(zng_uncompress(plain, &m, packed, n), Z_OK);
	assert_int_equal(m, SIZE);
	assert_int_equal(zng_crc32(0, data, SIZE), crc32(0, data, SIZE));
	assert_int_equal(zng_adler32_combine((uint32_t)adler32(1, data, 5),
					     (uint32_t)adler32(1, data + 5, 9),
					     9),
			 adler32(1, data, 14));
	assert_true(fd >= 0);
	file = zng_gzopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(zng_gzwrite(file, data, SIZE), SIZE);
	assert_int_equal(zng_gzclose(file), Z_OK);
	file = zng_gzopen(path, "rb");
	memset(plain, 0, SIZE);
	assert_int_equal(zng_gzread(file, plain, SIZE), SIZE);
	assert_memory_equal(plain, data, SIZE);
	assert_int_equal(zng_gzclose(file), Z_OK);
	remove(path);
}

static int set_reproducible(struct wf_zng_stream *s, int *status)
{
	int on = 1;
	struct wf_zng_value value = { WF_ZNG_REPRODUCIBLE, &on, sizeof(on), 9 };
	int ret = zng_deflateSetParams(s, &value, 1);

	*status = value.status;
	return ret;
}

static size_t pack_in(size_t cut, int level, uint8_t *to)
{
	struct wf_zng_stream s = { .next_in = data,
				   .next_out = to,
				   .avail_out = SIZE };
	int ret, status;

	assert_int_equal(zng_deflateInit2(&s, level, 8, 31, 8, 0), Z_OK);
	assert_int_equal(set_reproducible(&s, &status), Z_OK);
	assert_int_equal(status, Z_OK);
	do {
		size_t left = SIZE - s.total_in;

		s.avail_in = (uint32_t)(left < cut ? left : cut);
		ret = zng_deflate(&s, left <= cut ? Z_FINISH : Z_NO_FLUSH);
	} while (ret == Z_OK);
	assert_int_equal(ret, Z_STREAM_END);
	assert_int_equal(zng_deflateEnd(&s), Z_OK);
	return s.total_out;
}

/* The setting was accepted and ignored. The stream is the real library's then:
 * zlib's output does not depend on the cuts; zlib-ng promises the same bytes
 * for the same calls. */
static void test_reproducible(void **state)
{
	static const size_t cuts[] = { 77777, 1, 1000, 60000, 200000, SIZE };
	bool is_ng = strstr(wf_zreal_get()->zlibVersion(), "zlib-ng");
	size_t count = is_ng ? 1 : sizeof(cuts) / sizeof(cuts[0]);
	struct wf_zng_stream s = { 0 };
	int status;

	(void)state;
	for (int level = 1; level <= 9; level++) {
		size_t n = pack_in(77777, level, packed);

		for (size_t i = 0; i < count; i++) {
			assert_int_equal(pack_in(cuts[i], level, packed + SIZE),
					 n);
			assert_memory_equal(packed, packed + SIZE, n);
		}
	}
	/* Not after some of it was done otherwise. */
	assert_int_equal(zng_deflateInit2(&s, 6, 8, 15, 8, 0), Z_OK);
	s.next_in = data;
	s.avail_in = SIZE;
	s.next_out = packed;
	s.avail_out = SIZE;
	assert_int_equal(zng_deflate(&s, Z_NO_FLUSH), Z_OK);
	assert_int_equal(set_reproducible(&s, &status), Z_STREAM_ERROR);
	assert_int_equal(status, Z_STREAM_ERROR);
	zng_deflateEnd(&s);
}

static int allowed;

static void *count_alloc(void *opaque, unsigned int items, unsigned int size)
{
	(void)opaque;
	return allowed-- > 0 ? malloc((size_t)items * size) : NULL;
}

static void count_free(void *opaque, void *ptr)
{
	(void)opaque;
	free(ptr);
}

/* A copy that failed is no stream, and does no harm to the first. */
static void test_copy_fails(void **state)
{
	struct wf_zng_stream s = { .zalloc = count_alloc, .zfree = count_free };
	struct wf_zng_stream copy;

	(void)state;
	allowed = 100;
	assert_int_equal(zng_deflateInit2(&s, 6, Z_DEFLATED, 15, 8, 0), Z_OK);
	for (int i = 0; i < 2; i++) {
		allowed = i;
		assert_int_equal(zng_deflateCopy(&copy, &s), Z_MEM_ERROR);
		assert_int_equal(zng_deflateEnd(&copy), Z_STREAM_ERROR);
	}
	allowed = 100;
	s.next_in = data;
	s.avail_in = SIZE;
	s.next_out = packed;
	s.avail_out = sizeof(packed);
	assert_int_equal(zng_deflate(&s, Z_FINISH), Z_STREAM_END);
	check_real(15, s.total_out);
	assert_int_equal(zng_deflateEnd(&s), Z_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_reproducible),
		cmocka_unit_test(test_copy_fails),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
