/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib's API where programs rarely go: questions after the end of a stream,
 * dictionaries in its middle, parameters after it, flushes one after the other,
 * and no memory. Answers are compared with zlib's own.
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

#include "zreal/real.h"

#define SIZE 200000u

static uint8_t data[SIZE], packed[SIZE * 2], plain[SIZE * 2];
static const struct wf_zreal *z;

/* The same call by weft (0) or by zlib (1). */
#define CALL(which, name, ...)                                                 \
	((which) ? z->name(__VA_ARGS__) : name(__VA_ARGS__))

static int setup(void **state)
{
	(void)state;
	z = wf_zreal_get();
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * (i >> 9) >> 6);
	return z ? 0 : -1;
}

static size_t pack(int bits)
{
	z_stream s = { 0 };

	assert_int_equal(z->deflateInit2_(&s, 6, Z_DEFLATED, bits, 8, 0,
					  ZLIB_VERSION, sizeof(s)),
			 Z_OK);
	s.next_in = data;
	s.avail_in = SIZE;
	s.next_out = packed;
	s.avail_out = sizeof(packed);
	assert_int_equal(z->deflate(&s, Z_FINISH), Z_STREAM_END);
	z->deflateEnd(&s);
	return s.total_out;
}

static void open_inflate(int which, z_stream *s, int bits)
{
	*s = (z_stream){ 0 };
	assert_int_equal(CALL(which, inflateInit2_, s, bits, ZLIB_VERSION,
			      (int)sizeof(*s)),
			 Z_OK);
}

static int inflate_all(int which, z_stream *s, size_t len)
{
	s->next_in = packed;
	s->avail_in = (uInt)len;
	s->next_out = plain;
	s->avail_out = sizeof(plain);
	return CALL(which, inflate, s, Z_NO_FLUSH);
}

/* A stream that has ended stays at its end, whatever is asked. */
static void test_after_end(void **state)
{
	size_t len = pack(31);

	(void)state;
	for (int which = 0; which < 2; which++) {
		gz_header head = { .done = 7 };
		z_stream s, copy;

		open_inflate(which, &s, 47);
		assert_int_equal(inflate_all(which, &s, len), Z_STREAM_END);
		assert_int_equal(CALL(which, inflateMark, &s), -65536);
		assert_int_equal(CALL(which, inflateSyncPoint, &s), 0);
		assert_int_equal(
			CALL(which, inflateGetDictionary, &s, NULL, NULL),
			Z_OK);
		assert_int_equal(CALL(which, inflateSetDictionary, &s, data, 9),
				 Z_STREAM_ERROR);
		assert_int_equal(CALL(which, inflatePrime, &s, 3, 1), Z_OK);
		assert_int_equal(CALL(which, inflatePrime, &s, 17, 1),
				 Z_STREAM_ERROR);
		assert_int_equal(CALL(which, inflateUndermine, &s, 1),
				 Z_DATA_ERROR);
		assert_int_equal(CALL(which, inflateGetHeader, &s, &head),
				 Z_OK);
		assert_int_equal(head.done, 0);
		assert_int_equal(CALL(which, inflateReset2, &s, 99),
				 Z_STREAM_ERROR);
		assert_int_equal(CALL(which, inflate, &s, Z_NO_FLUSH),
				 Z_STREAM_END);
		assert_int_equal(s.total_in, len);
		assert_int_equal(s.total_out, SIZE);
		assert_int_equal(CALL(which, inflateCopy, &copy, &s), Z_OK);
		assert_int_equal(CALL(which, inflateReset, &s), Z_OK);
		assert_int_equal(inflate_all(which, &s, len), Z_STREAM_END);
		assert_memory_equal(plain, data, SIZE);
		assert_int_equal(CALL(which, inflate, &copy, Z_NO_FLUSH),
				 Z_STREAM_END);
		assert_int_equal(CALL(which, inflateEnd, &copy), Z_OK);
		assert_int_equal(CALL(which, inflateEnd, &s), Z_OK);
		assert_int_equal(CALL(which, inflateEnd, &s), Z_STREAM_ERROR);
	}
}

