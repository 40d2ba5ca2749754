/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header inlines the calls to the kernel and to the processor that the
 * provider makes on its hot paths, and says where it keeps variables that
 * change.
 */
#ifndef WF_OS_INLINE_H
#define WF_OS_INLINE_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* Before the definition of each variable of the provider that lives as long as
 * the process and changes. They lie together, so that the simulator, which runs
 * many processes in one, can give each process its own. */
#define WF_PER_PROCESS __attribute__((section("wf_process")))

/* The same for a variable that is set once, to what every process would set it
 * to: the simulator has one for all. */
#define WF_SAME_FOR_ALL __attribute__((section("wf_same")))

/* Nanoseconds of the monotonic clock. */
static inline uint64_t wf_os_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A counter that grows with time at the same rate for all processes of a host.
 * Cheaper than the clock, and of no meaning but for events that are compared
 * with each other: `weft trace` finds out how long a tick is. */
#if defined(__x86_64__)
static inline uint64_t wf_os_ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t wf_os_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#else
static inline uint64_t wf_os_ticks(void)
{
	return wf_os_clock_ns();
}
#endif

/* One turn of a loop that waits for another thread or process without giving
 * up the processor. */
#if defined(__x86_64__)
static inline void wf_os_relax(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void wf_os_relax(void)
{
	__asm__ volatile("yield");
}
#else
static inline void wf_os_relax(void)
{
}
#endif

/* Copies by the instruction for strings of bytes, if the processor has one. */
#if defined(__x86_64__)
static inline void wf_os_copy_string(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb"
			 : "+D"(to), "+S"(from), "+c"(len)
			 :
			 : "memory");
}
#else
static inline void wf_os_copy_string(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

/* wf_os_write_line_around() copies 64 bytes to a line that it writes around the
 * caches, if the processor can do that. Such stores are not ordered among
 * themselves, and a release does not order them: wf_os_order_lines() puts all of
 * them before the stores that follow. */
#if defined(__x86_64__)
static inline void wf_os_write_line_around(void *to, const void *from)
{
	const __m128i *in = from;
	__m128i *out = to;
	__m128i a = _mm_loadu_si128(in);
	__m128i b = _mm_loadu_si128(in + 1);
	__m128i c = _mm_loadu_si128(in + 2);
	__m128i d = _mm_loadu_si128(in + 3);

	_mm_stream_si128(out, a);
	_mm_stream_si128(out + 1, b);
	_mm_stream_si128(out + 2, c);
	_mm_stream_si128(out + 3, d);
}

static inline void wf_os_order_lines(void)
{
	_mm_sfence();
}
#else
static inline void wf_os_write_line_around(void *to, const void *from)
{
	memcpy(to, from, 64);
}

static inline void wf_os_order_lines(void)
{
}
#endif

#endif
