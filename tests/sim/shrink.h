/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds smaller scenarios that also fail.
 */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim.h"

/* Tries to leave out faults, processes and messages. True: @s is smaller now,
 * and ends with the same @status of wait(). */
bool shrink(struct sim_scenario *s, int status);
/* Prints it in the form that --only accepts. */
const char *shrink_text(const struct sim_scenario *s, char *text, size_t len);
/* 0 or -EINVAL. */
int shrink_apply(struct sim_scenario *s, const char *only);

/* Runs it in a process of its own, without output: 0, or the status of
 * wait(). */
int sim_outcome(const struct sim_scenario *s);

#endif