/* The setting of inflateValidate() holds until the window is set anew. */
static void test_validate_stays(void **state)
{
	size_t len = pack(15);

	(void)state;
	packed[len - 1] ^= 1;
	for (int which = 0; which < 2; which++) {
		z_stream s;

		open_inflate(which, &s, 15);
		assert_int_equal(CALL(which, inflateValidate, &s, 0), Z_OK);
		assert_int_equal(CALL(which, inflateReset, &s), Z_OK);
		assert_int_equal(inflate_all(which, &s, len), Z_STREAM_END);
		assert_int_equal(CALL(which, inflateReset2, &s, 15), Z_OK);
		assert_int_equal(inflate_all(which, &s, len), Z_DATA_ERROR);
		CALL(which, inflateEnd, &s);
	}
}

static void open_raw(z_stream *s, int level)
{
	*s = (z_stream){ 0 };
	assert_int_equal(deflateInit2(s, level, Z_DEFLATED, -15, 8, 0), Z_OK);
	s->next_out = packed;
	s->avail_out = sizeof(packed);
}

static void give(z_stream *s, const uint8_t *from, size_t len, int flush)
{
	s->next_in = (Bytef *)(uintptr_t)from;
	s->avail_in = (uInt)len;
	assert_int_equal(deflate(s, flush),
			 flush == Z_FINISH ? Z_STREAM_END : Z_OK);
	assert_int_equal(s->avail_in, 0);
}

static void take(z_stream *s, size_t upto, size_t want, int ret)
{
	s->avail_in = (uInt)(upto - s->total_in);
	s->next_out = plain + s->total_out;
	s->avail_out = (uInt)(want - s->total_out + 1);
	assert_int_equal(z->inflate(s, Z_SYNC_FLUSH), ret);
	assert_int_equal(s->total_out, want);
}

/* zlib.h: in a raw stream a dictionary may come after any flush. */
static void dictionary_after(int level, int flush, size_t before)
{
	const uint8_t *dict = data + 150000, *more = data + 151000;
	z_stream s, back;
	uLong at;

	open_raw(&s, level);
	give(&s, data, before, flush);
	/* Out of what zlib waits for, so that the dictionary has its place. */
	at = s.total_out;
	assert_int_equal(deflateSetDictionary(&s, dict, 4000), Z_OK);
	give(&s, more, 3000, Z_FINISH);
	assert_int_equal(deflateEnd(&s), Z_OK);
	/* It was of use. */
	assert_true(s.total_out - at < 300);
	open_inflate(1, &back, -15);
	back.next_in = packed;
	take(&back, at, before, Z_OK);
	assert_int_equal(z->inflateSetDictionary(&back, dict, 4000), Z_OK);
	take(&back, s.total_out, before + 3000, Z_STREAM_END);
	assert_memory_equal(plain, data, before);
	assert_memory_equal(plain + before, more, 3000);
	z->inflateEnd(&back);
}

static void test_dictionary_in_the_middle(void **state)
{
	static const int flushes[] = { Z_PARTIAL_FLUSH, Z_SYNC_FLUSH,
				       Z_FULL_FLUSH };
	z_stream s;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		/* In pieces, and streamed. */
		dictionary_after(1, flushes[i], 100000);
		dictionary_after(1, flushes[i], 1000);
		dictionary_after(6, flushes[i], 1000);
	}
	/* Not where something waits. */
	open_raw(&s, 1);
	give(&s, data, 1000, Z_SYNC_FLUSH);
	give(&s, data, 1000, Z_NO_FLUSH);
	assert_int_equal(deflateSetDictionary(&s, data, 4000), Z_STREAM_ERROR);
	deflateEnd(&s);
}

/* Data behind a full flush can be read without the data before it, also if all
 * had been flushed already. */
static void test_full_flush(void **state)
{
	z_stream s, back;
	uLong at;

	(void)state;
	for (int i = 0; i < 4; i++) {
		open_raw(&s, i & 1 ? 6 : 1);
		give(&s, data, 100000, i & 2 ? Z_FULL_FLUSH : Z_SYNC_FLUSH);
		if (!(i & 2))
			give(&s, data, 0, Z_FULL_FLUSH);
		at = s.total_out;
		/* Again what came last, to tempt it to look back. */
		give(&s, data + 70000, 30000, Z_FINISH);
		open_inflate(1, &back, -15);
		back.next_in = packed + at;
		take(&back, s.total_out - at, 30000, Z_STREAM_END);
		assert_memory_equal(plain, data + 70000, 30000);
		z->inflateEnd(&back);
		deflateEnd(&s);
	}
}

