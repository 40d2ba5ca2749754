/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers read by themselves, without the codes of a stream: cut at every byte,
 * with every field, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "deflate/check.h"
#include "deflate/inflate.h"

#define BEHIND 0x55 /* what follows a header: never read */

static const uint8_t fields[] = "\x1f\x8b\x08\x1e\x01\x02\x03\x04\x02\x03"
				"\x05\x00"
				"extra"
				"a name\0"
				"a comment";

/* A gzip header with all fields; its length. */
static size_t make_header(uint8_t *to)
{
	uint32_t crc = wf_deflate_crc32(0, fields, sizeof(fields));

	memcpy(to, fields, sizeof(fields));
	to[sizeof(fields)] = (uint8_t)crc;
	to[sizeof(fields) + 1] = (uint8_t)(crc >> 8);
	memset(to + sizeof(fields) + 2, BEHIND, 8);
	return sizeof(fields) + 2;
}

static void begin(struct wf_inflate *s, int wrap, unsigned int wbits)
{
	wf_deflate_inflate_init(s, NULL, (struct wd_comp_mem){ 0 }, wrap,
				wbits);
}

static int read_all(int wrap, unsigned int wbits, const void *in, size_t len,
		    size_t *used)
{
	struct wf_inflate s;

	begin(&s, wrap | WF_INFLATE_CHECK, wbits);
	return wf_deflate_head_read(&s, in, len, used);
}

/* In three calls, cut at every two places. */
static void test_cuts(void **state)
{
	uint8_t in[64], name[16], extra[16];
	size_t len = make_header(in), used;

	(void)state;
	for (size_t a = 0; a < len; a++) {
		for (size_t b = a; b < len; b++) {
			struct wf_inflate_head head = { .name = name,
							.name_max = 16,
							.extra = extra,
							.extra_max = 16 };
			struct wf_inflate s;

			begin(&s, WF_INFLATE_GZIP | WF_INFLATE_CHECK, 15);
			s.head = &head;
			assert_int_equal(wf_deflate_head_read(&s, in, a, &used),
					 0);
			assert_int_equal(used, a);
			assert_int_equal(
				wf_deflate_head_read(&s, in + a, b - a, &used),
				0);
			assert_int_equal(used, b - a);
			assert_int_equal(wf_deflate_head_read(&s, in + b,
							      len + 8 - b,
							      &used),
					 1);
			assert_int_equal(used, len - b);
			assert_string_equal((char *)name, "a name");
			assert_int_equal(head.extra_len, 5);
			assert_memory_equal(extra, "extra", 5);
			assert_int_equal(head.time, 0x04030201);
			assert_int_equal(head.done, 1);
			/* Over is over. */
			assert_int_equal(wf_deflate_head_read(&s, in, 8, &used),
					 1);
			assert_int_equal(used, 0);
		}
	}
}

static void test_refused(void **state)
{
	uint8_t in[64];
	size_t len = make_header(in), used;

	(void)state;
	/* Every byte is under the header's CRC. */
	for (size_t i = 0; i < len; i++) {
		int ret;

		in[i] ^= 0x01;
		ret = read_all(WF_INFLATE_GZIP, 15, in, len, &used);
		/* A field may also have become longer than all there is. */
		assert_int_not_equal(ret, 1);
		in[i] ^= 0x01;
	}
	in[3] |= 0x20; /* a flag that has no meaning */
	assert_int_equal(read_all(WF_INFLATE_GZIP, 15, in, len, &used),
			 -EBADMSG);
}

static void test_formats(void **state)
{
	static const uint8_t zlib[] = { 0x78, 0x9c, BEHIND };
	static const uint8_t dict[] = { 0x78, 0xbb, 1, 2, 3, 4, BEHIND };
	size_t used;

	(void)state;
	assert_int_equal(read_all(WF_INFLATE_ZLIB, 15, zlib, 3, &used), 1);
	assert_int_equal(used, 2);
	assert_int_equal(read_all(WF_INFLATE_ZLIB, 0, zlib, 3, &used), 1);
	assert_int_equal(read_all(WF_INFLATE_ZLIB, 14, zlib, 3, &used),
			 -EBADMSG);
	assert_int_equal(read_all(WF_INFLATE_GZIP, 15, zlib, 3, &used),
			 -EBADMSG);
	assert_int_equal(read_all(WF_INFLATE_EITHER, 15, zlib, 3, &used), 1);
	assert_int_equal(read_all(WF_INFLATE_ZLIB, 15, dict, 5, &used), 0);
	assert_int_equal(read_all(WF_INFLATE_ZLIB, 15, dict, 7, &used),
			 -EBADMSG);
	/* Raw data has none. */
	{
		struct wf_inflate s;

		begin(&s, WF_INFLATE_RAW, 15);
		assert_int_equal(wf_deflate_head_read(&s, zlib, 3, &used), 1);
		assert_int_equal(used, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
