/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of a piece is written with these macros: 32 lanes work on one piece
 * together. The code is compiled twice. On a GPU the lanes are the threads of a
 * warp, and each runs all of it; in plain C one thread takes the lanes one
 * after the other, so that the same functions can be tested, and run by a
 * fuzzer, on any machine. The results are the same to the bit.
 *
 * The rules that keep it so: a variable has one value for all lanes (each lane
 * computes it from the same memory), unless it is declared inside of
 * WF_EACH_LANE or WF_BALLOT, or by WF_LANE_VARIABLE; memory is written inside
 * of these or of WF_ONE_LANE; wf_lanes_sync() stands between writing and
 * reading.
 */
#ifndef WF_CUDA_LANES_H
#define WF_CUDA_LANES_H

#define WF_LANES 32u
#define WF_ALL_LANES 0xffffffffu

#ifdef __CUDACC__

/* NVRTC has no headers of the C library. */
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long wf_u64;
typedef int int32_t;

#define WF_PIECE_FN static __device__ __forceinline__
/* Called rarely, or long. */
#define WF_PIECE_FAR static __device__ __noinline__

#define WF_LANE (threadIdx.x & (WF_LANES - 1))

/* The statement that follows is for each lane; for each of @count elements, by
 * the lane that has it; for one lane only. */
#define WF_EACH_LANE(lane)                                                     \
	for (uint32_t lane = WF_LANE, once_ = 1; once_; once_ = 0)
#define WF_EACH(i, count) for (uint32_t i = WF_LANE; i < (count); i += WF_LANES)
#define WF_ONE_LANE if (WF_LANE == 0)

/* A variable of each lane: declared, and that of @lane. */
#define WF_LANE_VARIABLE(type, name) type name
#define WF_OF_LANE(name, lane) name

#define WF_BALLOT(mask, lane, is)                                              \
	do {                                                                   \
		uint32_t lane = WF_LANE;                                       \
		mask = __ballot_sync(WF_ALL_LANES, (is));                      \
	} while (0)

WF_PIECE_FN void wf_lanes_sync(void)
{
	__syncwarp();
}

/* The lanes whose element of @of is the same as this lane's. */
WF_PIECE_FN uint32_t wf_lanes_same(const uint16_t *of, uint32_t lane)
{
	return __match_any_sync(WF_ALL_LANES, of[lane]);
}

/* sums[i] = values[0] + ... + values[i]. */
WF_PIECE_FN void wf_lanes_scan(const uint32_t *values, uint32_t *sums)
{
	uint32_t lane = WF_LANE, sum = values[lane];

	for (uint32_t step = 1; step < WF_LANES; step <<= 1) {
		uint32_t below = __shfl_up_sync(WF_ALL_LANES, sum, step);

		if (lane >= step)
			sum += below;
	}
	sums[lane] = sum;
	__syncwarp();
}

WF_PIECE_FN void wf_lanes_add(uint32_t *to, uint32_t value)
{
	atomicAdd(to, value);
}

WF_PIECE_FN void wf_lanes_or(uint32_t *to, uint32_t value)
{
	atomicOr(to, value);
}

WF_PIECE_FN uint32_t wf_bits_reverse(uint32_t value)
{
	return __brev(value);
}

WF_PIECE_FN uint32_t wf_bits_count(uint32_t value)
{
	return (uint32_t)__popc((int)value);
}

/* Of a value that is not 0: its lowest and highest bit. */
WF_PIECE_FN uint32_t wf_bits_lowest(uint32_t value)
{
	return (uint32_t)__ffs((int)value) - 1;
}

WF_PIECE_FN uint32_t wf_bits_highest(uint32_t value)
{
	return 31u - (uint32_t)__clz((int)value);
}

/* 32 bits from bit @at (less than 32) on. */
WF_PIECE_FN uint32_t wf_bits_window(uint32_t low, uint32_t high, uint32_t at)
{
	return __funnelshift_r(low, high, at);
}

/* 4 bytes at an address that is a multiple of 4, or at any. */
WF_PIECE_FN uint32_t wf_load_aligned(const uint8_t *at)
{
	return *(const uint32_t *)at;
}

/* No word is touched that has none of the 4 bytes. */
WF_PIECE_FN uint32_t wf_load(const uint8_t *at)
{
	uint32_t shift = (uint32_t)(wf_u64)at & 3;
	const uint32_t *word = (const uint32_t *)(at - shift);

	return shift ? __funnelshift_r(word[0], word[1], shift * 8) : word[0];
}

/* At a multiple of 4. */
WF_PIECE_FN void wf_store(uint8_t *at, uint32_t value)
{
	*(uint32_t *)at = value;
}

#else

#include <stdint.h>
#include <string.h>

typedef unsigned long long wf_u64;

#define WF_PIECE_FN static inline
#define WF_PIECE_FAR static inline

#define WF_EACH_LANE(lane) for (uint32_t lane = 0; lane < WF_LANES; lane++)
#define WF_EACH(i, count) for (uint32_t i = 0; i < (count); i++)
#define WF_ONE_LANE

#define WF_LANE_VARIABLE(type, name) type name[WF_LANES]
#define WF_OF_LANE(name, lane) name[lane]

#define WF_BALLOT(mask, lane, is)                                              \
	do {                                                                   \
		uint32_t mask_ = 0;                                            \
                                                                               \
		for (uint32_t lane = 0; lane < WF_LANES; lane++)               \
			mask_ |= (uint32_t)((is) ? 1 : 0) << lane;             \
		mask = mask_;                                                  \
	} while (0)

WF_PIECE_FN void wf_lanes_sync(void)
{
}

WF_PIECE_FN uint32_t wf_lanes_same(const uint16_t *of, uint32_t lane)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < WF_LANES; i++)
		mask |= (uint32_t)(of[i] == of[lane]) << i;
	return mask;
}

WF_PIECE_FN void wf_lanes_scan(const uint32_t *values, uint32_t *sums)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < WF_LANES; i++) {
		sum += values[i];
		sums[i] = sum;
	}
}

WF_PIECE_FN void wf_lanes_add(uint32_t *to, uint32_t value)
{
	*to += value;
}

WF_PIECE_FN void wf_lanes_or(uint32_t *to, uint32_t value)
{
	*to |= value;
}

WF_PIECE_FN uint32_t wf_bits_reverse(uint32_t value)
{
	value = (value >> 1 & 0x55555555) | (value & 0x55555555) << 1;
	value = (value >> 2 & 0x33333333) | (value & 0x33333333) << 2;
	value = (value >> 4 & 0x0f0f0f0f) | (value & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(value);
}

WF_PIECE_FN uint32_t wf_bits_count(uint32_t value)
{
	return (uint32_t)__builtin_popcount(value);
}

WF_PIECE_FN uint32_t wf_bits_lowest(uint32_t value)
{
	return (uint32_t)__builtin_ctz(value);
}

WF_PIECE_FN uint32_t wf_bits_highest(uint32_t value)
{
	return 31u - (uint32_t)__builtin_clz(value);
}

WF_PIECE_FN uint32_t wf_bits_window(uint32_t low, uint32_t high, uint32_t at)
{
	return (uint32_t)(((wf_u64)high << 32 | low) >> at);
}

WF_PIECE_FN uint32_t wf_load(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

WF_PIECE_FN uint32_t wf_load_aligned(const uint8_t *at)
{
	return wf_load(at);
}

WF_PIECE_FN void wf_store(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

#endif

#endif
