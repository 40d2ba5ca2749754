/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processor hints beyond C, and the size of a cache line.
 */
#ifndef WF_BASE_CPU_H
#define WF_BASE_CPU_H

#include "os/inline.h"

#define WF_LINE 64
#define wf_likely(x) __builtin_expect(!!(x), 1)
#define wf_unlikely(x) __builtin_expect(!!(x), 0)
#define WF_ALIGNED(n) __attribute__((aligned(n)))

static inline void wf_base_cpu_relax(void)
{
	wf_os_relax();
}

/* wf_base_cpu_own() gets the line of @at into the cache of this processor, to be
 * written: others lose their copies. The builtin would only get a copy, because
 * gcc does not assume that the processor has the instruction. Those without it do
 * nothing. Always inlined: see wf_shm_in_prefetch(). */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) void
wf_base_cpu_own(const void *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
}
#else
static inline __attribute__((always_inline)) void
wf_base_cpu_own(const void *at)
{
	__builtin_prefetch(at, 1);
}
#endif

#endif
