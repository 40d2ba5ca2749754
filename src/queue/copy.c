/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of one descriptor. The wide ones are written as instructions: a
 * compiler may roll a loop, split a store, or turn the whole into a call of
 * memcpy, and none of that may happen to device memory. Registers without an
 * SSE half (zmm16) are used where there is a choice, so that nothing has to be
 * cleared afterwards.
 */
#include "queue/copy.h"

#include <stddef.h>
#include <stdint.h>

/* A descriptor was staged through structs of its own. */
struct words {
	uint64_t v[8];
} __attribute__((may_alias));

static void copy_plain(void *dst, const void *src)
{
	volatile struct words *to = dst;
	const struct words *from = src;
	uint64_t a = from->v[0], b = from->v[1], c = from->v[2], d = from->v[3],
		 e = from->v[4], f = from->v[5], g = from->v[6], h = from->v[7];

	/* volatile keeps each store whole, once, and in this order. */
	to->v[0] = a;
	to->v[1] = b;
	to->v[2] = c;
	to->v[3] = d;
	to->v[4] = e;
	to->v[5] = f;
	to->v[6] = g;
	to->v[7] = h;
}

#if defined(__x86_64__)

static void copy_sse(void *dst, const void *src)
{
	__asm__ volatile("movdqa (%1), %%xmm0\n\t"
			 "movdqa 16(%1), %%xmm1\n\t"
			 "movdqa 32(%1), %%xmm2\n\t"
			 "movdqa 48(%1), %%xmm3\n\t"
			 "movdqa %%xmm0, (%0)\n\t"
			 "movdqa %%xmm1, 16(%0)\n\t"
			 "movdqa %%xmm2, 32(%0)\n\t"
			 "movdqa %%xmm3, 48(%0)"
			 :
			 : "r"(dst), "r"(src)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
}

/* The upper halves of ymm0 and ymm1 must not stay dirty: every SSE instruction
 * after it would pay for them. */
static void copy_avx(void *dst, const void *src)
{
	__asm__ volatile("vmovdqa (%1), %%ymm0\n\t"
			 "vmovdqa 32(%1), %%ymm1\n\t"
			 "vmovdqa %%ymm0, (%0)\n\t"
			 "vmovdqa %%ymm1, 32(%0)\n\t"
			 "vzeroupper"
			 :
			 : "r"(dst), "r"(src)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
			   "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
			   "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

__attribute__((target("avx512f"))) static void copy_avx512(void *dst,
							   const void *src)
{
	__asm__ volatile("vmovdqa64 (%1), %%zmm16\n\t"
			 "vmovdqa64 %%zmm16, (%0)"
			 :
			 : "r"(dst), "r"(src)
			 : "xmm16", "memory");
}

static wf_queue_copy_fn wide(enum wf_queue_copy_kind kind)
{
	__builtin_cpu_init();
	if (kind == WF_QUEUE_COPY_SSE)
		return copy_sse;
	if (kind == WF_QUEUE_COPY_AVX && __builtin_cpu_supports("avx"))
		return copy_avx;
	if (kind == WF_QUEUE_COPY_AVX512 && __builtin_cpu_supports("avx512f"))
		return copy_avx512;
	return NULL;
}

#elif defined(__aarch64__)

static void copy_neon(void *dst, const void *src)
{
	__asm__ volatile("ldp q0, q1, [%1]\n\t"
			 "ldp q2, q3, [%1, #32]\n\t"
			 "stp q0, q1, [%0]\n\t"
			 "stp q2, q3, [%0, #32]"
			 :
			 : "r"(dst), "r"(src)
			 : "v0", "v1", "v2", "v3", "memory");
}

static wf_queue_copy_fn wide(enum wf_queue_copy_kind kind)
{
	return kind == WF_QUEUE_COPY_NEON ? copy_neon : NULL;
}

#else

static wf_queue_copy_fn wide(enum wf_queue_copy_kind kind)
{
	(void)kind;
	return NULL;
}

#endif

wf_queue_copy_fn wf_queue_copy_get(enum wf_queue_copy_kind kind)
{
	return kind == WF_QUEUE_COPY_PLAIN ? copy_plain : wide(kind);
}

wf_queue_copy_fn wf_queue_copy_best(void)
{
	static const enum wf_queue_copy_kind order[] = {
		WF_QUEUE_COPY_AVX512,
		WF_QUEUE_COPY_AVX,
		WF_QUEUE_COPY_SSE,
		WF_QUEUE_COPY_NEON,
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		wf_queue_copy_fn copy = wf_queue_copy_get(order[i]);

		if (copy)
			return copy;
	}
	return copy_plain;
}

const char *wf_queue_copy_name(enum wf_queue_copy_kind kind)
{
	static const char *const names[WF_QUEUE_COPY_KINDS] = {
		[WF_QUEUE_COPY_PLAIN] = "plain",
		[WF_QUEUE_COPY_SSE] = "sse",
		[WF_QUEUE_COPY_AVX] = "avx",
		[WF_QUEUE_COPY_AVX512] = "avx512",
		[WF_QUEUE_COPY_NEON] = "neon",
	};

	return names[kind];
}
