/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums by the libraries that this build has, else by plain loops. ISA-L
 * takes the CRC-32 of much data at 35 GB/s where libdeflate 1.14 takes it at 12
 * (Zen 4); libdeflate is faster with little data, and with Adler-32.
 */
#include "deflate/check.h"

#if WF_HAVE_LIBDEFLATE

#include <libdeflate.h>

static inline uint32_t little_crc(uint32_t crc, const void *data, size_t len)
{
	return libdeflate_crc32(crc, data, len);
}

uint32_t wf_deflate_adler32(uint32_t adler, const void *data, size_t len)
{
	return libdeflate_adler32(adler, data, len);
}

#else

#define ADLER_BASE 65521u /* RFC 1950 */
#define ADLER_RUN 5552	  /* bytes before 32 bits overflow */

/* What four bits do to the CRC (RFC 1952, polynomial 0xedb88320). */
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

uint32_t wf_deflate_adler32(uint32_t adler, const void *data, size_t len)
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
