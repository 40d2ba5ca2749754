/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted receives (match.h says how they are kept). Reports nothing and copies
 * nothing.
 */
#include "match/match.h"

#include <assert.h>
#include <stdlib.h>

#include "match/chains.h"

/* wf_rx.lane of a masked receive that has none and is not in the front. */
#define STRAY (WF_MATCH_LANES + 1)

/* A chain is long if a search passes so many receives; a table is full if it
 * has fewer chains than receives. A table that is full and has long chains
 * grows. */
#define LONG_CHAIN 8

static struct wf_rx *to_rx(struct wf_list *link)
{
	return wf_container_of(link, struct wf_rx, link);
}

static struct wf_rx *to_masked(struct wf_list *link)
{
	return wf_container_of(link, struct wf_rx, masked_link);
}

void wf_match_init(struct wf_match *m)
{
	*m = (struct wf_match){ 0 };
	wf_base_list_init(&m->masked_list);
	wf_base_list_init(&m->ux_order);
	m->posted.heads = m->first_chains;
	m->posted.shift = wf_match_chains_shift(WF_MATCH_CHAINS);
	wf_match_chains_clear(&m->posted);
}

void wf_match_fini(struct wf_match *m)
{
	if (m->posted.heads != m->first_chains)
		free(m->posted.heads);
	for (int i = 0; i < WF_MATCH_UX_LANES; i++)
		free(m->ux_lanes[i].chains.heads);
}

/* -- masked receives -------------------------------------------------------- */

/* The lane of a mask, perhaps a new one; STRAY if all are in use. */
static uint32_t lane_of(struct wf_match *m, uint64_t ignore)
{
	uint32_t spare = STRAY;

	for (uint32_t i = 0; i < m->lane_count; i++) {
		const struct wf_match_lane *lane = &m->lanes[i];

		if (lane->ignore == ignore)
			return i;
		if (!(lane->any | lane->directed))
			spare = i;
	}
	if (spare == STRAY && m->lane_count < WF_MATCH_LANES)
		spare = m->lane_count++;
	if (spare != STRAY)
		m->lanes[spare].ignore = ignore;
	return spare;
}

void wf_match_enter_lane(struct wf_match *m, struct wf_rx *rx)
{
	uint32_t i = lane_of(m, rx->ignore);
	struct wf_match_lane *lane;

	rx->lane = (uint8_t)i;
	if (i == STRAY) {
		m->strays++;
		return;
	}
	lane = &m->lanes[i];
	if (rx->src == WF_MATCH_ANY)
		lane->any++;
	else
		lane->directed++;
	wf_base_list_add_tail(
		wf_match_chain(&m->posted, rx->tag & ~rx->ignore, rx->src),
		&rx->link);
}

void wf_match_leave_lane(struct wf_match *m, struct wf_rx *rx)
{
	struct wf_match_lane *lane;

	if (rx->lane == STRAY) {
		m->strays--;
		return;
	}
	lane = &m->lanes[rx->lane];
	if (rx->src == WF_MATCH_ANY)
		lane->any--;
	else
		lane->directed--;
	wf_base_list_unlink(&rx->link);
}

/* -- searching ------------------------------------------------------------- */

/* More chains, if the table is full. */
static __attribute__((noinline)) void grow(struct wf_match *m)
{
	uint32_t count = m->exact_any + m->special;
	struct wf_chains larger;

	if (!wf_match_chains_small(&m->posted, count) ||
	    !wf_match_chains_open(&larger, count))
		return;
	for (uint32_t i = 0; i < wf_match_chains_count(&m->posted); i++) {
		struct wf_list *pos, *tmp;

		/* In order: those with equal keys stay in posting order. */
		wf_list_for_each (pos, tmp, &m->posted.heads[i]) {
			const struct wf_rx *rx = to_rx(pos);

			wf_base_list_add_tail(
				wf_match_chain(&larger, rx->tag & ~rx->ignore,
					       rx->src),
				pos);
		}
	}
	if (m->posted.heads != m->first_chains)
		free(m->posted.heads);
	m->posted = larger;
}

