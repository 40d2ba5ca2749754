/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which copies this processor has.
 */
#include "queue/copy.h"

#include <stddef.h>

#if defined(__x86_64__)

static bool can(enum wf_queue_copy_kind kind)
{
	__builtin_cpu_init();
	if (kind == WF_QUEUE_COPY_AVX512)
		return __builtin_cpu_supports("avx512f");
	if (kind == WF_QUEUE_COPY_AVX)
		return __builtin_cpu_supports("avx");
	return kind == WF_QUEUE_COPY_SSE;
}

#elif defined(__aarch64__)

static bool can(enum wf_queue_copy_kind kind)
{
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
		[WF_QUEUE_COPY_MEMORY] = "memory",
	};

	return names[kind];
}
