/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Smaller scenarios that fail as well.
 */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim.h"

/* Tries to leave out faults, processes and messages. True: @s is smaller now,
 * and ends as it did (@status of wait()). */
bool shrink(struct sim_scenario *s, int status);
/* As --only takes it. */
const char *shrink_text(const struct sim_scenario *s, char *text, size_t len);
/* 0 or -EINVAL. */
int shrink_apply(struct sim_scenario *s, const char *only);

/* Runs it in a process of its own, without a word: 0, or what wait() says. */
int sim_outcome(const struct sim_scenario *s);

#endif
