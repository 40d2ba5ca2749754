/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives: ids, and what they mean.
 *
 * 	31..30	why: 0 NEW, 1 KEEP, 2 FORGOT
 * 	29.. 0	NEW, KEEP: a number
 * 	29..10	FORGOT: a hash of the life that gets no answers
 * 	 9.. 0	FORGOT: a number that differs from the previous life's
 *
 * Two lives may have the same hash. Then a life ends needlessly, and the
 * operations in it fail: this happens to one in a million processes that
 * replace a process which the other side has lost.
 */
#include "rdm/life.h"

#define WHY_SHIFT 30
#define NUMBERS ((1u << WHY_SHIFT) - 1)
#define HASH_SHIFT 10
#define HASH_NUMBERS ((1u << HASH_SHIFT) - 1)

enum why { NEW, KEEP, FORGOT };

static enum why why_of(uint32_t id)
{
	return (enum why)(id >> WHY_SHIFT);
}

static uint32_t make(enum why why, uint32_t number)
{
	number &= NUMBERS;
	return (uint32_t)why << WHY_SHIFT | (number ? number : 1);
}

/* 20 bits, where those of FORGOT have them. */
static uint32_t hash(uint32_t id)
{
	return (id * 2654435761u >> 12) << HASH_SHIFT;
}

static uint32_t forget(uint32_t id, uint32_t number)
{
	return make(FORGOT, hash(id) | (number & HASH_NUMBERS));
}

static bool forgets(uint32_t id, uint32_t other)
{
	return why_of(id) == FORGOT &&
	       (id & NUMBERS & ~HASH_NUMBERS) == hash(other);
}

void wf_rdm_life_begin(struct wf_rdm_life *life, uint32_t number)
{
	*life = (struct wf_rdm_life){ .ours = make(NEW, number), .over = true };
}

void wf_rdm_life_fix(struct wf_rdm_life *life, uint32_t ours, uint32_t theirs)
{
	*life = (struct wf_rdm_life){
		.ours = ours,
		.theirs = theirs,
		.fixed = true,
	};
}

void wf_rdm_life_lose(struct wf_rdm_life *life, uint32_t number)
{
	if (life->fixed)
		return;
	life->over = true;
	life->ours = life->theirs ? forget(life->theirs, life->ours + 1) :
				    make(NEW, number);
}

void wf_rdm_life_resume(struct wf_rdm_life *life, uint32_t number)
{
	/* If nothing was heard of the peer, nothing can be lost. The peer may
	 * have heard of us, and would take NEW for another process. */
	if (life->over && life->theirs)
		wf_rdm_life_lose(life, number);
	else
		life->ours = make(KEEP, number);
}

enum wf_rdm_life_news wf_rdm_life_classify(const struct wf_rdm_life *life,
					   uint32_t id)
{
	if (id == life->theirs)
		return life->over ? WF_RDM_LIFE_OVER : WF_RDM_LIFE_SAME;
	if (id == life->past || life->fixed)
		return WF_RDM_LIFE_STALE;
	if (forgets(id, life->ours) || (why_of(id) == NEW && !life->over))
		return WF_RDM_LIFE_ENDS;
	return WF_RDM_LIFE_RESTARTS;
}

void wf_rdm_life_hear(struct wf_rdm_life *life, uint32_t id, bool silent,
		      uint32_t number)
{
	if (wf_rdm_life_classify(life, id) == WF_RDM_LIFE_ENDS)
		life->ours = make(KEEP, number);
	else if (silent)
		life->ours = make(KEEP, life->ours);
	life->past = life->theirs;
	life->theirs = id;
	life->over = false;
}
