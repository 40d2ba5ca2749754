/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that are computed from a plan. It must not change the plan.
 */
#include "tools/bench/plan.h"

unsigned wf_tools_plan_window(const struct wf_tools_plan *plan,
			      enum wf_tools_test test, size_t size)
{
	size_t most = WF_TOOLS_MAX_IN_FLIGHT / size;

	if (wf_tools_test_get(test)->axis != WF_TOOLS_AXIS_SIZE)
		return plan->window[test];
	if (most < 1)
		most = 1;
	return plan->window[test] < most ? plan->window[test] : (unsigned)most;
}

const char *wf_tools_plan_engine(const struct wf_tools_plan *plan)
{
	const struct wf_tools_test_info *info;
	unsigned t;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		info = wf_tools_test_get(t);
		if (plan->tests[t] && info->engine)
			return info->engine;
	}
	return NULL;
}
