/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that take pieces in order, work on them at the same time, and put
 * them in order again. Whoever finishes the piece whose turn it is puts it, and
 * those after it that are done: so most are written by the thread that made
 * them, from its own cache.
 */
#ifndef WF_TOOLS_GZIP_GANG_H
#define WF_TOOLS_GZIP_GANG_H

#include <stddef.h>

struct wf_gzip_gang {
	unsigned int threads; /* this one among them */
	unsigned int slots;   /* pieces at the same time; more than threads */
	void *arg;
	/* In order, by one thread at a time: what is next goes into @slot.
	 * *none is set if there is nothing more. */
	int (*take)(void *arg, unsigned int slot, int *none);
	/* Any number at the same time. */
	int (*work)(void *arg, unsigned int slot);
	/* In order, by one thread at a time. */
	int (*put)(void *arg, unsigned int slot);
};

/* 0, or what any of them returned first, after which nothing new is begun. */
int wf_tools_gzip_gang_run(const struct wf_gzip_gang *gang);

/* Memory for all slots, in large pages where there are some: else a tenth of
 * the time goes into faults. NULL without memory; free() it. */
void *wf_tools_gzip_gang_room(size_t size);

#endif
