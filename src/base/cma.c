/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures a copy by CMA. It copies only within its own process.
 */
#include "base/cma.h"

#include "base/clock.h"
#include "os/process.h"
#include "os/types.h"

/* Some microseconds in all. */
#define TRIALS 16
#define TRIAL_BYTES 4096

uint64_t wf_base_cma_call_ns(void)
{
	uint8_t from[TRIAL_BYTES] = { 0 }, to[TRIAL_BYTES];
	const struct iovec local = { to, sizeof(to) };
	const struct iovec remote = { from, sizeof(from) };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		uint64_t begin = wf_base_clock_ns(), took;

		if (wf_os_vm_read(wf_os_getpid(), &local, 1, &remote, 1) < 0)
			return 0;
		took = wf_base_clock_ns() - begin;
		if (took < best)
			best = took;
	}
	return best;
}
