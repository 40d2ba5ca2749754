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

#endif
