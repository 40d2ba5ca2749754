/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matcher's lists. Reports nothing and copies nothing.
 */
#include "match/match.h"

#include <assert.h>

static struct wf_rx *to_rx(struct wf_list *link)
{
	return wf_container_of(link, struct wf_rx, link);
}

void wf_match_init(struct wf_match *m)
{
	*m = (struct wf_match){ 0 };
	wf_base_list_init(&m->wild_list);
	wf_base_list_init(&m->ux_order);
	for (int i = 0; i < WF_MATCH_BUCKETS; i++) {
		wf_base_list_init(&m->exact[i]);
		wf_base_list_init(&m->ux_bucket[i]);
	}
}

static struct wf_rx *find_exact(struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_list *head = &m->exact[wf_match_hash(tag, src)];
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		if (to_rx(pos)->tag == tag && to_rx(pos)->src == src)
			return to_rx(pos);
	}
	return NULL;
}

static struct wf_rx *older(struct wf_rx *a, struct wf_rx *b)
{
	if (!a || !b)
		return a ? a : b;
	return a->seq < b->seq ? a : b;
}

struct wf_rx *wf_match_find_slow(struct wf_match *m, uint64_t tag, uint64_t src)
{
	struct wf_rx *best = NULL;
	struct wf_list *pos, *tmp;

	if (m->exact_any)
		best = find_exact(m, tag, WF_MATCH_ANY);
	if (m->exact_directed && src != WF_MATCH_ANY)
		best = older(best, find_exact(m, tag, src));
	if (!m->wild)
		return best;
	wf_list_for_each (pos, tmp, &m->wild_list) {
		struct wf_rx *rx = to_rx(pos);

		if (best && best->seq < rx->seq)
			break;
		if ((rx->tag ^ tag) & ~rx->ignore)
			continue;
		if (rx->src == WF_MATCH_ANY || rx->src == src)
			return rx;
	}
	return best;
}

static struct wf_list *ux_bucket(struct wf_match *m, uint64_t tag)
{
	return &m->ux_bucket[wf_match_hash(tag, WF_MATCH_ANY)];
}

void wf_match_park(struct wf_match *m, struct wf_ux *ux)
{
	wf_base_list_add_tail(&m->ux_order, &ux->order);
	wf_base_list_add_tail(ux_bucket(m, ux->tag), &ux->bucket);
	m->unexpected++;
	if (m->unexpected > m->unexpected_max)
		m->unexpected_max = m->unexpected;
}

void wf_match_unpark(struct wf_match *m, struct wf_ux *ux)
{
	assert(m->unexpected);
	wf_base_list_del(&ux->order);
	wf_base_list_del(&ux->bucket);
	m->unexpected--;
}

static bool ux_taken_by(const struct wf_ux *ux, uint64_t tag, uint64_t ignore,
			uint64_t src)
{
	return !((ux->tag ^ tag) & ~ignore) &&
	       (src == WF_MATCH_ANY || src == ux->src);
}

struct wf_ux *wf_match_find_ux(struct wf_match *m, uint64_t tag,
			       uint64_t ignore, uint64_t src)
{
	struct wf_list *head, *pos, *tmp;
	struct wf_ux *ux;

	if (!m->unexpected)
		return NULL;
	if (ignore) {
		wf_list_for_each (pos, tmp, &m->ux_order) {
			ux = wf_container_of(pos, struct wf_ux, order);
			if (ux_taken_by(ux, tag, ignore, src))
				return ux;
		}
		return NULL;
	}
	head = ux_bucket(m, tag);
	wf_list_for_each (pos, tmp, head) {
		ux = wf_container_of(pos, struct wf_ux, bucket);
		if (ux_taken_by(ux, tag, 0, src))
			return ux;
	}
	return NULL;
}

static struct wf_rx *context_in(struct wf_list *head, const void *context)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		if (to_rx(pos)->context == context)
			return to_rx(pos);
	}
	return NULL;
}

struct wf_rx *wf_match_find_context(struct wf_match *m, const void *context)
{
	struct wf_rx *rx = context_in(&m->wild_list, context);

	for (int i = 0; !rx && i < WF_MATCH_BUCKETS; i++)
		rx = context_in(&m->exact[i], context);
	return rx;
}

struct wf_rx *wf_match_first(struct wf_match *m)
{
	if (!wf_base_list_empty(&m->wild_list))
		return to_rx(m->wild_list.next);
	for (int i = 0; i < WF_MATCH_BUCKETS; i++) {
		if (!wf_base_list_empty(&m->exact[i]))
			return to_rx(m->exact[i].next);
	}
	return NULL;
}
