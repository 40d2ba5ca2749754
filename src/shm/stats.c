/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds up the counts of an endpoint's channels.
 */
#include "shm/stats.h"

#include "shm/ep.h"
#include "shm/window.h"

/* Channels of each direction that one flush looks at. */
#define FLUSHED 16

#define X(name) #name,
const char *const wf_shm_stats_names[WF_SHM_STAT_COUNT] = { WF_SHM_STATS(X) };
#undef X

void wf_shm_stats_count_out(struct wf_shm_out *out)
{
	struct wf_stats *stats = &out->ep->stats;
	uint32_t slots = out->slot_lap.head - out->counted;

	wf_shm_stats_add(stats, WF_SHM_STAT_slots_out, slots);
	wf_shm_stats_add(stats, WF_SHM_STAT_sent_inline,
			 slots - out->eager - out->parts);
	wf_shm_stats_add(stats, WF_SHM_STAT_sent_inline_bytes, out->bytes);
	wf_shm_stats_add(stats, WF_SHM_STAT_sent_eager, out->eager);
	wf_shm_stats_add(stats, WF_SHM_STAT_sent_eager_bytes, out->eager_bytes);
	out->counted += slots;
	out->bytes = 0;
	out->eager = 0;
	out->eager_bytes = 0;
	out->parts = 0;
}

void wf_shm_stats_count_in(struct wf_shm_in *in)
{
	struct wf_stats *stats = &in->ep->stats;
	uint32_t slots = in->next - in->counted;

	wf_shm_stats_add(stats, WF_SHM_STAT_slots_in, slots);
	wf_shm_stats_add(stats, WF_SHM_STAT_received_inline,
			 slots - in->eager - in->parts);
	wf_shm_stats_add(stats, WF_SHM_STAT_received_inline_bytes, in->bytes);
	wf_shm_stats_add(stats, WF_SHM_STAT_received_eager, in->eager);
	wf_shm_stats_add(stats, WF_SHM_STAT_received_eager_bytes,
			 in->eager_bytes);
	in->counted += slots;
	in->bytes = 0;
	in->eager = 0;
	in->eager_bytes = 0;
	in->parts = 0;
}

/* Some of the channels, in turns: with a thousand of them a look at all takes
 * longer than many a message. */
static void count_outs(struct wf_shm_ep *ep, uint32_t limit)
{
	const struct wf_list *last = ep->all_outs.prev, *pos = NULL;

	for (; limit && pos != last && last != &ep->all_outs; limit--) {
		struct wf_shm_out *out = wf_container_of(
			ep->all_outs.next, struct wf_shm_out, link);

		wf_shm_stats_count_out(out);
		wf_shm_window_sweep(out);
		pos = &out->link;
		wf_base_list_del(&out->link);
		wf_base_list_add_tail(&ep->all_outs, &out->link);
	}
}

static void count_ins(struct wf_shm_ep *ep, uint32_t limit)
{
	const struct wf_shm_watch *watch = &ep->watch;

	if (limit > watch->count)
		limit = watch->count;
	while (limit--) {
		if (ep->stats_at >= watch->count)
			ep->stats_at = 0;
		wf_shm_stats_count_in(watch->ins[ep->stats_at++]);
	}
}

static void flush(struct wf_shm_ep *ep, uint32_t limit)
{
	const struct wf_match *msg = &ep->rxq->msg;
	const struct wf_match *tagged = &ep->rxq->tagged;
	struct wf_stats *stats = &ep->stats;

	count_outs(ep, limit);
	count_ins(ep, limit);
	wf_base_stats_set(stats, WF_SHM_STAT_unexpected,
			  (uint64_t)msg->unexpected + tagged->unexpected);
	wf_base_stats_set(stats, WF_SHM_STAT_unexpected_max,
			  msg->unexpected_max > tagged->unexpected_max ?
				  msg->unexpected_max :
				  tagged->unexpected_max);
	wf_base_stats_set(stats, WF_SHM_STAT_pending, ep->tx_pool.in_use);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_out, ep->open_outs);
	wf_base_stats_set(stats, WF_SHM_STAT_unanswered, ep->connecting);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_in, ep->watch.count);
}

void wf_shm_stats_flush(struct wf_shm_ep *ep)
{
	flush(ep, FLUSHED);
}

void wf_shm_stats_flush_all(struct wf_shm_ep *ep)
{
	flush(ep, UINT32_MAX);
}
