/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the counters of a device for `weft stat`. A worker
 * counts in the channel that it serves; the manager adds that up now and then
 * into the pages of the device and of the client's user.
 */
#ifndef WF_DEVD_STATS_H
#define WF_DEVD_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"

#define WF_DEVD_STATS(X)                                                       \
	X(channels)	/* open now */                                         \
	X(opened)	/* ... so far */                                       \
	X(turned_away)	/* asked for and not given */                          \
	X(memory)	/* bytes reserved now */                               \
	X(waiting)	/* jobs submitted and not done */                      \
	X(jobs)		/* done, ... */                                        \
	X(failed)	/* ... of them with an error */                        \
	X(bytes_in)	/* taken by jobs ... */                                \
	X(bytes_out)	/* ... and made */                                     \
	X(copied_bytes) /* besides the work: SVA */                            \
	X(interrupts)                                                          \
	X(faults)    /* channels given up because of invalid data */           \
	X(held_back) /* times that the quota of the user was used up */

#define X(name) WF_DEVD_STAT_##name,
enum wf_devd_stat { WF_DEVD_STATS(X) WF_DEVD_STAT_COUNT };
#undef X

/* The first that a channel counts. */
#define WF_DEVD_STAT_FIRST WF_DEVD_STAT_jobs

#define WF_DEVD_STAT_COUNTED (WF_DEVD_STAT_COUNT - WF_DEVD_STAT_FIRST)

/* Counts of one channel; its worker writes them, the manager reads them. */
struct wf_devd_counts {
	_Atomic uint64_t n[WF_DEVD_STAT_COUNTED];
};

/* An account says what a device or a user has, and has done: as it was when it
 * was last added up. */
struct wf_devd_account {
	uint64_t channels, opened, turned_away, memory, waiting;
	uint64_t counted[WF_DEVD_STAT_COUNTED];
};

struct wf_devd;
struct wf_devd_chan;
struct wf_devd_device;
struct wf_devd_user;

static inline void wf_devd_stats_add(struct wf_devd_counts *counts,
				     enum wf_devd_stat item, uint64_t more)
{
	_Atomic uint64_t *n = &counts->n[item - WF_DEVD_STAT_FIRST];

	/* With one writer no locked instruction is needed. */
	atomic_store_explicit(
		n, atomic_load_explicit(n, memory_order_relaxed) + more,
		memory_order_relaxed);
}

/* A page per device, named as programs name it ("socket:name"). -ENOMEM. */
int wf_devd_stats_open(struct wf_devd *devd);
/* A page for a device that was added later. */
int wf_devd_stats_open_device(struct wf_devd *devd,
			      struct wf_devd_device *device);
void wf_devd_stats_close(struct wf_devd *devd);

/* A page for a user, named "socket:uid N", with the counters of a device. Without
 * memory there is none. */
void wf_devd_stats_open_user(struct wf_devd *devd, struct wf_devd_user *user);

/* Before a channel goes: its counts stay with its device and its user. */
void wf_devd_stats_keep(struct wf_devd_chan *chan);

/* Adds up. True if jobs were done since the last time. */
bool wf_devd_stats_flush(struct wf_devd *devd);

#endif
