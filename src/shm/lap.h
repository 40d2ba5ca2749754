/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header decides where a writer puts the next unit (a slot or a line) in
 * its part of the ring. Units follow each other, and the writer goes back to
 * the start as early as the reader's progress allows, not only at the end:
 * memory that is used again soon stays in the nearest caches of both sides. The
 * way from the start until the writer goes back is a lap. A lap goes on beyond
 * its window while the reader has read nothing of it. Only units of the lap
 * before can still be unread, and the writer does not overwrite them.
 *
 * A flag tells the reader that the writer goes back, so the reader does not use
 * this.
 */
#ifndef WF_SHM_LAP_H
#define WF_SHM_LAP_H

#include <stdbool.h>
#include <stdint.h>

struct wf_shm_lap {
	uint32_t head;	 /* units taken, free-running */
	uint32_t pos;	 /* place of the next unit */
	uint32_t start;	 /* head when this lap began ... */
	uint32_t before; /* ... and the one before */
	uint32_t size;
};

static inline void wf_shm_lap_init(struct wf_shm_lap *lap, uint32_t size)
{
	*lap = (struct wf_shm_lap){ .size = size };
}

/* How many units from pos on are free, if the reader has consumed @done units.
 * @done never decreases and is never beyond head. */
static inline uint32_t wf_shm_lap_free(const struct wf_shm_lap *lap,
				       uint32_t done)
{
	if ((int32_t)(done - lap->start) >= 0 ||
	    lap->pos >= lap->start - lap->before)
		return lap->size - lap->pos;
	return done - lap->before - lap->pos;
}

/* Whether the first @units of this lap are free for the next one. */
static inline bool wf_shm_lap_may_turn(const struct wf_shm_lap *lap,
				       uint32_t done, uint32_t units)
{
	return (int32_t)(done - lap->start) >= (int32_t)units;
}

static inline void wf_shm_lap_turn(struct wf_shm_lap *lap)
{
	lap->before = lap->start;
	lap->start = lap->head;
	lap->pos = 0;
}

static inline void wf_shm_lap_take(struct wf_shm_lap *lap, uint32_t units)
{
	lap->head += units;
	lap->pos += units;
}

#endif
