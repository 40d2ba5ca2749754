/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants whose value hides an order of events that a larger machine or a
 * longer run would show: a queue that never fills, rings that never wrap.
 *
 * WF_KNOB(name, value) is @value in the provider. The simulator (tests/sim), which
 * builds the same sources with WEFT_SIM, draws another value from its seed.
 */
#ifndef WF_OS_KNOB_H
#define WF_OS_KNOB_H

/* One value for all processes, as one build has (tests/sim/scenario.c). */
struct wf_sim_knobs {
	unsigned int compq_high_min;
	unsigned int watched_max;
	unsigned int quiet_turns;
	unsigned int idle_turns;
	unsigned int slots_log2;
	unsigned int lines_log2;
	unsigned int max_peers;
	unsigned int burst_min;
	unsigned int burst_us;
};

extern struct wf_sim_knobs wf_sim_knobs; /* of the simulator alone */

#ifdef WEFT_SIM
#define WF_KNOB(name, value) (wf_sim_knobs.name)
#else
#define WF_KNOB(name, value) (value)
#endif

#endif
