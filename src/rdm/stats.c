/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of the packet side of an endpoint.
 */
#include "rdm/stats.h"

#include "rdm/ep.h"

#define X(name) #name,
const char *const wf_rdm_stats_names[WF_RDM_STAT_COUNT] = { WF_RDM_STATS(X) };
#undef X

void wf_rdm_stats_flush(struct wf_rdm_ep *ep)
{
	const struct wf_nic_counters *nic = wf_nic_counters(ep->nic);

#define COPY(ours, theirs)                                                     \
	wf_base_stats_set(&ep->stats, WF_RDM_STAT_##ours,                      \
			  wf_nic_counter(&nic->theirs))
	COPY(packets_out, tx_packets);
	COPY(packets_in, rx_packets);
	COPY(retransmits, retransmits);
	COPY(losses, losses);
	COPY(duplicates, duplicates);
	COPY(rnr_sent, rnr_sent);
	COPY(rnr_received, rnr_received);
	COPY(rtt_ns, srtt_ns);
	COPY(cwnd_bytes, cwnd_bytes);
	COPY(send_calls, tx_calls);
	COPY(receive_calls, rx_calls);
	COPY(wire_out_bytes, tx_bytes);
	COPY(wire_in_bytes, rx_bytes);
	COPY(overflows, rx_overflow);
	COPY(damaged, bad_crc);
	COPY(tls_connections, tls_handshakes);
	COPY(tls_refused, tls_refused);
#undef COPY
	wf_base_stats_set(&ep->stats, WF_RDM_STAT_unexpected, ep->unexpected);
	wf_base_stats_set(&ep->stats, WF_RDM_STAT_pending,
			  ep->tx_pool.in_use + ep->run_more);
	wf_base_stats_set(&ep->stats, WF_RDM_STAT_peers, ep->peer_count);
}
