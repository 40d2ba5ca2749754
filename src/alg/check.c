/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of a format's data, by deflate/check.h, and how those of two pieces
 * make the one of both.
 */
#include "alg/check.h"

#include <weft/wd_comp_drv.h>

#include "deflate/check.h"

#define CRC_POLY 0xedb88320u /* RFC 1952, reflected */
#define ADLER_BASE 65521u    /* RFC 1950 */

uint32_t wd_comp_check_init(int alg)
{
	return alg == WD_COMP_ZLIB;
}

uint32_t wd_comp_check(int alg, uint32_t check, const void *data, size_t len)
{
	/* libdeflate takes no data at NULL for a new beginning. */
	if (!len)
		return check;
	switch (alg) {
	case WD_COMP_GZIP:
		return wf_deflate_crc32(check, data, len);
	case WD_COMP_ZLIB:
		return wf_deflate_adler32(check, data, len);
	default:
		return check;
	}
}

/* a * b mod the polynomial, in the reflected bit order: x^0 is the top bit. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? CRC_POLY : 0);
	}
	return product;
}

uint32_t wf_alg_crc_power(uint64_t len)
{
	uint32_t power = 1u << 31;  /* x^0 */
	uint32_t square = 1u << 23; /* x^8 */

	for (; len; len >>= 1) {
		if (len & 1)
			power = multiply(square, power);
		square = multiply(square, square);
	}
	return power;
}

uint32_t wf_alg_crc_join(uint32_t first, uint32_t second, uint32_t power)
{
	return multiply(power, first) ^ second;
}

static uint32_t combine_adler(uint32_t first, uint32_t second, uint64_t len)
{
	uint64_t rem = len % ADLER_BASE;
	uint64_t a1 = first & 0xffff, b1 = first >> 16;
	uint64_t a2 = second & 0xffff, b2 = second >> 16;
	uint64_t a, b;

	/* Both began at 1; the second's part of b saw a start of 1. */
	a = (a1 + a2 + ADLER_BASE - 1) % ADLER_BASE;
	b = (b1 + b2 + rem * (a1 + ADLER_BASE - 1)) % ADLER_BASE;
	return (uint32_t)(b << 16 | a);
}

uint32_t wd_comp_check_combine(int alg, uint32_t first, uint32_t second,
			       uint64_t second_len)
{
	switch (alg) {
	case WD_COMP_GZIP:
		return wf_alg_crc_join(first, second,
				       wf_alg_crc_power(second_len));
	case WD_COMP_ZLIB:
		return combine_adler(first, second, second_len);
	default:
		return 0;
	}
}
