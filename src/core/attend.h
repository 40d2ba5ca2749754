/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress (FI_PROGRESS_AUTO): one thread of the process drives the
 * endpoints whose owner does not call, so that messages, RMA and atomics of
 * peers complete while the owner computes. While the owner polls, the thread
 * looks once a millisecond whether it still does. While it does not, the thread
 * sleeps until a peer or the endpoint's timer wakes it.
 *
 * The owner's calls do not know of it: they take the endpoint's lock, which
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
	/* The thread's. What the owner's polls had left behind at the last
	 * look: both are the same only if it has not polled since. */
	uint32_t polls;
	uint64_t now;
	bool armed; /* work of the endpoint wakes the thread */
	bool fired; /* it was */
	struct wf_list link;
};

/* Drives @attended, whose first two members are set, from now on. 0 or
 * -errno. */
int wf_core_attend_add(struct wf_attended *attended);

/* The thread does not touch it any more after this. */
void wf_core_attend_remove(struct wf_attended *attended);

#endif
