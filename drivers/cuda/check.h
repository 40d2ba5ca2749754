/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 and Adler-32 of a piece: each lane takes a slice of the data, and the
 * results of the slices are joined. For the code of pieces only (lanes.h).
 */
#ifndef WF_CUDA_CHECK_H
#define WF_CUDA_CHECK_H

#include "cuda/piece_defs.h"

#define WF_CRC_POLY 0xedb88320u
#define WF_ADLER_BASE 65521u
/* Sums of so many bytes fit into 32 bits. */
#define WF_ADLER_RUN 5552u

/* One entry of the table that makes 8 steps at once. */
WF_PIECE_FN uint32_t wf_crc_entry(uint32_t byte)
{
	for (int i = 0; i < 8; i++)
		byte = byte >> 1 ^ (byte & 1 ? WF_CRC_POLY : 0);
	return byte;
}

/* a x b modulo the polynomial; bit 31 is x^0. */
WF_PIECE_FN uint32_t wf_crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 0; i < 32; i++) {
		product ^= a >> 31 ? b : 0;
		a <<= 1;
		b = b >> 1 ^ (b & 1 ? WF_CRC_POLY : 0);
	}
	return product;
}

/* @crc as if @len bytes of zero followed: x^(8 len). */
WF_PIECE_FAR uint32_t wf_crc_shift(uint32_t crc, uint32_t len)
{
	uint32_t power = 1u << 23; /* x^8 */

	for (; len; len >>= 1) {
		if (len & 1)
			crc = wf_crc_multiply(crc, power);
		power = wf_crc_multiply(power, power);
	}
	return crc;
}

/* Without the inversions of its begin and end. */
WF_PIECE_FN uint32_t wf_crc_slice(const uint32_t *table, const uint8_t *data,
				  uint32_t len)
{
	uint32_t crc = 0;

	while (len && (wf_u64)data & 3) {
		crc = crc >> 8 ^ table[(crc ^ *data++) & 0xff];
		len--;
	}
	for (; len >= 4; len -= 4, data += 4) {
		crc ^= wf_load_aligned(data);
		crc = crc >> 8 ^ table[crc & 0xff];
		crc = crc >> 8 ^ table[crc & 0xff];
		crc = crc >> 8 ^ table[crc & 0xff];
		crc = crc >> 8 ^ table[crc & 0xff];
	}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *data++) & 0xff];
	return crc;
}

/* Where the slice of a lane begins; WF_LANES for the end of the last. */
WF_PIECE_FN uint32_t wf_slice_at(uint32_t len, uint32_t lane)
{
	uint32_t slice = (len + WF_LANES - 1) / WF_LANES;

	return slice * lane < len ? slice * lane : len;
}

/* @table: room for 256. */
WF_PIECE_FN uint32_t wf_crc_piece(uint32_t *table, const uint8_t *data,
				  uint32_t len, uint32_t *parts)
{
	uint32_t crc = wf_crc_shift(WF_ALL_LANES, len);

	WF_EACH (i, 256)
		table[i] = wf_crc_entry(i);
	wf_lanes_sync();
	WF_EACH_LANE (lane) {
		uint32_t from = wf_slice_at(len, lane);
		uint32_t to = wf_slice_at(len, lane + 1);

		parts[lane] = wf_crc_shift(
			wf_crc_slice(table, data + from, to - from), len - to);
	}
	wf_lanes_sync();
	for (uint32_t i = 0; i < WF_LANES; i++)
		crc ^= parts[i];
	wf_lanes_sync();
	return ~crc;
}

/* Both sums of a slice that follows no other: high << 16 | low, from 0, 0. */
WF_PIECE_FN uint32_t wf_adler_slice(const uint8_t *data, uint32_t len)
{
	uint32_t a = 0, b = 0;

	while (len) {
		uint32_t run = len < WF_ADLER_RUN ? len : WF_ADLER_RUN;

		for (uint32_t i = 0; i < run; i++) {
			a += data[i];
			b += a;
		}
		a %= WF_ADLER_BASE;
		b %= WF_ADLER_BASE;
		data += run;
		len -= run;
	}
	return b << 16 | a;
}

WF_PIECE_FN uint32_t wf_adler_piece(const uint8_t *data, uint32_t len,
				    uint32_t *parts)
{
	uint32_t a = 1, b = 0;

	WF_EACH_LANE (lane) {
		uint32_t from = wf_slice_at(len, lane);
		uint32_t to = wf_slice_at(len, lane + 1);

		parts[lane] = wf_adler_slice(data + from, to - from);
	}
	wf_lanes_sync();
	for (uint32_t i = 0; i < WF_LANES; i++) {
		uint32_t n = wf_slice_at(len, i + 1) - wf_slice_at(len, i);

		/* The bytes that were summed before count once more for each
		 * byte. */
		b = (uint32_t)((b + (wf_u64)a * n + (parts[i] >> 16)) %
			       WF_ADLER_BASE);
		a = (a + (parts[i] & 0xffff)) % WF_ADLER_BASE;
	}
	wf_lanes_sync();
	return b << 16 | a;
}

/* As the flags of the piece say. */
WF_PIECE_FN uint32_t wf_check_piece(uint32_t flags, uint32_t *table,
				    const uint8_t *data, uint32_t len,
				    uint32_t *parts)
{
	if (flags & WF_PIECE_CRC32)
		return wf_crc_piece(table, data, len, parts);
	if (flags & WF_PIECE_ADLER32)
		return wf_adler_piece(data, len, parts);
	return 0;
}

#endif
