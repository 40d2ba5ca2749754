/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Choice by cost. It keeps nothing of its own: the knowledge about a driver is
 * in its costs (alg/cost.h), in the registry.
 */
#include "alg/choice.h"

#include "alg/queue.h"

bool wf_alg_choice_is_open(const struct wd_alg_comp *d,
			   const struct wf_alg_want *want)
{
	return d->submit && !want->name && !want->ch &&
	       !wf_alg_registry_is_preferred(d);
}

struct wf_alg_slot *wf_alg_choice_now(struct wf_alg_slot *first,
				      const struct wf_alg_want *want,
				      const struct wd_comp_job *job,
				      bool *measured)
{
	struct wf_alg_cost *cost = wf_alg_registry_cost(first);
	struct wf_alg_want others = *want;
	struct wf_alg_slot *next;
	bool library;

	others.except |= wf_alg_registry_bit(first);
	next = wf_alg_registry_get(&others);
	library = next && !wf_alg_registry_driver(next)->submit;
	*measured = !library || !wf_alg_cost_is_settled(cost, job);
	if (next && (!*measured ||
		     wf_alg_cost_prefers_next(cost, wf_alg_registry_cost(next),
					      job, library))) {
		wf_alg_stats_add(wf_alg_registry_stats(first),
				 WF_ALG_STAT_passed_over, 1);
		wf_alg_registry_put(first);
		return next;
	}
	wf_alg_registry_put(next);
	return first;
}

/* Candidates that are looked at; those behind them are not. */
#define CANDIDATES 8

/* The two that are expected to end first, and all that were looked at, in the
 * order of priority. */
struct ranking {
	struct wf_alg_slot *slots[2];
	uint64_t ns[2];
	struct wf_alg_slot *seen[CANDIDATES]; /* not referenced */
	struct wf_alg_stats *stats[CANDIDATES];
	unsigned int n_seen;
};

static void rank(struct ranking *r, struct wf_alg_slot *slot, uint64_t ns)
{
	struct wf_alg_slot *out = r->slots[1];
	int at = !r->slots[0] || ns < r->ns[0] ? 0 : 1;

	if (at && r->slots[1] && ns >= r->ns[1]) {
		wf_alg_registry_put(slot);
		return;
	}
	if (!at) {
		r->slots[1] = r->slots[0];
		r->ns[1] = r->ns[0];
	}
	r->slots[at] = slot;
	r->ns[at] = ns;
	wf_alg_registry_put(out);
}

/* A device must win clearly: its times vary more, because its jobs wait for
 * each other, and all others of a group wait for the one that ends last. */
static uint64_t with_margin(const struct wd_alg_comp *d, uint64_t ns)
{
	return d->submit && ns < UINT64_MAX / 2 ? ns + ns / 4 : ns;
}

/* Ranks the candidates, @slot first, up to one that is not known yet, which is
 * then the first of all. */
static void rank_all(struct ranking *r, struct wf_alg_slot *slot,
		     const struct wf_alg_want *want,
		     const struct wd_comp_job *job)
{
	struct wf_alg_want others = *want;
	bool last = false;

	while (slot && !last) {
		const struct wd_alg_comp *d = wf_alg_registry_driver(slot);
		struct wf_alg_cost *cost = wf_alg_registry_cost(slot);

		others.except |= wf_alg_registry_bit(slot);
		r->seen[r->n_seen] = slot;
		r->stats[r->n_seen++] = wf_alg_registry_stats(slot);
		last = !d->submit || r->n_seen == CANDIDATES;
		if (d->submit && !wf_alg_queue_fits(d, job)) {
			wf_alg_registry_put(slot);
		} else if (wf_alg_cost_is_new(cost, job)) {
			rank(r, slot, 0);
			return;
		} else {
			rank(r, slot,
			     with_margin(d, wf_alg_cost_expect(cost, job)));
		}
		slot = last ? NULL : wf_alg_registry_get(&others);
	}
}

