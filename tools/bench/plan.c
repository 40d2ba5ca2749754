/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows from a plan by arithmetic alone. It must not change the plan.
 */
#include "tools/bench/plan.h"

unsigned wf_tools_plan_window(const struct wf_tools_plan *plan,
			      enum wf_tools_test test, size_t size)
{
	size_t most = WF_TOOLS_MAX_IN_FLIGHT / size;

	if (most < 1)
		most = 1;
	return plan->window[test] < most ? plan->window[test] : (unsigned)most;
}

const char *wf_tools_plan_word(enum wf_tools_test test)
{
	static const char *const words[] = {
		[WF_TOOLS_LATENCY] = "latency",
		[WF_TOOLS_BANDWIDTH] = "bandwidth",
		[WF_TOOLS_RATE] = "rate",
	};

	return words[test];
}
