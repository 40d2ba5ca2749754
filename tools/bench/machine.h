/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A figure depends on the machine as much as on the code: this header describes
 * the machine.
 */
#ifndef WF_TOOLS_BENCH_MACHINE_H
#define WF_TOOLS_BENCH_MACHINE_H

#include "tools/bench/plan.h"

struct wf_tools_machine {
	char cpu[128];
	char kernel[160];
	char governor[64];   /* of the first CPU; "unknown" */
	char virtual_on[96]; /* empty: no sign of a hypervisor */
	char time[32];	     /* UTC, ISO 8601 */
	double load;	     /* of the last minute, at the start */
	unsigned n_cpus;     /* on line */
	bool siblings;	     /* the two CPUs are threads of one core */
};

/* Never fails: a fact that cannot be found is "unknown". */
void wf_tools_machine_read(struct wf_tools_machine *machine,
			   const struct wf_tools_plan *plan);

#endif