/* Whether the second is to do the job, so that it stays known. */
static bool is_probe(const struct ranking *r, const struct wd_comp_job *job,
		     unsigned int jobs)
{
	struct wf_alg_cost *first = wf_alg_registry_cost(r->slots[0]);
	uint64_t best = wf_alg_cost_adds(first, job);

	best = best < r->ns[0] ? best : r->ns[0];
	return wf_alg_cost_is_probe(wf_alg_registry_cost(r->slots[1]), job,
				    r->ns[1], best * jobs);
}

/* Drivers that come before @chosen. */
static uint32_t before(const struct ranking *r,
		       const struct wf_alg_slot *chosen)
{
	uint32_t passed = 0;

	for (unsigned int i = 0; r->seen[i] != chosen; i++) {
		passed |= wf_alg_registry_bit(r->seen[i]);
		wf_alg_stats_add(r->stats[i], WF_ALG_STAT_passed_over, 1);
	}
	return passed;
}

/* The library behind the devices, @seen first. Threads that only submit jobs write
 * to nothing here that those write to which do them. */
static void pass_devices(struct wf_alg_seen *seen,
			 const struct wf_alg_want *want,
			 struct wf_alg_choice *choice)
{
	struct wf_alg_want others = *want;

	choice->found = true;
	while (choice->found && seen->driver->submit) {
		choice->passed |= seen->bit;
		others.except |= seen->bit;
		wf_alg_stats_add(seen->stats, WF_ALG_STAT_passed_over, 1);
		choice->found = wf_alg_registry_look(&others, seen);
	}
	choice->own = seen->cost;
}

/* Whether the next jobs need no choice: small ones, that the best device is far
 * from winning. */
static bool is_settled(const struct ranking *r, const struct wd_comp_job *job)
{
	struct wf_alg_slot *best = r->slots[0];

	return r->slots[1] && r->ns[0] &&
	       !wf_alg_registry_driver(best)->submit &&
	       wf_alg_cost_is_far(
		       r->ns[1], r->ns[0],
		       wf_alg_cost_adds(wf_alg_registry_cost(best), job));
}

/* Compares the candidates. */
static void compare(const struct wf_alg_want *want,
		    const struct wd_comp_job *job, struct wf_alg_cost *first,
		    struct wf_alg_choice *choice)
{
	struct wf_alg_slot *slot = wf_alg_registry_get(want);
	unsigned int jobs = wf_alg_cost_stands_for(first, job);
	struct ranking r = { 0 };
	bool probe = false;

	rank_all(&r, slot, want, job);
	/* One that has not begun to be known is ranked first, with 0. */
	if (r.slots[1] && r.ns[0])
		probe = is_probe(&r, job, jobs);
	if (r.slots[0])
		wf_alg_cost_settle(first, wf_alg_registry_cost(r.slots[0]), job,
				   is_settled(&r, job));
	slot = r.slots[probe];
	wf_alg_registry_put(r.slots[!probe]);
	choice->found = slot;
	if (!slot)
		return;
	choice->passed = before(&r, slot);
	choice->own = wf_alg_registry_cost(slot);
	choice->cost = choice->own;
	if (wf_alg_registry_driver(slot)->submit)
		choice->slot = slot;
	else
		wf_alg_registry_put(slot);
}

void wf_alg_choice_later(const struct wf_alg_want *want,
			 const struct wd_comp_job *job,
			 struct wf_alg_choice *choice)
{
	struct wf_alg_seen seen;

	*choice = (struct wf_alg_choice){ 0 };
	if (!wf_alg_registry_look(want, &seen))
		return;
	if (!seen.driver->submit) {
		choice->found = true;
		choice->own = seen.cost;
	} else if (!wf_alg_choice_is_open(seen.driver, want)) {
		choice->slot = wf_alg_registry_get(want);
		choice->found = choice->slot;
	} else if (wf_alg_cost_is_settled(seen.cost, job)) {
		pass_devices(&seen, want, choice);
	} else {
		compare(want, job, seen.cost, choice);
	}
}
