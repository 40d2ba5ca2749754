/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real side of os/inline.h.
 */
#ifndef WF_OS_LINUX_INLINE_H
#define WF_OS_LINUX_INLINE_H

#include <stdint.h>
#include <time.h>

/* In the provider they are ordinary variables that lie together. */
#define WF_PER_PROCESS __attribute__((section("wf_process")))
#define WF_SAME_FOR_ALL __attribute__((section("wf_same")))

static inline uint64_t wf_os_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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

#endif