/* Data behind a large piece can look back at it, also where the stream changes
 * to another driver, and where its copy does. */
static void test_window_carried(void **state)
{
	static uint8_t noise[100000];
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		noise[i] = (uint8_t)(seed >> 56);
	}
	for (int level = 1; level <= 9; level++) {
		z_stream s, copy;
		uLong at;

		open_raw(&s, level);
		give(&s, noise, sizeof(noise), Z_SYNC_FLUSH);
		at = s.total_out;
		assert_int_equal(deflateCopy(&copy, &s), Z_OK);
		give(&s, noise + sizeof(noise) - 20000, 20000, Z_SYNC_FLUSH);
		assert_true(s.total_out - at < 2000);
		/* The first is the copy's no more. */
		assert_int_equal(deflateEnd(&s), Z_DATA_ERROR);
		/* A hint, and not its beginning. */
		assert_int_equal(deflateTune(&copy, 4, 5, 16, 8), Z_OK);
		assert_int_equal(copy.total_out, at);
		give(&copy, noise + sizeof(noise) - 20000, 20000, Z_SYNC_FLUSH);
		assert_true(copy.total_out - at < 2000);
		deflateEnd(&copy);
	}
}

/* 40 times "a", with a run of code lengths that goes past their end: libdeflate
 * takes it, zlib does not, and so must we not. */
static void test_refused(void **state)
{
	static const uint8_t bad[] = {
		0x78, 0x9c, 0x05, 0xc0, 0xa1, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x20, 0xd6, 0xfc, 0x25, 0x1a, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x01, 0x36, 0xeb, 0x0f, 0x29,
	};

	(void)state;
	memcpy(packed, bad, sizeof(bad));
	for (int which = 0; which < 2; which++) {
		z_stream s;

		open_inflate(which, &s, 15);
		assert_int_equal(inflate_all(which, &s, sizeof(bad)),
				 Z_DATA_ERROR);
		assert_string_equal(s.msg, "invalid bit length repeat");
		CALL(which, inflateEnd, &s);
	}
}

/* A flush before any data has something to say, to the byte: servers send it
 * so that the other side sees a header. The same call again is an error. */
static void test_flush_first(void **state)
{
	static const int bits[] = { -15, 15, 31 };
	uint8_t out[2][40];

	(void)state;
	for (int i = 0; i < 9; i++) {
		int flush = i % 3 + Z_SYNC_FLUSH; /* and FULL, and FINISH */
		uLong len[2];

		for (int which = 0; which < 2; which++) {
			z_stream s = { 0 };

			assert_int_equal(CALL(which, deflateInit2_, &s, 6,
					      Z_DEFLATED, bits[i / 3], 8, 0,
					      ZLIB_VERSION, (int)sizeof(s)),
					 Z_OK);
			s.next_out = out[which];
			s.avail_out = sizeof(out[which]);
			assert_int_equal(CALL(which, deflate, &s, flush),
					 flush == Z_FINISH ? Z_STREAM_END :
							     Z_OK);
			len[which] = s.total_out;
			assert_int_equal(CALL(which, deflate, &s, flush),
					 flush == Z_FINISH ? Z_STREAM_END :
							     Z_BUF_ERROR);
			assert_int_equal(s.total_out, len[which]);
			CALL(which, deflateEnd, &s);
		}
		assert_int_equal(len[0], len[1]);
		assert_memory_equal(out[0], out[1], len[0]);
	}
}

/* Ours is zlib's answer, whatever is underneath: zlib-ng has other compressors
 * for these levels, and refuses the first change as well. */
static void test_params_after_end(void **state)
{
	int count = strstr(z->zlibVersion(), "zlib-ng") ? 1 : 2;

	(void)state;
	for (int which = 0; which < count; which++) {
		z_stream s = { 0 };

		assert_int_equal(CALL(which, deflateInit2_, &s, 6, Z_DEFLATED,
				      15, 8, 0, ZLIB_VERSION, (int)sizeof(s)),
				 Z_OK);
		s.next_out = packed;
		s.avail_out = sizeof(packed);
		assert_int_equal(CALL(which, deflate, &s, Z_FINISH),
				 Z_STREAM_END);
		assert_int_equal(CALL(which, deflateParams, &s, 9, 0), Z_OK);
		assert_int_equal(CALL(which, deflateParams, &s, 1, 0),
				 Z_STREAM_ERROR);
		CALL(which, deflateEnd, &s);
	}
}

