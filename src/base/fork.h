/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header says what happens to our objects in a forked child. The child
 * must not keep sockets of the parent open (peers would not notice that the
 * parent dies) and must not touch rings. Objects that own descriptors are in a
 * list; in a child, the callback of each closes them.
 */
#ifndef WF_BASE_FORK_H
#define WF_BASE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"

struct wf_fork_watch {
	struct wf_list link;
	/* Runs in the child, single-threaded, async-signal-safe calls only. */
	void (*in_child)(struct wf_fork_watch *watch);
};

void wf_base_fork_watch(struct wf_fork_watch *watch);
void wf_base_fork_unwatch(struct wf_fork_watch *watch);

/*
 * Puts @watch into the list unless *@watched, which it sets. fork() sees both
 * done or neither, so a child never finds a first use that another thread of
 * the parent had begun. The callback clears *@watched: a child's list is empty.
 */
void wf_base_fork_watch_once(struct wf_fork_watch *watch, atomic_bool *watched);

/* Between these calls, fork() in another thread waits. Do not use them around
 * the calls above. */
void wf_base_fork_hold(void);
void wf_base_fork_release(void);

#endif
