/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums by the libraries that this build has, else by plain loops. ISA-L
 * takes the CRC-32 of much data at 35 GB/s where libdeflate 1.14 takes it at 12
 * (Zen 4); libdeflate is faster with little data, and with Adler-32. Few bytes
 * have their Adler-32 here: of 80, libdeflate takes it by 183 instructions.
 */
#include "deflate/check.h"

#define ADLER_BASE 65521u /* RFC 1950 */

#if WF_HAVE_LIBDEFLATE

#include <libdeflate.h>

static inline uint32_t little_crc(uint32_t crc, const void *data, size_t len)
{
	return libdeflate_crc32(crc, data, len);
}

static inline uint32_t much_adler(uint32_t adler, const void *data, size_t len)
{
	return libdeflate_adler32(adler, data, len);
}

#else

#define ADLER_RUN 5552 /* bytes before 32 bits overflow */

/* Each entry is the effect of four bits on the CRC (RFC 1952, polynomial
 * 0xedb88320). */
static const uint32_t crc_nibbles[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

static uint32_t little_crc(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ crc_nibbles[crc & 15];
		crc = crc >> 4 ^ crc_nibbles[crc & 15];
	}
	return ~crc;
}

static uint32_t much_adler(uint32_t adler, const void *data, size_t len)
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

#endif

#if defined(__x86_64__)

#include <emmintrin.h>

#define LITTLE 256 /* bytes that are summed up here, without a modulo between */

static inline uint32_t sum_of(__m128i v)
{
	v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
	v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(v);
}

/* b is the sum of all values that a had, so a byte counts as often as there are
 * bytes from it on: 16 to 1 times within its vector, and 16 times for each one
 * that follows. */
static uint32_t little_adler(uint32_t adler, const uint8_t *p, size_t len)
{
	const __m128i high = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
	const __m128i low = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
	const __m128i zero = _mm_setzero_si128();
	__m128i sum = zero, before = zero, weighed = zero;
	uint32_t a = adler & 0xffff, b = adler >> 16;

	b += a * (uint32_t)(len & ~(size_t)15);
	for (; len >= 16; len -= 16, p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);

		before = _mm_add_epi32(before, sum);
		sum = _mm_add_epi32(sum, _mm_sad_epu8(v, zero));
		weighed = _mm_add_epi32(
			weighed,
			_mm_add_epi32(_mm_madd_epi16(_mm_unpacklo_epi8(v, zero),
						     high),
				      _mm_madd_epi16(_mm_unpackhi_epi8(v, zero),
						     low)));
	}
	a += sum_of(sum);
	b += 16 * sum_of(before) + sum_of(weighed);
	while (len--) {
		a += *p++;
		b += a;
	}
	return b % ADLER_BASE << 16 | a % ADLER_BASE;
}

#else

#define LITTLE 0

static uint32_t little_adler(uint32_t adler, const uint8_t *p, size_t len)
{
	(void)p;
	(void)len;
	return adler;
}

#endif

uint32_t wf_deflate_adler32(uint32_t adler, const void *data, size_t len)
{
	return len <= LITTLE ? little_adler(adler, data, len) :
			       much_adler(adler, data, len);
}

#if WF_HAVE_ISAL

#include <isa-l/crc.h>

#define MUCH 256 /* bytes from which ISA-L is faster */

uint32_t wf_deflate_crc32(uint32_t crc, const void *data, size_t len)
{
	if (len < MUCH)
		return little_crc(crc, data, len);
	return crc32_gzip_refl(crc, (unsigned char *)(uintptr_t)data, len);
}

#else

uint32_t wf_deflate_crc32(uint32_t crc, const void *data, size_t len)
{
	return little_crc(crc, data, len);
}

#endif
