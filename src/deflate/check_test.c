/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of every short length, at every alignment and in two pieces, beside
 * the definitions of RFC 1952 and RFC 1950: which library takes a piece depends
 * on its length, and each must go on where the other one stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "deflate/check.h"

#define LONGEST 700u

static uint8_t data[LONGEST + 64];

static uint32_t crc_of(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static uint32_t adler_of(const uint8_t *p, size_t len)
{
	uint32_t a = 1, b = 0;

	while (len--) {
		a = (a + *p++) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void fill(void)
{
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(255 - (i * 2654435761u >> 29));
}

static void test_lengths(void **state)
{
	(void)state;
	fill();
	for (size_t len = 0; len <= LONGEST; len++) {
		const uint8_t *p = data + len % 64;

		assert_int_equal(wf_deflate_crc32(0, p, len), crc_of(p, len));
		assert_int_equal(wf_deflate_adler32(1, p, len),
				 adler_of(p, len));
	}
}

static void test_pieces(void **state)
{
	uint32_t crc, adler;

	(void)state;
	fill();
	crc = crc_of(data, LONGEST);
	adler = adler_of(data, LONGEST);
	for (size_t cut = 0; cut <= LONGEST; cut++) {
		const uint8_t *rest = data + cut;
		uint32_t c = wf_deflate_crc32(0, data, cut);
		uint32_t a = wf_deflate_adler32(1, data, cut);

		assert_int_equal(wf_deflate_crc32(c, rest, LONGEST - cut), crc);
		assert_int_equal(wf_deflate_adler32(a, rest, LONGEST - cut),
				 adler);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