/* The oldest in the table with this mask and source that takes @tag. */
static __attribute__((noinline)) struct wf_rx *
find_key(struct wf_match *m, uint64_t tag, uint64_t ignore, uint64_t src)
{
	uint64_t key = tag & ~ignore;
	struct wf_list *head = wf_match_chain(&m->posted, key, src);
	struct wf_rx *found = NULL;
	uint32_t passed = 0;

	for (struct wf_list *pos = head->next; pos != head; pos = pos->next) {
		struct wf_rx *rx = to_rx(pos);

		if ((rx->tag & ~ignore) == key && rx->src == src &&
		    rx->ignore == ignore) {
			found = rx;
			break;
		}
		passed++;
	}
	if (wf_unlikely(passed > LONG_CHAIN))
		grow(m);
	return found;
}

static struct wf_rx *older(struct wf_rx *a, struct wf_rx *b)
{
	if (!a || !b)
		return a ? a : b;
	return a->seq < b->seq ? a : b;
}

static bool takes(const struct wf_rx *rx, uint64_t tag, uint64_t src)
{
	return !((rx->tag ^ tag) & ~rx->ignore) &&
	       (rx->src == WF_MATCH_ANY || rx->src == src);
}

static __attribute__((noinline)) struct wf_rx *
find_lanes(struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_rx *best = NULL;

	for (uint32_t i = 0; i < m->lane_count; i++) {
		uint64_t ignore = m->lanes[i].ignore;

		if (m->lanes[i].any)
			best = older(best,
				     find_key(m, tag, ignore, WF_MATCH_ANY));
		if (m->lanes[i].directed && src != WF_MATCH_ANY)
			best = older(best, find_key(m, tag, ignore, src));
	}
	return best;
}

/* All of the list, because of strays. */
static __attribute__((noinline)) struct wf_rx *
find_listed(const struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_list *pos = m->masked_list.next;

	while (pos != &m->masked_list && !takes(to_masked(pos), tag, src))
		pos = pos->next;
	return pos == &m->masked_list ? NULL : to_masked(pos);
}

/* The oldest masked receive. */
static inline struct wf_rx *find_masked(struct wf_match *m, uint64_t tag,
					uint64_t src)
{
	struct wf_list *head = &m->masked_list, *pos = head->next;
	uint32_t left = WF_MATCH_FRONT;

	for (; pos != head; pos = pos->next) {
		if (takes(to_masked(pos), tag, src))
			return to_masked(pos);
		if (wf_unlikely(!--left))
			return m->strays ? find_listed(m, tag, src) :
					   find_lanes(m, tag, src);
	}
	return NULL;
}

/* For a matcher in which some posted receives ignore no bits. */
static __attribute__((noinline)) struct wf_rx *
find_mixed(struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_rx *best = NULL;

	if (m->exact_any)
		best = find_key(m, tag, 0, WF_MATCH_ANY);
	if (m->special != m->masked && src != WF_MATCH_ANY)
		best = older(best, find_key(m, tag, 0, src));
	return older(best, find_masked(m, tag, src));
}

struct wf_rx *wf_match_find_slow(struct wf_match *m, uint64_t tag, uint64_t src)
{
	if (m->exact_any || m->special != m->masked)
		return find_mixed(m, tag, src);
	return find_masked(m, tag, src);
}

/* -- all of them ----------------------------------------------------------- */

struct wf_rx *wf_match_find_context(struct wf_match *m, const void *context)
{
	struct wf_list *pos, *tmp;
	struct wf_rx *rx = NULL;

	wf_list_for_each (pos, tmp, &m->masked_list) {
		if (to_masked(pos)->context == context) {
			rx = to_masked(pos);
			break;
		}
	}
	for (uint32_t i = 0; i < wf_match_chains_count(&m->posted); i++) {
		wf_list_for_each (pos, tmp, &m->posted.heads[i]) {
			if (to_rx(pos)->context == context)
				rx = older(rx, to_rx(pos));
		}
	}
	return rx;
}

struct wf_rx *wf_match_first(struct wf_match *m)
{
	if (m->masked)
		return to_masked(m->masked_list.next);
	for (uint32_t i = 0; i < wf_match_chains_count(&m->posted); i++) {
		if (!wf_base_list_empty(&m->posted.heads[i]))
			return to_rx(m->posted.heads[i].next);
	}
	return NULL;
}
