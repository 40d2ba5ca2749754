/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the answers of inflate* by name: every text of zlib, each
 * of its questions, the order in which it notices mistakes. zlib's own infcover
 * and example ask for the same. The fuzzer compares more than this, but does
 * not say what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "zreal/real.h"

#define ROOM 70000

static uint8_t in[400], out[ROOM];
static const struct wf_zreal *z;

#define CALL(which, name, ...)                                                 \
	((which) ? z->name(__VA_ARGS__) : name(__VA_ARGS__))

static size_t from_hex(const char *hex)
{
	size_t len = 0;

	while (*hex) {
		char *end;

		in[len++] = (uint8_t)strtoul(hex, &end, 16);
		hex = *end ? end + 1 : end;
	}
	return len;
}

struct stream {
	int bits;
	const char *hex;
	int ret;
	const char *msg; /* NULL: none */
};

static const struct stream streams[] = {
	/* Headers. */
	{ 15, "78 90", Z_DATA_ERROR, "incorrect header check" },
	{ 15, "77 85", Z_DATA_ERROR, "unknown compression method" },
	{ 8, "78 9c", Z_DATA_ERROR, "invalid window size" },
	{ 15, "88 1c", Z_DATA_ERROR, "invalid window size" },
	{ 15, "1f 8b 8 0", Z_DATA_ERROR, "incorrect header check" },
	{ 31, "78 9c", Z_DATA_ERROR, "incorrect header check" },
	{ 47, "1f 8b 7 0", Z_DATA_ERROR, "unknown compression method" },
	{ 47, "1f 8b 8 80", Z_DATA_ERROR, "unknown header flags set" },
	{ 47, "1f 8b 8 2 0 0 0 0 0 0 1d 27", Z_DATA_ERROR,
	  "header crc mismatch" },
	{ 47, "1f 8b 8 2 0 0 0 0 0 0 1d 26 3 0 0 0 0 0 0 0 0 0", Z_STREAM_END,
	  NULL },
	{ 15, "78 bb 0 0 0 1", Z_NEED_DICT, NULL },
	/* Blocks. */
	{ -15, "6", Z_DATA_ERROR, "invalid block type" },
	{ -15, "1 1 0 0 0", Z_DATA_ERROR, "invalid stored block lengths" },
	{ -15, "fc 0 0", Z_DATA_ERROR, "too many length or distance symbols" },
	{ -15, "4 0 fe ff", Z_DATA_ERROR, "invalid code lengths set" },
	{ -15, "4 0 24 49 0", Z_DATA_ERROR, "invalid bit length repeat" },
	{ -15, "4 0 24 e9 ff ff", Z_DATA_ERROR, "invalid bit length repeat" },
	{ -15, "4 0 24 e9 ff 6d", Z_DATA_ERROR,
	  "invalid code -- missing end-of-block" },
	{ -15, "4 80 49 92 24 49 92 24 71 ff ff 93 11 0", Z_DATA_ERROR,
	  "invalid literal/lengths set" },
	{ -15, "4 80 49 92 24 49 92 24 f b4 ff ff c3 84", Z_DATA_ERROR,
	  "invalid distances set" },
	{ -15, "4 c0 81 8 0 0 0 0 20 7f eb b 0 0", Z_DATA_ERROR,
	  "invalid literal/length code" },
	{ -15, "2 7e ff ff", Z_DATA_ERROR, "invalid distance code" },
	{ -15, "c c0 81 0 0 0 0 0 90 ff 6b 4 0", Z_DATA_ERROR,
	  "invalid distance too far back" },
	{ -15, "3 0", Z_STREAM_END, NULL },
	{ -15, "1 0 0 ff ff", Z_STREAM_END, NULL },
	{ -15,
	  "5 e0 81 91 24 cb b2 2c 49 e2 f 2e 8b 9a 47 56 9f fb fe ec d2 ff 1f",
	  Z_STREAM_END, NULL },
	{ -15,
	  "ed cf c1 b1 2c 47 10 c4 30 fa 6f 35 1d 1 82 59 3d fb be 2e 2a fc f c",
	  Z_STREAM_END, NULL },
	/* Trailers. */
	{ 15, "78 9c 63 0 0 0 1 0 1", Z_STREAM_END, NULL },
	{ 15, "78 9c 63 0 0 0 1 0 2", Z_DATA_ERROR, "incorrect data check" },
	{ 47, "1f 8b 8 0 0 0 0 0 0 0 3 0 0 0 0 1", Z_DATA_ERROR,
	  "incorrect data check" },
	{ 47, "1f 8b 8 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0 0 1", Z_DATA_ERROR,
	  "incorrect length check" },
	{ 47, "1f 8b 8 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0 0 0", Z_STREAM_END, NULL },
};

