/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time. Nanoseconds of the monotonic clock, for deadlines. Read a few times in
 * a thousand polls, never per message.
 */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdint.h>

#include "os/inline.h"

#define WF_NS_PER_US 1000ull
#define WF_NS_PER_MS 1000000ull
#define WF_NS_PER_S 1000000000ull

static inline uint64_t wf_base_clock_ns(void)
{
	return wf_os_clock_ns();
}

#endif
