/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory barrier on all processors at once, paid for by the side that rarely
 * needs it: whoever goes to sleep orders its own word against what others write
 * without them ever running a fence (membarrier(2)).
 */
#ifndef WF_BASE_BARRIER_H
#define WF_BASE_BARRIER_H

#include <stdbool.h>

/* Registers this process, so that barriers of others reach it. False where the
 * kernel has no such barriers. Once is enough; a forked child asks anew. */
bool wf_base_barrier_join(void);

/* Whatever threads of joined processes did before, all see now, and they see
 * what we did before. @all_joined: false when others may not have joined. Then,
 * and where there are no such barriers, waits much longer than a store can
 * stay in a store buffer. */
void wf_base_barrier_all(bool all_joined);

#endif
