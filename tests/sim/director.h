/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of one scenario.
 */
#ifndef SIM_DIRECTOR_H
#define SIM_DIRECTOR_H

#include "sim.h"

/* Runs fidelity.c in a simulated process. */
void director_fidelity(void);
/* Returns if the scenario succeeds; otherwise sim_fail() ends the process. Only
 * once in a process. */
void director_run(const struct sim_scenario *s, bool trace);

#endif
