/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory barrier on all processors at once (membarrier(2)). Only the side
 * that needs it rarely runs it: a thread that goes to sleep orders its own word
 * against the writes of others, and the others run no fence.
 */
#ifndef WF_BASE_BARRIER_H
#define WF_BASE_BARRIER_H

#include <stdbool.h>

/* Registers this process, so that barriers of other processes reach it. False
 * if the kernel has no such barriers. One call is enough; a forked child must
 * call it again. */
bool wf_base_barrier_join(void);

/* After the call, all threads of joined processes see each other's earlier
 * writes and ours, and we see theirs. @all_joined: false if others may not have
 * joined. In that case, and without such barriers, the call waits much longer
 * than a store can stay in a store buffer. */
void wf_base_barrier_all(bool all_joined);

#endif
