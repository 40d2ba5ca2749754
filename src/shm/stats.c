/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding up what an endpoint's channels have counted.
 */
#include "shm/stats.h"

#include "shm/ep.h"

#define X(name) #name,
const char *const wf_shm_stats_names[WF_SHM_STAT_COUNT] = { WF_SHM_STATS(X) };
#undef X

void wf_shm_stats_flush(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;
	struct wf_stats *stats = &ep->stats;
	uint64_t open = 0;
	uint64_t unexpected;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->state != WF_SHM_OUT_OPEN)
			continue;
		open++;
		wf_shm_stats_add(stats, WF_SHM_STAT_sent,
				 out->slot_lap.head - out->counted);
		wf_shm_stats_add(stats, WF_SHM_STAT_sent_bytes, out->bytes);
		out->counted = out->slot_lap.head;
		out->bytes = 0;
	}
	for (uint32_t i = 0; i < ep->in_count; i++) {
		struct wf_shm_in *in = ep->ins[i];

		wf_shm_stats_add(stats, WF_SHM_STAT_received,
				 in->next - in->counted);
		wf_shm_stats_add(stats, WF_SHM_STAT_received_bytes, in->bytes);
		in->counted = in->next;
		in->bytes = 0;
	}
	unexpected =
		(uint64_t)ep->rxq->msg.unexpected + ep->rxq->tagged.unexpected;
	if (unexpected > wf_base_stats_get(stats, WF_SHM_STAT_unexpected_max))
		wf_base_stats_set(stats, WF_SHM_STAT_unexpected_max,
				  unexpected);
	wf_base_stats_set(stats, WF_SHM_STAT_unexpected, unexpected);
	wf_base_stats_set(stats, WF_SHM_STAT_pending, ep->tx_pool.in_use);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_out, open);
	wf_base_stats_set(stats, WF_SHM_STAT_peers_in, ep->in_count);
}
