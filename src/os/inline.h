/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the provider asks of the kernel and of time on its hot paths, inlined.
 * The simulator is another build of the same sources with WEFT_SIM defined; a
 * library that we ship cannot be redirected to it.
 *
 * Both sides define:
 *
 * uint64_t wf_os_clock_ns(void): nanoseconds of the monotonic clock.
 * void wf_os_relax(void): one turn of a loop that waits for another thread or
 *	process without giving up the processor.
 * WF_PER_PROCESS: before the definition of each static or global variable of
 *	the provider that changes. The simulator runs many processes in one, and
 *	gives each its own value of what is defined with it.
 * WF_SAME_FOR_ALL: the same for a variable that is set once, to what every
 *	process would set it to.
 */
#ifndef WF_OS_INLINE_H
#define WF_OS_INLINE_H

#ifdef WEFT_SIM
#include "os/sim/inline.h"
#else
#include "os/linux/inline.h"
#endif

#endif
