/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying a few bytes (about a hundred at most) without a call: overlapping
 * moves, each of one size, so that the length costs few branches.
 */
#ifndef WF_OP_COPY_H
#define WF_OP_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define WF_OP_COPY_SMALL_MAX 128

/* Two runs of @n bytes (a constant), from both ends, that may overlap. */
static inline __attribute__((always_inline)) void
wf_op_copy_ends(uint8_t *to, const uint8_t *from, size_t len, size_t n)
{
	/* cppcheck-suppress ctunullpointer ; NULL comes with a length of 0 */
	memcpy(to, from, n);
	memcpy(to + len - n, from + len - n, n);
}

static inline void wf_op_copy_small(uint8_t *to, const uint8_t *from,
				    size_t len)
{
	if (len > 64) {
		wf_op_copy_ends(to, from, len, 64);
	} else if (len > 32) {
		wf_op_copy_ends(to, from, len, 32);
	} else if (len >= 16) {
		wf_op_copy_ends(to, from, len, 16);
	} else if (len >= 8) {
		wf_op_copy_ends(to, from, len, 8);
	} else if (len >= 4) {
		wf_op_copy_ends(to, from, len, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		/* cppcheck-suppress arrayIndexOutOfBoundsCond ; len is 1 to 3 */
		to[len - 1] = from[len - 1];
	}
}

/* Copies to memory that another processor reads next, around our caches: its
 * lines need not be fetched from there before they are written, nor from here
 * when they are read. That is faster where the caches of the two are far apart,
 * and slower where they are not. @to is aligned to a cache line. All of it is
 * written before any store after the call: such stores are not ordered by
 * themselves, and a release does not order them. */
#if defined(__x86_64__)
static inline void wf_op_copy_around(uint8_t *to, const uint8_t *from,
				     size_t len)
{
	size_t lines = len / 64, rest = len % 64;

	for (; lines; lines--, to += 64, from += 64) {
		const __m128i *line = (const __m128i *)(const void *)from;
		__m128i a = _mm_loadu_si128(line);
		__m128i b = _mm_loadu_si128(line + 1);
		__m128i c = _mm_loadu_si128(line + 2);
		__m128i d = _mm_loadu_si128(line + 3);

		_mm_stream_si128((__m128i *)(void *)to, a);
		_mm_stream_si128((__m128i *)(void *)to + 1, b);
		_mm_stream_si128((__m128i *)(void *)to + 2, c);
		_mm_stream_si128((__m128i *)(void *)to + 3, d);
	}
	memcpy(to, from, rest);
	_mm_sfence();
}
#else
static inline void wf_op_copy_around(uint8_t *to, const uint8_t *from,
				     size_t len)
{
	memcpy(to, from, len);
}
#endif

#endif
