/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages. All hang in a list in order of arrival, and a receive is
 * compared with the first WF_MATCH_FRONT of them. While there are few that is
 * all there is.
 *
 * If receives look further, and have passed more messages than making a lane
 * costs, there is a lane for their kind: a hash table of all messages by
 * what receives of its kind look for, (tag & ~ignore) and perhaps the source.
 * From then on each message enters the tables of all lanes as well. Chains are
 * in order of arrival, so the first in a chain that a receive takes is the
 * oldest. Lanes end when the last message has left; their tables stay.
 *
 * There are few lanes, because each costs a message a pair of links. A receive
 * without one searches the list. If that becomes expensive and no lane is free,
 * the one that was not used for the longest time gets its mask.
 */
#include "match/match.h"

#include <assert.h>
#include <stdlib.h>

#include "match/chains.h"

/* A lane is made when so many times the messages that there are have been
 * passed for want of one: making it costs about as much. */
#define WALKS_PER_LANE 4

static struct wf_ux *to_ux(struct wf_list *order)
{
	return wf_container_of(order, struct wf_ux, order);
}

/* -- lanes ----------------------------------------------------------------- */

static void enter(struct wf_match *m, uint32_t lane, struct wf_ux *ux)
{
	const struct wf_ux_lane *l = &m->ux_lanes[lane];
	uint64_t src = l->directed ? ux->src : WF_MATCH_ANY;

	wf_base_list_add_tail(
		wf_match_chain(&l->chains, ux->tag & ~l->ignore, src),
		&ux->lanes[lane]);
}

/* Gives the lane a table for the messages that there are, and enters them. A
 * table that is too small serves if there is no memory. False: no table. */
static bool fill(struct wf_match *m, uint32_t lane)
{
	struct wf_chains *chains = &m->ux_lanes[lane].chains;
	struct wf_list *pos, *tmp;
	struct wf_chains larger;

	if ((!chains->heads || wf_match_chains_small(chains, m->unexpected)) &&
	    wf_match_chains_open(&larger, m->unexpected)) {
		free(chains->heads);
		*chains = larger;
	} else if (!chains->heads) {
		return false;
	} else if (lane < m->ux_lane_count) {
		/* In use. Otherwise all have left it, and it is empty. */
		wf_match_chains_clear(chains);
	}
	wf_list_for_each (pos, tmp, &m->ux_order)
		enter(m, lane, to_ux(pos));
	return true;
}

/* The lane that a search waited for longest. */
static uint32_t least_used(const struct wf_match *m)
{
	uint32_t lane = 0;

	for (uint32_t i = 1; i < m->ux_lane_count; i++) {
		if (m->ux_searches - m->ux_lanes[i].used >
		    m->ux_searches - m->ux_lanes[lane].used)
			lane = i;
	}
	return lane;
}

/* A lane for receives of this kind, or NULL. */
static __attribute__((noinline)) struct wf_ux_lane *
make_lane(struct wf_match *m, uint64_t ignore, bool directed)
{
	uint32_t lane = m->ux_lane_count;

	if (m->ux_walked < (uint64_t)WALKS_PER_LANE * m->unexpected)
		return NULL;
	if (lane == WF_MATCH_UX_LANES)
		lane = least_used(m);
	m->ux_lanes[lane].ignore = ignore;
	m->ux_lanes[lane].directed = directed;
	if (!fill(m, lane))
		return NULL;
	m->ux_walked = 0;
	if (lane == m->ux_lane_count)
		m->ux_lane_count++;
	return &m->ux_lanes[lane];
}

/* The lane of this kind of receives, or NULL. */
static inline struct wf_ux_lane *lane_of(struct wf_match *m, uint64_t ignore,
					 bool directed)
{
	for (uint32_t i = 0; i < m->ux_lane_count; i++) {
		if (m->ux_lanes[i].ignore == ignore &&
		    m->ux_lanes[i].directed == directed)
			return &m->ux_lanes[i];
	}
	return NULL;
}

void wf_match_ux_renamed(struct wf_match *m)
{
	while (m->ux_lane_count)
		wf_match_chains_clear(&m->ux_lanes[--m->ux_lane_count].chains);
}

