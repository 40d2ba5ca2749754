/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding up what an endpoint's channels have counted.
 */
#include "shm/stats.h"

#include "shm/ep.h"

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

void wf_shm_stats_flush(struct wf_shm_ep *ep)
{
	const struct wf_match *msg = &ep->rxq->msg;
	const struct wf_match *tagged = &ep->rxq->tagged;
	struct wf_stats *stats = &ep->stats;
	struct wf_list *pos, *tmp;
	uint64_t open = 0;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		open += out->state == WF_SHM_OUT_OPEN;
		wf_shm_stats_count_out(out);
	}
	for (uint32_t i = 0; i < ep->watch.count; i++)
		wf_shm_stats_count_in(ep->watch.ins[i]);
	wf_base_stats_set(stats, WF_SHM_STAT_unexpected,
			  (uint64_t)msg->unexpected + tagged->unexpected);
	wf_base_stats_set(stats, WF_SHM_STAT_unexpected_max,
			  msg->unexpected_max > tagged->unexpected_max ?
				  msg->unexpected_max :
				  tagged->unexpected_max);
	wf_base_stats_set(stats, WF_SHM_STAT_pending, ep->tx_pool.in_use);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_out, open);
	wf_base_stats_set(stats, WF_SHM_STAT_unanswered, ep->connecting);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_in, ep->watch.count);
}
