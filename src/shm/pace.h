/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the way of messages of 1 to 20 KiB: through the ring, through the
 * ring with records that the sender writes around its caches, or by CMA (above
 * 4 KiB). Their speed depends on how far apart the caches of the two processors
 * are, on the kernel, and on whether messages come one at a time or in bursts.
 * So the receiver tries them from time to time and keeps the fastest one.
 *
 * During a trial the sender writes into each slot the time at which it began to
 * send the message. Both processes read the same clock, so the receiver knows
 * for how long the message was under way, including the work of both sides.
 * Time during which two messages were under way is counted once: for a single
 * message the sum is its latency, for a burst the time of the whole burst. The
 * ways take turns within some hundred microseconds, so that all meet the
 * same traffic.
 *
 * The receiver decides and tells the sender by a word in the header of the
 * ring; all state is the receiver's. Sizes are divided into kinds, and each kind
 * has its own result.
 */
#ifndef WF_SHM_PACE_H
#define WF_SHM_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/ring_defs.h"

#define WF_SHM_PACE_LEAST 1024 /* for smaller ones there is no choice */
#define WF_SHM_PACE_MIN 4096   /* up to here they go through the ring */
#define WF_SHM_PACE_STEP 2048
#define WF_SHM_PACE_LARGE 8 /* kinds above PACE_MIN */
#define WF_SHM_PACE_KINDS 10
#define WF_SHM_PACE_MAX (WF_SHM_PACE_MIN + WF_SHM_PACE_LARGE * WF_SHM_PACE_STEP)

enum wf_shm_pace_way {
	WF_SHM_PACE_CMA,
	WF_SHM_PACE_RING,
	WF_SHM_PACE_AROUND, /* through the ring, around the caches */
	WF_SHM_PACE_WAYS,
};

/* State of the receiver. All of it is 0 at first, but for the first two members. */
struct wf_shm_pace {
	bool may_go_around; /* the sender knows how to */
	bool has_no_cma;
	uint32_t told; /* the word that the sender reads, WF_SHM_WAYS_* */
	/* The trial, while ->told asks for stamps. */
	uint8_t kind;
	uint8_t way;	  /* that is tried now */
	uint8_t used;	  /* that was in use before */
	uint8_t runs;	  /* that are over */
	bool has_last;	  /* ->last is known */
	bool overlaps;	  /* messages were under way at the same time */
	uint32_t count;	  /* messages of this run, ... */
	uint32_t sum;	  /* ... and the time of those that count, ns */
	uint32_t last;	  /* when the message before was complete, ns */
	uint32_t settled; /* messages sent before this time do not count */
	uint32_t spent;	  /* messages since the trial began */
	uint32_t best[WF_SHM_PACE_WAYS];    /* the shortest run of each way */
	uint32_t fastest[WF_SHM_PACE_WAYS]; /* the shortest message */
	struct {
		uint32_t until; /* messages until the next trial; 0: not set */
		uint32_t wait;	/* ... after the last one */
	} kinds[WF_SHM_PACE_KINDS];
};

/* Whether there is a choice for messages of @len bytes. */
static inline bool wf_shm_pace_is_open(size_t len)
{
	return len >= WF_SHM_PACE_LEAST && len <= WF_SHM_PACE_MAX;
}

static inline uint32_t wf_shm_pace_kind(size_t len)
{
	if (len <= WF_SHM_PACE_MIN)
		return WF_SHM_PACE_LARGE + (len > WF_SHM_PACE_MIN / 2);
	return (uint32_t)((len - 1 - WF_SHM_PACE_MIN) / WF_SHM_PACE_STEP);
}

/* By the flags of its slot, how a message came through the ring. */
static inline enum wf_shm_pace_way wf_shm_pace_way(uint8_t flags)
{
	return flags & WF_SHM_SLOT_AROUND ? WF_SHM_PACE_AROUND :
					    WF_SHM_PACE_RING;
}

/* A time as it is written into a slot. Never 0. */
static inline uint32_t wf_shm_pace_stamp(uint64_t now)
{
	return (uint32_t)now | 1;
}

/* Counts a message of @len bytes that came while there was no trial. False: it
 * must be noted instead. */
static inline bool wf_shm_pace_pass(struct wf_shm_pace *pace, size_t len)
{
	uint32_t *until = &pace->kinds[wf_shm_pace_kind(len)].until;

	if ((pace->told & WF_SHM_WAYS_STAMP) || *until < 2)
		return false;
	--*until;
	return true;
}

/* Notes that a message is complete. wf_shm_pace_is_open() must hold for its
 * length @len. @begin is its stamp; 0: it has none, or had to wait for its
 * receive. @end is the present time as a stamp, and is not used without @begin.
 * Returns true if ->told has changed. */
bool wf_shm_pace_note(struct wf_shm_pace *pace, size_t len,
		      enum wf_shm_pace_way way, uint32_t begin, uint32_t end);

/* For the sender: whether the record of a message of @len bytes is written around
 * the caches. @told is the receiver's word. wf_shm_pace_is_open() must hold for
 * @len. */
static inline bool wf_shm_pace_is_around(uint32_t told, size_t len)
{
	return told & WF_SHM_WAYS_AROUND(wf_shm_pace_kind(len));
}

/* The same for whether a message of more than WF_SHM_PACE_MIN bytes goes through
 * the ring; @otherwise is the answer while the receiver has not decided. */
bool wf_shm_pace_is_ring(uint32_t told, size_t len, bool otherwise);

#endif
