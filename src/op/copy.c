/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way to copy suits this processor.
 */
#include "op/copy.h"

#include <stdatomic.h>

#if defined(__x86_64__)

#include <cpuid.h>

#define CPUID_MODEL 1
#define CPUID_FEATURES 7
#define CPUID_EDX_FSRM (1u << 4)
#define FAMILY_ZEN5 0x1au

/* Zen 3 and 4 have FSRM as well; they were not measured, and keep the C library's
 * copy. */
static bool ask_processor(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) ||
	    ebx != signature_AMD_ebx || ecx != signature_AMD_ecx ||
	    edx != signature_AMD_edx ||
	    !__get_cpuid(CPUID_MODEL, &eax, &ebx, &ecx, &edx))
		return false;
	/* The base family is 15, the extended one is added to it. */
	if (((eax >> 8) & 15) + ((eax >> 20) & 255) < FAMILY_ZEN5)
		return false;
	return __get_cpuid_count(CPUID_FEATURES, 0, &eax, &ebx, &ecx, &edx) &&
	       edx & CPUID_EDX_FSRM;
}

#else

static bool ask_processor(void)
{
	return false;
}

#endif

/* The answer is kept: in a virtual machine each question is passed to the host. */
bool wf_op_copy_writes_whole_lines(void)
{
	enum { UNKNOWN, NO, YES };
	WF_SAME_FOR_ALL static atomic_int answer = UNKNOWN;
	int is = atomic_load_explicit(&answer, memory_order_relaxed);

	if (wf_unlikely(is == UNKNOWN)) {
		is = ask_processor() ? YES : NO;
		atomic_store_explicit(&answer, is, memory_order_relaxed);
	}
	return is == YES;
}
