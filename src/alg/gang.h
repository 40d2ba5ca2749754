/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that take pieces in order, work on them at the same time, and write
 * them in order: used for compression in library and command. If a piece can be
 * written anywhere once its place is known, only the places are assigned in
 * order. Otherwise the thread that finishes the piece whose turn it is writes
 * it, and those after it that are done.
 */
#ifndef WF_ALG_GANG_H
#define WF_ALG_GANG_H

#include <stddef.h>

struct wf_gang {
	unsigned int threads; /* this one among them */
	unsigned int slots;   /* pieces at the same time; more than threads */
	void *arg;
	/* In order, by one thread at a time: the next piece goes into @slot.
	 * *none is set if there is nothing more. */
	int (*take)(void *arg, unsigned int slot, int *none);
	/* Any number at the same time. */
	int (*work)(void *arg, unsigned int slot);
	/* May be NULL. In order, by one thread at a time, and quick. */
	int (*place)(void *arg, unsigned int slot);
	/* Any number at the same time after place(); in order without. */
	int (*put)(void *arg, unsigned int slot);
};

/* 0, or what any of them returned first, after which nothing new is begun. */
int wf_alg_gang_run(const struct wf_gang *gang);

/* Memory for all slots, in large pages where there are some: else a tenth of
 * the time goes into faults. NULL without memory; free() it. */
void *wf_alg_gang_room(size_t size);

#endif