/* Where it stops in pieces of @piece bytes. */
static int feed(int which, const struct stream *t, size_t piece, z_stream *s)
{
	size_t len = from_hex(t->hex), at = 0;
	int ret = Z_OK;

	memset(s, 0, sizeof(*s));
	assert_int_equal(CALL(which, inflateInit2_, s, t->bits, ZLIB_VERSION,
			      (int)sizeof(*s)),
			 Z_OK);
	s->next_out = out;
	s->avail_out = ROOM;
	while (at < len && ret == Z_OK) {
		s->next_in = in + at;
		s->avail_in = (uInt)(len - at < piece ? len - at : piece);
		at += s->avail_in;
		ret = CALL(which, inflate, s, Z_NO_FLUSH);
		at -= s->avail_in;
	}
	return ret;
}

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		const struct stream *t = &streams[i];

		for (size_t piece = 1; piece <= 64; piece *= 2) {
			z_stream a, b;
			int ret = feed(0, t, piece, &a);

			print_message("%s\n", t->hex);
			assert_int_equal(ret, feed(1, t, piece, &b));
			assert_int_equal(ret, t->ret);
			if (t->msg)
				assert_string_equal(a.msg, t->msg);
			else
				assert_null(a.msg);
			assert_int_equal(a.total_in, b.total_in);
			assert_int_equal(a.total_out, b.total_out);
			assert_int_equal(a.data_type, b.data_type);
			/* Bad stays bad. */
			if (ret == Z_DATA_ERROR)
				assert_int_equal(inflate(&a, Z_NO_FLUSH),
						 Z_DATA_ERROR);
			inflateEnd(&a);
			z->inflateEnd(&b);
		}
	}
}

/* Tests the answers to calls with no stream, or with one that is not right. */
static void test_bad_calls(void **state)
{
	z_stream s = { 0 }, copy;
	gz_header head;
	uInt len;

	(void)state;
	assert_int_equal(inflate(NULL, 0), Z_STREAM_ERROR);
	assert_int_equal(inflate(&s, 0), Z_STREAM_ERROR);
	assert_int_equal(inflateEnd(&s), Z_STREAM_ERROR);
	assert_int_equal(inflateReset(&s), Z_STREAM_ERROR);
	assert_int_equal(inflateCopy(&copy, &s), Z_STREAM_ERROR);
	assert_int_equal(inflateMark(&s), -65536);
	assert_int_equal(inflateSync(NULL), Z_STREAM_ERROR);
	assert_int_equal(inflateInit2_(&s, 15, "0", (int)sizeof(s)),
			 Z_VERSION_ERROR);
	assert_int_equal(inflateInit2_(&s, 15, ZLIB_VERSION, 1),
			 Z_VERSION_ERROR);
	assert_int_equal(inflateInit2(&s, 7), Z_STREAM_ERROR);
	assert_int_equal(inflateInit2(&s, -16), Z_STREAM_ERROR);
	assert_int_equal(inflateInit2(&s, 48), Z_STREAM_ERROR);
	assert_int_equal(inflateInit(&s), Z_OK);
	assert_int_equal(inflateReset2(&s, 7), Z_STREAM_ERROR);
	assert_int_equal(inflateGetHeader(&s, &head), Z_STREAM_ERROR);
	assert_int_equal(inflateSetDictionary(&s, out, 1), Z_STREAM_ERROR);
	assert_int_equal(inflatePrime(&s, 17, 0), Z_STREAM_ERROR);
	assert_int_equal(inflateUndermine(&s, 1), Z_DATA_ERROR);
	s.next_out = NULL;
	assert_int_equal(inflate(&s, 0), Z_STREAM_ERROR);
	s.next_out = out;
	s.avail_out = 1;
	s.next_in = NULL;
	s.avail_in = 1;
	assert_int_equal(inflate(&s, 0), Z_STREAM_ERROR);
	s.avail_in = 0;
	assert_int_equal(inflate(&s, 0), Z_BUF_ERROR);
	assert_int_equal(inflateGetDictionary(&s, NULL, &len), Z_OK);
	assert_int_equal(len, 0);
	assert_int_equal(inflateCopy(NULL, &s), Z_STREAM_ERROR);
	/* The state knows its stream: a copied struct is none. */
	copy = s;
	assert_int_equal(inflate(&copy, 0), Z_STREAM_ERROR);
	assert_int_equal(inflateEnd(&s), Z_OK);
	assert_null(s.state);
}

