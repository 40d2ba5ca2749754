/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Up to which size messages go through the ring although the receiver could read
 * them by CMA. That depends on how far apart the caches of the two processors are:
 * each side clocks some of the records that it copies, and the receiver tells the
 * sender by a word in the header of the ring.
 */
#ifndef WF_SHM_PACE_H
#define WF_SHM_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one side. All of it is 0 in the beginning. */
struct wf_shm_pace {
	uint32_t records; /* of those, some are clocked */
	uint32_t best;	  /* of this window, ns for 4 KiB */
	uint32_t count;	  /* clocked in this window */
	uint32_t told;	  /* the figure that counts; 0: there is none */
};

/* Whether a record of @len bytes is to be clocked. */
static inline bool wf_shm_pace_is_due(struct wf_shm_pace *pace, size_t len)
{
	return len >= 2048 && !(pace->records++ % 4);
}

/* A record of @len bytes took @ns. Returns the figure that counts if it is another
 * one now, else 0. A better one counts at once; a worse one if a whole window has
 * none that is better, because whatever else the processor does disturbs. */
uint32_t wf_shm_pace_note(struct wf_shm_pace *pace, uint64_t ns, size_t len);

/* The largest message that goes through the ring, up to @most, if the sides copy
 * 4 KiB in @here and @there ns, and a page by CMA costs @call_ns. */
size_t wf_shm_pace_ring_max(uint32_t here, uint32_t there, uint64_t call_ns,
			    size_t most);

#endif
