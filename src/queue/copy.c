/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds which copies this processor has, and chooses one.
 */
#include "queue/copy.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "os/inline.h"

#if defined(__x86_64__)

#include <cpuid.h>

#define ROUNDS 16
#define POSTS 64

#define CPUID_FEATURES 7
#define CPUID_ECX_MOVDIR64B (1u << 28)

static bool has_movdir64b(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid_count(CPUID_FEATURES, 0, &eax, &ebx, &ecx, &edx) &&
	       ecx & CPUID_ECX_MOVDIR64B;
}

static bool can(enum wf_queue_copy_kind kind)
{
	if (kind == WF_QUEUE_COPY_MOVDIR64B)
		return has_movdir64b();
	__builtin_cpu_init();
	if (kind == WF_QUEUE_COPY_AVX512)
		return __builtin_cpu_supports("avx512f");
	if (kind == WF_QUEUE_COPY_AVX)
		return __builtin_cpu_supports("avx");
	return kind == WF_QUEUE_COPY_SSE;
}

/* As nic/wqe.h stages: a copy waits for narrower stores. */
typedef uint64_t wide __attribute__((vector_size(16)));

/* Time of the quickest of some rounds, in each of which descriptors are staged
 * and copied, and read as the other side of a ring does. */
static inline uint64_t ticks_of(void (*copy)(void *dst, const void *src))
{
	_Alignas(64) uint8_t ring[POSTS][64];
	_Alignas(64) wide staged[4];
	uint64_t best = UINT64_MAX, sum = 0;

	memset(ring, 0, sizeof(ring));
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t began = wf_os_ticks(), took;

		for (uint64_t i = 0; i < POSTS; i++) {
			for (int j = 0; j < 4; j++)
				staged[j] = (wide){ sum + i, i };
			copy(ring[i], staged);
		}
		/* As before a doorbell. */
		__asm__ volatile("sfence" ::: "memory");
		for (uint64_t i = 0; i < POSTS; i++) {
			uint64_t word;

			memcpy(&word, ring[i], sizeof(word));
			sum += word;
		}
		took = wf_os_ticks() - began;
		best = took < best ? took : best;
	}
	/* So that nothing is left out. */
	__asm__ volatile("" : : "r"(sum));
	return best;
}

/* MOVDIR64B writes past the caches, and the other side has to fetch what it
 * wrote: it is used in ordinary memory only where it is the quicker one all the
 * same. Found out once; of two threads that do so at the same time, the answer of
 * the first is kept. */
static bool prefers_movdir64b(void)
{
	enum { UNKNOWN, NO, YES };
	WF_SAME_FOR_ALL static atomic_int answer;
	int known = atomic_load_explicit(&answer, memory_order_relaxed);

	if (known == UNKNOWN) {
		int before = UNKNOWN;

		known = has_movdir64b() && ticks_of(wf_queue_copy_movdir64b) <
						   ticks_of(wf_queue_copy_sse) ?
				YES :
				NO;
		if (!atomic_compare_exchange_strong(&answer, &before, known))
			known = before;
	}
	return known == YES;
}

#elif defined(__aarch64__)

#include "os/process.h"

/* Linux's AT_HWCAP3 and HWCAP3_LS64; the C library's headers may be older. */
#define HWCAP3 29
#define HWCAP3_ST64B (1ul << 3)

static bool can(enum wf_queue_copy_kind kind)
{
	if (kind == WF_QUEUE_COPY_ST64B)
		return wf_os_auxval(HWCAP3) & HWCAP3_ST64B;
	return kind == WF_QUEUE_COPY_NEON;
}

static bool prefers_movdir64b(void)
{
	return false;
}

#else

static bool can(enum wf_queue_copy_kind kind)
{
	(void)kind;
	return false;
}

static bool prefers_movdir64b(void)
{
	return false;
}

#endif

bool wf_queue_copy_can(enum wf_queue_copy_kind kind)
{
	return kind == WF_QUEUE_COPY_BEST || kind == WF_QUEUE_COPY_PLAIN ||
	       kind == WF_QUEUE_COPY_MEMORY || can(kind);
}

enum wf_queue_copy_kind wf_queue_copy_choose(enum wf_queue_copy_kind kind)
{
	static const enum wf_queue_copy_kind order[] = {
		WF_QUEUE_COPY_AVX512,
		WF_QUEUE_COPY_AVX,
		WF_QUEUE_COPY_SSE,
		WF_QUEUE_COPY_NEON,
	};
	size_t i = kind == WF_QUEUE_COPY_MEMORY ? 2 : 0;

	if (kind != WF_QUEUE_COPY_BEST && kind != WF_QUEUE_COPY_MEMORY)
		return kind;
	if (kind == WF_QUEUE_COPY_MEMORY && prefers_movdir64b())
		return WF_QUEUE_COPY_MOVDIR64B;
	for (; i < sizeof(order) / sizeof(order[0]); i++) {
		if (can(order[i]))
			return order[i];
	}
	return WF_QUEUE_COPY_PLAIN;
}

const char *wf_queue_copy_name(enum wf_queue_copy_kind kind)
{
	static const char *const names[WF_QUEUE_COPY_KINDS] = {
		[WF_QUEUE_COPY_BEST] = "best",
		[WF_QUEUE_COPY_PLAIN] = "plain",
		[WF_QUEUE_COPY_SSE] = "sse",
		[WF_QUEUE_COPY_AVX] = "avx",
		[WF_QUEUE_COPY_AVX512] = "avx512",
		[WF_QUEUE_COPY_NEON] = "neon",
		[WF_QUEUE_COPY_MOVDIR64B] = "movdir64b",
		[WF_QUEUE_COPY_ST64B] = "st64b",
		[WF_QUEUE_COPY_MEMORY] = "memory",
	};

	return names[kind];
}
