/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which copies this processor has.
 */
#include "queue/copy.h"

#include <stddef.h>

#if defined(__x86_64__)

#include <cpuid.h>

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

#else

static bool can(enum wf_queue_copy_kind kind)
{
	(void)kind;
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