/* After damage, from the next full flush on. */
static void test_sync(void **state)
{
	static uint8_t packed[2000], data[3000], plain[3000];
	z_stream d = { 0 }, s = { 0 };
	uInt first;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 2654435761u >> 27);
	assert_int_equal(z->deflateInit2_(&d, 6, Z_DEFLATED, 15, 8, 0,
					  ZLIB_VERSION, (int)sizeof(d)),
			 Z_OK);
	d.next_in = data;
	d.avail_in = 1000;
	d.next_out = packed;
	d.avail_out = sizeof(packed);
	assert_int_equal(z->deflate(&d, Z_FULL_FLUSH), Z_OK);
	first = (uInt)d.total_out;
	d.avail_in = 2000;
	assert_int_equal(z->deflate(&d, Z_FINISH), Z_STREAM_END);
	z->deflateEnd(&d);
	assert_int_equal(inflateInit(&s), Z_OK);
	packed[2] = 6; /* no type */
	s.next_in = packed;
	s.avail_in = (uInt)d.total_out;
	s.next_out = plain;
	s.avail_out = sizeof(plain);
	assert_int_equal(inflate(&s, Z_NO_FLUSH), Z_DATA_ERROR);
	assert_int_equal(inflateSync(&s), Z_OK);
	assert_int_equal(s.total_in, first);
	assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END);
	assert_int_equal(s.total_out, 2000);
	assert_memory_equal(plain, data + 1000, 2000);
	/* None is left. */
	assert_int_equal(inflateReset(&s), Z_OK);
	s.next_in = packed;
	s.avail_in = 3;
	assert_int_equal(inflateSync(&s), Z_DATA_ERROR);
	assert_int_equal(inflate(&s, Z_NO_FLUSH), Z_STREAM_ERROR);
	inflateEnd(&s);
}

/* The bytes behind what was made, for each length of a stream that ends before
 * its room. libdeflate's loop wrote up to 39 bytes there. */
static void test_behind(void **state)
{
	static uint8_t data[5000], packed[6000], plain[6000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)("weft "[i * 7 % 5] + (i / 97 & 3));
	for (uLong len = 0; len < sizeof(data); len += len < 700 ? 1 : 301) {
		uLongf n = sizeof(packed), made = sizeof(plain);

		assert_int_equal(compress(packed, &n, data, len), Z_OK);
		memset(plain, 0xa5, sizeof(plain));
		memset(packed + n, 0x77, sizeof(packed) - n);
		n = sizeof(packed); /* much follows the stream */
		assert_int_equal(uncompress2(plain, &made, packed, &n), Z_OK);
		assert_int_equal(made, len);
		assert_memory_equal(plain, data, len);
		for (size_t i = len; i < sizeof(plain); i++)
			assert_int_equal(plain[i], 0xa5);
	}
}

static int setup(void **state)
{
	(void)state;
	z = wf_zreal_get();
	return z ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_bad_calls),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_behind),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