/* All at once in what deflateBound() says before the dictionary is there: the
 * bound was too small with a memLevel of 1, since a dictionary makes the stream
 * zlib's, which then stores blocks of 127 bytes. */
static void test_bound(void **state)
{
	uint8_t *noise = malloc(SIZE);
	uint64_t seed = 1;

	(void)state;
	assert_non_null(noise);
	for (size_t i = 0; i < SIZE; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		noise[i] = (uint8_t)(seed >> 56);
	}
	for (int i = 0; i < 9 * 2 * 3 * 2; i++) {
		int mem = i % 9 + 1, bits = i / 9 % 2 ? 15 : -15;
		uLong len = i / 18 % 3 ? SIZE >> (i / 18 % 3 * 6 - 6) : 1;
		z_stream s = { .next_in = noise,
			       .avail_in = (uInt)len,
			       .next_out = packed };

		assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, bits, mem, 0),
				 Z_OK);
		s.avail_out = (uInt)deflateBound(&s, len);
		if (i >= 54)
			assert_int_equal(deflateSetDictionary(&s, data, 1000),
					 Z_OK);
		assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
		assert_int_equal(deflateEnd(&s), Z_OK);
	}
	free(noise);
}

/* Memory that ends after some allocations. */
struct purse {
	int left;
	int out;
};

static void *purse_alloc(void *opaque, unsigned int items, unsigned int size)
{
	struct purse *purse = opaque;

	if (!purse->left)
		return NULL;
	purse->left--;
	purse->out++;
	return malloc((size_t)items * size);
}

static void purse_free(void *opaque, void *ptr)
{
	((struct purse *)opaque)->out--;
	free(ptr);
}

/* True if all went well. Wherever it did not, zlib's error says so. */
static bool spend(struct purse *purse, int level)
{
	z_stream s = { .zalloc = purse_alloc,
		       .zfree = purse_free,
		       .opaque = purse };
	z_stream copy;
	int ret = deflateInit2(&s, level, Z_DEFLATED, 31, 8, 0);
	bool good;

	if (ret != Z_OK) {
		assert_int_equal(ret, Z_MEM_ERROR);
		return false;
	}
	s.next_in = data;
	s.avail_in = SIZE;
	s.next_out = packed;
	s.avail_out = 50;
	ret = deflate(&s, Z_NO_FLUSH);
	assert_true(ret == Z_OK || ret == Z_MEM_ERROR);
	s.avail_out = sizeof(packed) - 50;
	ret = deflateCopy(&copy, &s);
	assert_true(ret == Z_OK || ret == Z_MEM_ERROR);
	good = ret == Z_OK;
	if (good)
		deflateEnd(&copy);
	ret = deflate(&s, Z_SYNC_FLUSH);
	assert_true(ret == Z_OK || ret == Z_MEM_ERROR);
	good = good && ret == Z_OK;
	do
		ret = deflate(&s, Z_FINISH);
	while (ret == Z_OK);
	assert_true(ret == Z_STREAM_END || ret == Z_MEM_ERROR);
	/* Output that is reported as done is whole. */
	if (ret == Z_STREAM_END) {
		z_stream back;

		open_inflate(1, &back, 31);
		assert_int_equal(inflate_all(1, &back, s.total_out),
				 Z_STREAM_END);
		assert_int_equal(back.total_out, SIZE);
		z->inflateEnd(&back);
	}
	good = good && ret == Z_STREAM_END;
	deflateEnd(&s);
	return good;
}

static void test_no_memory(void **state)
{
	(void)state;
	for (int level = 1; level <= 6; level += 5) {
		bool good = false;

		for (int i = 0; i < 40 && !good; i++) {
			struct purse purse = { .left = i };

			good = spend(&purse, level);
			assert_int_equal(purse.out, 0);
		}
		assert_true(good);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_end),
		cmocka_unit_test(test_validate_stays),
		cmocka_unit_test(test_dictionary_in_the_middle),
		cmocka_unit_test(test_full_flush),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_window_carried),
		cmocka_unit_test(test_flush_first),
		cmocka_unit_test(test_params_after_end),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
