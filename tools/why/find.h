/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All endpoints of this machine that say what they wait for, and the state of
 * their processes.
 */
#ifndef WF_TOOLS_WHY_FIND_H
#define WF_TOOLS_WHY_FIND_H

#include "tools/proc.h"
#include "tools/stat/job.h"
#include "tools/why/page.h"

struct wf_tools_waiter {
	struct wf_tools_process process;
	ino_t inode; /* of its page */
	ino_t net;   /* network namespace; 0: not known */
	struct wf_tools_job job;
	size_t channels;      /* of its process: where in the list of all ... */
	size_t channel_count; /* ... and how many */
	struct wf_tools_waits waits;
};

struct wf_tools_waiters {
	struct wf_tools_waiter *all; /* those of a process follow each other */
	size_t count;
	size_t room;
	/* Memory of channels that processes have mapped, by number, in order for
	 * each process. Read only if somebody waits for anyone. */
	ino_t *channels;
	size_t channel_count;
	size_t channel_room;
	uint64_t now;	      /* when they were read */
	unsigned int denied;  /* processes that we may not look into */
	unsigned int unsound; /* pages that made no sense ... */
	const char *unsound_why;
};

/* 0, -ENOMEM, or -errno when there is no /proc. */
int wf_tools_waiters_find(struct wf_tools_waiters *waiters);
void wf_tools_waiters_free(struct wf_tools_waiters *waiters);

/* The endpoint that @from means by @wait->peer, or NULL. */
const struct wf_tools_waiter *
wf_tools_waiters_peer(const struct wf_tools_waiters *waiters,
		      const struct wf_tools_waiter *from,
		      const struct wf_wait *wait);

/* Whether the processes of two endpoints have a channel to each other. */
bool wf_tools_waiters_share(const struct wf_tools_waiters *waiters,
			    const struct wf_tools_waiter *a,
			    const struct wf_tools_waiter *b);

/* Whether an address as text is of an interface of this network namespace. */
bool wf_tools_waiters_is_local(const char *address);

#endif
