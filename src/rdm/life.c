/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives: ids, and what they mean.
 *
 *	31..20	why: 0 NEW, 1 KEEP, others FORGOT and a hash of what
 *	19.. 0	number
 *
 * Two ids with one hash are harmless: a life ends that need not have.
 */
#include "rdm/life.h"

#define WHY_SHIFT 20
#define NUMBERS ((1u << WHY_SHIFT) - 1)
#define WHYS 4096u

enum why { NEW, KEEP, FORGOT };

static uint32_t forgot(uint32_t id)
{
	return FORGOT + (id * 2654435761u >> 8) % (WHYS - FORGOT);
}

static uint32_t make(uint32_t why, uint32_t number)
{
	number &= NUMBERS;
	return why << WHY_SHIFT | (number ? number : 1);
}

static uint32_t why_of(uint32_t id)
{
	return id >> WHY_SHIFT;
}

void wf_rdm_life_begin(struct wf_rdm_life *life, uint32_t number)
{
	*life = (struct wf_rdm_life){ .ours = make(NEW, number), .over = true };
}

void wf_rdm_life_lose(struct wf_rdm_life *life, uint32_t number)
{
	life->over = true;
	life->ours = make(life->theirs ? forgot(life->theirs) : NEW, number);
}

void wf_rdm_life_resume(struct wf_rdm_life *life, uint32_t number)
{
	if (life->over)
		wf_rdm_life_lose(life, number);
	else
		life->ours = make(KEEP, number);
}

enum wf_rdm_life_news wf_rdm_life_judge(const struct wf_rdm_life *life,
					uint32_t id)
{
	if (id == life->theirs)
		return life->over ? WF_RDM_LIFE_OVER : WF_RDM_LIFE_SAME;
	if (id == life->past)
		return WF_RDM_LIFE_STALE;
	if (why_of(id) == forgot(life->ours) ||
	    (why_of(id) == NEW && !life->over))
		return WF_RDM_LIFE_ENDS;
	return WF_RDM_LIFE_RESTARTS;
}

void wf_rdm_life_hear(struct wf_rdm_life *life, uint32_t id, bool silent,
		      uint32_t number)
{
	if (wf_rdm_life_judge(life, id) == WF_RDM_LIFE_ENDS)
		life->ours = make(KEEP, number);
	else if (silent)
		life->ours = make(KEEP, life->ours);
	life->past = life->theirs;
	life->theirs = id;
	life->over = false;
}
