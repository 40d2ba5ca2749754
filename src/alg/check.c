/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums: CRC-32 and Adler-32 by the fastest driver that has them, and how
 * those of two pieces make the one of both. The plain loops here are for
 * builds that have no library at all.
 */
#include "alg/check.h"

#include <stdatomic.h>

#include <weft/wd_comp_drv.h>

#include "alg/registry.h"

#define CRC_POLY 0xedb88320u /* RFC 1952, reflected */
#define ADLER_BASE 65521u    /* RFC 1950 */
#define ADLER_RUN 5552	     /* bytes before 32 bits overflow */

typedef uint32_t (*check_func)(uint32_t check, const void *data, size_t len);

static _Atomic(check_func) crc_func, adler_func;

static uint32_t plain_crc(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? CRC_POLY : 0);
	}
	return ~crc;
}

static uint32_t plain_adler(uint32_t adler, const void *data, size_t len)
{
	uint32_t a = adler & 0xffff, b = adler >> 16;
	const uint8_t *p = data;

	while (len) {
		size_t run = len < ADLER_RUN ? len : ADLER_RUN;

		len -= run;
		while (run--) {
			a += *p++;
			b += a;
		}
		a %= ADLER_BASE;
		b %= ADLER_BASE;
	}
	return b << 16 | a;
}

/* Two threads may both look: they find the same. It is kept, so it must not
 * be of a driver whose code may go away. */
static check_func find(int alg)
{
	check_func func = NULL;

	for (unsigned int i = 0; !func; i++) {
		const struct wd_alg_comp *d = wd_alg_comp_list(i);

		if (!d)
			func = alg == WD_COMP_GZIP ? plain_crc : plain_adler;
		else if (d->node < 0 && wf_alg_registry_is_builtin(d))
			func = alg == WD_COMP_GZIP ? d->crc32 : d->adler32;
	}
	atomic_store_explicit(alg == WD_COMP_GZIP ? &crc_func : &adler_func,
			      func, memory_order_relaxed);
	return func;
}

uint32_t wd_comp_check_init(int alg)
{
	return alg == WD_COMP_ZLIB;
}

uint32_t wd_comp_check(int alg, uint32_t check, const void *data, size_t len)
{
	check_func func;

	if (alg == WD_COMP_RAW || !len)
		return check;
	func = atomic_load_explicit(alg == WD_COMP_GZIP ? &crc_func :
							  &adler_func,
				    memory_order_relaxed);
	if (!func)
		func = find(alg);
	return func(check, data, len);
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
