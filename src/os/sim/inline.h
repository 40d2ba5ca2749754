/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated side of os/inline.h: the real one, because the simulator stands
 * below it, and knobs that the scenario sets (tests/sim/scenario.c).
 */
#ifndef WF_OS_SIM_INLINE_H
#define WF_OS_SIM_INLINE_H

#include "os/linux/inline.h"

/* Of all processes: one build would have one value, too. */
struct wf_sim_knobs {
	unsigned int compq_high_min;
	unsigned int watched_max;
	unsigned int quiet_turns;
	unsigned int slots_log2;
	unsigned int lines_log2;
};

extern struct wf_sim_knobs wf_sim_knobs;

#undef WF_KNOB
#define WF_KNOB(name, value) (wf_sim_knobs.name)

#endif
