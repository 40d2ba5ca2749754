/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the oldest receives. Each chain and the list of masked receives are in
 * the order of posting, so that only the first ones of each are looked at.
 */
#include "match/oldest.h"

#include "match/chains.h"

struct oldest {
	const struct wf_rx **found;
	uint32_t room;
	uint32_t count;
};

/* False: it is younger than all that were found, and so are those behind it. */
static bool offer(struct oldest *o, const struct wf_rx *rx)
{
	uint32_t at = o->count;

	if (at == o->room) {
		if (o->found[at - 1]->seq <= rx->seq)
			return false;
		at--;
	} else {
		o->count++;
	}
	for (; at && o->found[at - 1]->seq > rx->seq; at--)
		o->found[at] = o->found[at - 1];
	o->found[at] = rx;
	return true;
}

/* Masked receives may hang in a chain as well; they are met in their list. */
static void look_at_chain(struct oldest *o, const struct wf_list *head)
{
	for (const struct wf_list *pos = head->next; pos != head;
	     pos = pos->next) {
		const struct wf_rx *rx =
			wf_container_of(pos, struct wf_rx, link);

		if (!rx->multi && !rx->ignore && !offer(o, rx))
			return;
	}
}

uint32_t wf_match_oldest(const struct wf_match *m, const struct wf_rx **found,
			 uint32_t room)
{
	struct oldest o = { .found = found, .room = room };
	uint32_t chains = wf_match_chains_count(&m->posted);
	const struct wf_list *pos;

	if (!room || !(m->exact_any + m->special))
		return 0;
	for (pos = m->masked_list.next; pos != &m->masked_list;
	     pos = pos->next) {
		const struct wf_rx *rx =
			wf_container_of(pos, struct wf_rx, masked_link);

		if (!rx->multi && !offer(&o, rx))
			break;
	}
	if (m->exact_any + m->special == m->masked)
		return o.count;
	for (uint32_t i = 0; i < chains; i++)
		look_at_chain(&o, &m->posted.heads[i]);
	return o.count;
}
