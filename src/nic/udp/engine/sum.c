/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32C with the processor's instruction where it has one, by table elsewhere;
 * SipHash-2-4 after its paper (Aumasson and Bernstein, 2012).
 */
#include "nic/udp/engine/sum.h"

#include <stdbool.h>
#include <string.h>

#include "os/inline.h"
#include "os/thread.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

WF_SAME_FOR_ALL static uint32_t table[256];
WF_SAME_FOR_ALL static bool has_instruction;
WF_SAME_FOR_ALL static struct wf_os_once once = WF_OS_ONCE_INIT;

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t wide = crc;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	if (len >= 4) {
		uint32_t word;

		memcpy(&word, p, 4);
		crc = __builtin_ia32_crc32si(crc, word);
		p += 4;
		len -= 4;
	}
	while (len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}

static bool can(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse4.2");
}

#else

static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	return by_table(crc, p, len);
}

static bool can(void)
{
	return false;
}

#endif

static void prepare(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[i] = crc;
	}
	has_instruction = can();
}

uint32_t wf_udp_sum_crc(uint32_t crc, const void *data, size_t len)
{
	wf_os_once(&once, prepare);
	crc = ~crc;
	if (has_instruction)
		return ~by_instruction(crc, data, len);
	return ~by_table(crc, data, len);
}

uint32_t wf_udp_sum_head(const void *head, size_t len)
{
	const uint8_t *p = head;

	wf_os_once(&once, prepare);
	if (has_instruction)
		return ~by_instruction(by_instruction(~0u, p, 4), p + 8,
				       len - 8);
	return ~by_table(by_table(~0u, p, 4), p + 8, len - 8);
}

static uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[1] = rotl(v[1], 13) ^ v[0];
		v[0] = rotl(v[0], 32);
		v[2] += v[3];
		v[3] = rotl(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotl(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotl(v[1], 17) ^ v[2];
		v[2] = rotl(v[2], 32);
	}
}

uint64_t wf_udp_sum_sip(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575u,
		key[1] ^ 0x646f72616e646f6du,
		key[0] ^ 0x6c7967656e657261u,
		key[1] ^ 0x7465646279746573u,
	};
	uint64_t last = (uint64_t)len << 56, word;
	const uint8_t *p = data;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_rounds(v, 2);
		v[0] ^= word;
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	v[3] ^= last;
	sip_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
