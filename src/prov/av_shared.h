/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared side of a named AV: its creator publishes indexes and addresses,
 * and readers in other processes update a table of their own from them. A named
 * AV has one writer, and exists as long as its creator has it open; readers
 * keep the last contents. Takes no lock.
 */
#ifndef WF_PROV_AV_SHARED_H
#define WF_PROV_AV_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fork.h"
#include "prov/addr_table.h"
#include "prov/av_shared_defs.h"

struct wf_prov_av_shared {
	char *base;
	bool owner;
	/* Owner. The descriptors are -1 in a forked child, which may only
	 * read. */
	int memfd;
	int claim;     /* the socket that makes the name ours alone */
	uint32_t room; /* slots whose pages we have */
	struct wf_fork_watch fork_watch;
	/* Reader. */
	uint64_t seen; /* changes that the table has */
};

/* Makes the AV @name with room for @count addresses to begin with. 0, -EINVAL
 * for a name that is none, -EADDRINUSE when it is there, or -errno. */
int wf_prov_av_shared_create(struct wf_prov_av_shared *shared, const char *name,
			     size_t count);

/* Finds the AV @name of another process, or of this one. -ENOENT. */
int wf_prov_av_shared_open(struct wf_prov_av_shared *shared, const char *name);

void wf_prov_av_shared_close(struct wf_prov_av_shared *shared);

/* Returns what the application gets as map_addr. */
void *wf_prov_av_shared_map(const struct wf_prov_av_shared *shared);

/* Counts the changes of the creator, for users that check often. */
const _Atomic uint64_t *
wf_prov_av_shared_changes(const struct wf_prov_av_shared *shared);

/* The creator's. 0, -ENOSPC, -ENOMEM; -EOPNOTSUPP in a forked child. */
int wf_prov_av_shared_set(struct wf_prov_av_shared *shared, uint32_t index,
			  const struct wf_addr *addr);
void wf_prov_av_shared_clear(struct wf_prov_av_shared *shared, uint32_t index);

/* The reader's: applies the changes to @table. */
void wf_prov_av_shared_sync(struct wf_prov_av_shared *shared,
			    struct wf_prov_addr_table *table);

#endif
