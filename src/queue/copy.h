/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy of one staged 64-byte descriptor into a ring that may be
 * write-combined device memory. Chosen once per processor. Each copy loads
 * everything first and then stores without anything in between, in the fewest
 * stores the processor has, and never reads from the ring. Orders nothing: the
 * fence belongs to the doorbell (sub.h).
 *
 * The wide ones are written as instructions: a compiler may roll a loop, split
 * a store, or turn the whole into a call of memcpy, and none of that may happen
 * to device memory.
 */
#ifndef WF_QUEUE_COPY_H
#define WF_QUEUE_COPY_H

#include <stdbool.h>
#include <stdint.h>

enum wf_queue_copy_kind {
	WF_QUEUE_COPY_BEST,   /* the one with the fewest stores */
	WF_QUEUE_COPY_PLAIN,  /* eight 64-bit stores, any processor */
	WF_QUEUE_COPY_SSE,    /* four of 128 bits */
	WF_QUEUE_COPY_AVX,    /* two of 256 bits */
	WF_QUEUE_COPY_AVX512, /* one of 512 bits */
	WF_QUEUE_COPY_NEON,   /* two pairs of 128 bits */
	/* Instructions for device memory that write 64 bytes at once, past the
	 * caches. They are used where they are asked for by name, because on
	 * device memory nobody has measured them (docs/wqe.md); the first one
	 * also on ordinary memory, if it is the quicker one there. */
	WF_QUEUE_COPY_MOVDIR64B, /* x86-64 */
	WF_QUEUE_COPY_ST64B,	 /* arm64, where Linux lets programs use it */
	WF_QUEUE_COPY_MEMORY, /* the quickest where the ring is ordinary memory
				 and descriptors are staged by stores of 128
				 bits, see docs/wqe.md */
	WF_QUEUE_COPY_KINDS,
};

/* Whether this processor and its operating system can. */
bool wf_queue_copy_can(enum wf_queue_copy_kind kind);

/* Returns the copy that WF_QUEUE_COPY_BEST and _MEMORY stand for here; any
 * other is itself. */
enum wf_queue_copy_kind wf_queue_copy_choose(enum wf_queue_copy_kind kind);

const char *wf_queue_copy_name(enum wf_queue_copy_kind kind);

/* @dst and @src are aligned to 64 bytes, here and below. */
/* A descriptor was staged through structs of its own. */
struct wf_queue_words {
	uint64_t v[8];
} __attribute__((may_alias));

static inline void wf_queue_copy_plain(void *dst, const void *src)
{
	volatile struct wf_queue_words *to = dst;
	const struct wf_queue_words *from = src;
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

static inline void wf_queue_copy_sse(void *dst, const void *src)
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
static inline void wf_queue_copy_avx(void *dst, const void *src)
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

/* A compiler that may use zmm16 itself is told; others do not know its name. */
#ifdef __AVX512F__
#define WF_QUEUE_ZMM_CLOBBER "xmm16", "memory"
#else
#define WF_QUEUE_ZMM_CLOBBER "memory"
#endif

/* zmm16 has no SSE half: nothing to clear afterwards. */
static inline void wf_queue_copy_avx512(void *dst, const void *src)
{
	__asm__ volatile("vmovdqa64 (%1), %%zmm16\n\t"
			 "vmovdqa64 %%zmm16, (%0)"
			 :
			 : "r"(dst), "r"(src)
			 : WF_QUEUE_ZMM_CLOBBER);
}

/* One write of 64 bytes to memory of any kind. It is ordered as a store to
 * write-combined memory is: by the fence before the doorbell. */
static inline void wf_queue_copy_movdir64b(void *dst, const void *src)
{
	__asm__ volatile("movdir64b (%1), %0"
			 :
			 : "r"(dst), "r"(src)
			 : "memory");
}

#elif defined(__aarch64__)

/* The registers x8 to x15 in one store (FEAT_LS64), to device memory only: on
 * ordinary memory it faults. */
static inline void wf_queue_copy_st64b(void *dst, const void *src)
{
	__asm__ volatile(".arch_extension ls64\n\t"
			 "ldp x8, x9, [%1]\n\t"
			 "ldp x10, x11, [%1, #16]\n\t"
			 "ldp x12, x13, [%1, #32]\n\t"
			 "ldp x14, x15, [%1, #48]\n\t"
			 "st64b x8, [%0]"
			 :
			 : "r"(dst), "r"(src)
			 : "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
			   "memory");
}

static inline void wf_queue_copy_neon(void *dst, const void *src)
{
	__asm__ volatile("ldp q0, q1, [%1]\n\t"
			 "ldp q2, q3, [%1, #32]\n\t"
			 "stp q0, q1, [%0]\n\t"
			 "stp q2, q3, [%0, #32]"
			 :
			 : "r"(dst), "r"(src)
			 : "v0", "v1", "v2", "v3", "memory");
}

#endif

#endif
