/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the sums, against published values.
 */
#include "nic/udp/engine/sum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* RFC 3720, appendix B.4, and the check value of the catalogue. */
static void test_crc32c(void **state)
{
	uint8_t bytes[32];

	(void)state;
	assert_int_equal(wf_udp_sum_crc(0, "123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(wf_udp_sum_crc(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(wf_udp_sum_crc(0, bytes, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(wf_udp_sum_crc(0, bytes, 32), 0x46dd794e);
	assert_int_equal(wf_udp_sum_crc(0, bytes, 0), 0);
}

static void test_crc_in_pieces(void **state)
{
	uint8_t bytes[1000];
	uint32_t whole;

	(void)state;
	for (int i = 0; i < 1000; i++)
		bytes[i] = (uint8_t)(i * i);
	whole = wf_udp_sum_crc(0, bytes, sizeof(bytes));
	for (size_t cut = 0; cut <= sizeof(bytes); cut += 37) {
		uint32_t crc = wf_udp_sum_crc(0, bytes, cut);

		crc = wf_udp_sum_crc(crc, bytes + cut, sizeof(bytes) - cut);
		assert_int_equal(crc, whole);
	}
}

/* A header's sum is that of the bytes around its own field, at each length that
 * a header may have. */
static void test_crc_of_head(void **state)
{
	uint8_t bytes[300];

	(void)state;
	for (int i = 0; i < 300; i++)
		bytes[i] = (uint8_t)(i * i + 1);
	for (size_t len = 8; len <= sizeof(bytes); len++) {
		uint32_t crc = wf_udp_sum_crc(0, bytes, 4);

		crc = wf_udp_sum_crc(crc, bytes + 8, len - 8);
		assert_int_equal(wf_udp_sum_head(bytes, len), crc);
		memset(bytes + 4, (int)len, 4);
		assert_int_equal(wf_udp_sum_head(bytes, len), crc);
	}
}

/* The vectors of the SipHash paper: key 00..0f, input 00..n-1. */
static void test_siphash(void **state)
{
	const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	uint8_t bytes[15];

	(void)state;
	for (int i = 0; i < 15; i++)
		bytes[i] = (uint8_t)i;
	assert_true(wf_udp_sum_sip(key, bytes, 15) == 0xa129ca6149be45e5);
	assert_true(wf_udp_sum_sip(key, bytes, 0) == 0x726fdb47dd0e0e31);
	assert_true(wf_udp_sum_sip(key, bytes, 8) == 0x93f5f5799a932462);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_crc_in_pieces),
		cmocka_unit_test(test_crc_of_head),
		cmocka_unit_test(test_siphash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
