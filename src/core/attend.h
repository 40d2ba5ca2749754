/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress (FI_PROGRESS_AUTO): one thread of the process makes
 * progress for the endpoints whose owner makes no calls, so that messages, RMA
 * and atomics of peers complete while the owner computes. While the owner
 * polls, the thread checks once a millisecond whether it still does. Once it
 * does not, the thread sleeps until a peer or the endpoint's timer wakes it.
 *
 * The owner's calls do not depend on it: they take the endpoint's lock, which
 * must be a real one.
 */
#ifndef WF_CORE_ATTEND_H
#define WF_CORE_ATTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/core.h"

struct wf_attended {
	struct wf_core *core;
	/* Called before progress, with the lock held; NULL: nothing to do. */
	void (*turn)(struct wf_attended *attended);

	bool added; /* and not removed: the owner's */
	/* The thread's: the counts of the owner's polls at the last look. They
	 * are unchanged only if the owner has not polled since. */
	uint32_t polls;
	uint64_t now;
	bool armed; /* work of the endpoint wakes the thread */
	bool fired; /* it has woken the thread */
	struct wf_list link;
};

/* From now on the thread makes progress for @attended, whose first two members
 * are set. 0 or -errno. */
int wf_core_attend_add(struct wf_attended *attended);

/* After this the thread does not touch it any more. */
void wf_core_attend_remove(struct wf_attended *attended);

#endif