/* Larger tables. They grow at powers of two only, so that one which cannot grow
 * is not filled again for each message. */
static __attribute__((noinline)) void grow_lanes(struct wf_match *m)
{
	for (uint32_t i = 0; i < m->ux_lane_count; i++) {
		if (wf_match_chains_small(&m->ux_lanes[i].chains,
					  m->unexpected))
			fill(m, i);
	}
}

static void enter_lanes(struct wf_match *m, struct wf_ux *ux)
{
	for (uint32_t i = 0; i < m->ux_lane_count; i++)
		enter(m, i, ux);
	if (wf_unlikely(!(m->unexpected & (m->unexpected - 1))))
		grow_lanes(m);
}

void wf_match_park(struct wf_match *m, struct wf_ux *ux)
{
	wf_base_list_add_tail(&m->ux_order, &ux->order);
	m->unexpected++;
	if (m->unexpected > m->unexpected_max)
		m->unexpected_max = m->unexpected;
	if (wf_unlikely(m->ux_lane_count))
		enter_lanes(m, ux);
}

void wf_match_unpark(struct wf_match *m, struct wf_ux *ux)
{
	assert(m->unexpected);
	wf_base_list_del(&ux->order);
	for (uint32_t i = 0; i < m->ux_lane_count; i++)
		wf_base_list_unlink(&ux->lanes[i]);
	if (!--m->unexpected) {
		m->ux_lane_count = 0;
		m->ux_walked = 0;
	}
}

/* -- searching ------------------------------------------------------------- */

static bool is_taken(const struct wf_ux *ux, uint64_t tag, uint64_t ignore,
		     uint64_t src)
{
	return !((ux->tag ^ tag) & ~ignore) &&
	       (src == WF_MATCH_ANY || src == ux->src);
}

static inline struct wf_ux *find_in_lane(struct wf_match *m,
					 struct wf_ux_lane *lane, uint64_t tag,
					 uint64_t src)
{
	struct wf_list *head =
		wf_match_chain(&lane->chains, tag & ~lane->ignore, src);
	size_t link = offsetof(struct wf_ux, lanes) +
		      (size_t)(lane - m->ux_lanes) * sizeof(struct wf_list);

	lane->used = ++m->ux_searches;
	for (struct wf_list *pos = head->next; pos != head; pos = pos->next) {
		struct wf_ux *ux = (struct wf_ux *)((char *)pos - link);

		if (is_taken(ux, tag, lane->ignore, src))
			return ux;
	}
	return NULL;
}

/* From @pos on, where there is no lane: makes one, or searches the list. */
static __attribute__((noinline)) struct wf_ux *
find_listed(struct wf_match *m, struct wf_list *pos, uint64_t tag,
	    uint64_t ignore, uint64_t src)
{
	struct wf_ux_lane *lane = make_lane(m, ignore, src != WF_MATCH_ANY);

	if (lane)
		return find_in_lane(m, lane, tag, src);
	for (; pos != &m->ux_order; pos = pos->next) {
		if (is_taken(to_ux(pos), tag, ignore, src))
			return to_ux(pos);
		m->ux_walked++;
	}
	return NULL;
}

/* A lane that is there costs less than the first few messages. */
static struct wf_ux *find_deep(struct wf_match *m, uint64_t tag,
			       uint64_t ignore, uint64_t src)
{
	struct wf_ux_lane *lane = lane_of(m, ignore, src != WF_MATCH_ANY);

	if (wf_likely(lane))
		return find_in_lane(m, lane, tag, src);
	return find_listed(m, m->ux_order.next, tag, ignore, src);
}

struct wf_ux *wf_match_find_ux(struct wf_match *m, uint64_t tag,
			       uint64_t ignore, uint64_t src)
{
	struct wf_list *head = &m->ux_order, *pos = head->next;
	uint32_t left = WF_MATCH_FRONT;

	if (wf_unlikely(m->ux_lane_count))
		return find_deep(m, tag, ignore, src);
	for (; pos != head; pos = pos->next) {
		if (is_taken(to_ux(pos), tag, ignore, src))
			return to_ux(pos);
		if (!--left)
			return find_listed(m, pos->next, tag, ignore, src);
	}
	return NULL;
}
