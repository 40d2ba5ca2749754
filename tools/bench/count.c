/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file computes how many messages a run has.
 */
#include "tools/bench/count.h"

#include <math.h>

#define TRIES 3

int wf_tools_count_run(const struct wf_tools_plan *plan,
		       enum wf_tools_test test, unsigned index, double *seen,
		       double guess, wf_tools_count_play play, void *arg,
		       double *ns)
{
	size_t size = plan->sizes[test].v[index];
	double ways = test == WF_TOOLS_LATENCY ? 2 : 1;
	double least = test == WF_TOOLS_LATENCY ? 2 : plan->window[test];
	double count;
	int ret, tries;

	if (*seen <= 0)
		*seen = guess;
	for (tries = 0; tries < TRIES; tries++) {
		count = fmax(least, ceil((double)plan->run_ns / *seen / ways));
		ret = play(arg, plan, test, size, count, ns);
		if (ret)
			return ret;
		*seen = *ns;
		if (*ns * count * ways > (double)plan->run_ns / 2)
			break;
	}
	return 0;
}
