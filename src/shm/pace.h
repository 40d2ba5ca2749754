/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By which way a message of 4 to 20 KiB goes, through the ring or by CMA. Which one
 * is faster depends on how far apart the caches of the two processors are, on the
 * kernel, and on whether messages come one at a time or in bursts. So the receiver
 * tries both from time to time and keeps the one that was faster.
 *
 * In a trial the sender writes into each slot when it began to send the message.
 * Both processes read the same clock, so the receiver knows for how long the
 * message was under way, with the work of both sides in it. Time in which the
 * message before it was also under way is not counted twice: for a message alone the
 * sum is its latency, in a burst it is what the burst took. The ways take turns
 * within some hundred microseconds, so that both meet the same traffic.
 *
 * The receiver decides, and tells the sender by a word in the header of the ring;
 * all state is here. Sizes are learnt by kinds, 2 KiB each.
 */
#ifndef WF_SHM_PACE_H
#define WF_SHM_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/ring_defs.h"

#define WF_SHM_PACE_MIN 4096 /* smaller ones always go through the ring */
#define WF_SHM_PACE_STEP 2048
#define WF_SHM_PACE_KINDS 8
#define WF_SHM_PACE_MAX (WF_SHM_PACE_MIN + WF_SHM_PACE_KINDS * WF_SHM_PACE_STEP)

enum wf_shm_pace_way {
	WF_SHM_PACE_CMA,
	WF_SHM_PACE_RING,
	WF_SHM_PACE_WAYS,
};

/* Of the receiver. All of it is 0 in the beginning. */
struct wf_shm_pace {
	uint32_t told; /* what the sender was told, WF_SHM_WAYS_* */
	/* The trial, while told says that messages are to be stamped. */
	uint8_t kind;
	uint8_t way;	  /* that is tried now */
	uint8_t runs;	  /* that are over */
	bool has_last;	  /* ->last is known */
	uint32_t count;	  /* messages of this run, ... */
	uint32_t sum;	  /* ... and the time of those that count, ns */
	uint32_t last;	  /* when the message before was complete, ns */
	uint32_t settled; /* what was sent before does not count */
	uint32_t spent;	  /* messages since the trial began */
	uint32_t best[WF_SHM_PACE_WAYS]; /* the shortest run of each way */
	struct {
		uint32_t until; /* messages until the next trial; 0: not set */
		uint32_t wait;	/* ... after the last one */
	} kinds[WF_SHM_PACE_KINDS];
};

/* Whether both ways are open to messages of @len bytes. */
static inline bool wf_shm_pace_is_open(size_t len)
{
	return len > WF_SHM_PACE_MIN && len <= WF_SHM_PACE_MAX;
}

static inline uint32_t wf_shm_pace_kind(size_t len)
{
	return (uint32_t)((len - 1 - WF_SHM_PACE_MIN) / WF_SHM_PACE_STEP);
}

/* What goes into a slot: when a message is sent, or was complete. Never 0. */
static inline uint32_t wf_shm_pace_stamp(uint64_t now)
{
	return (uint32_t)now | 1;
}

/* A message of @len bytes, for which wf_shm_pace_is_open(), is complete. @begin is
 * its stamp; 0: it has none, or had to wait for its receive. @end: now, as a stamp;
 * not looked at without @begin. Returns true if ->told is another word now. */
bool wf_shm_pace_note(struct wf_shm_pace *pace, size_t len,
		      enum wf_shm_pace_way way, uint32_t begin, uint32_t end);

/* The sender's side: whether the ring is the way for @len bytes, for which
 * wf_shm_pace_is_open(); @otherwise if the receiver has not said. */
bool wf_shm_pace_is_ring(uint32_t told, size_t len, bool otherwise);

#endif
