/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to our objects in a forked child: the child must neither keep
 * sockets of the parent open (peers would not see the parent die) nor touch
 * rings. Objects that own descriptors stand in a list; in a child each one's
 * callback closes them.
 */
#ifndef WF_BASE_FORK_H
#define WF_BASE_FORK_H

#include "base/list.h"

struct wf_fork_watch {
	struct wf_list link;
	/* Runs in the child, single-threaded, async-signal-safe calls only. */
	void (*in_child)(struct wf_fork_watch *watch);
};

void wf_base_fork_watch(struct wf_fork_watch *watch);
void wf_base_fork_unwatch(struct wf_fork_watch *watch);

/* Between these, fork() in another thread waits. Not around the calls above. */
void wf_base_fork_hold(void);
void wf_base_fork_release(void);

#endif
