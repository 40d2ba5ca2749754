/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a NIC, in a block that the caller may place where another
 * process reads it. One writer, words of 64 bits, never reset: a reader takes
 * differences. New ones are only added at the end.
 */
#ifndef WF_NIC_COUNTERS_H
#define WF_NIC_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* name, what it counts */
#define WF_NIC_COUNTERS(X)                                                     \
	X(tx_packets, "packets sent, all kinds")                               \
	X(tx_bytes, "bytes of them, our headers included")                     \
	X(tx_calls, "system calls that sent")                                  \
	X(tx_busy, "sends that the kernel had no room for")                    \
	X(tx_errors, "sends that the kernel refused")                          \
	X(tx_msgs, "send, read and write requests taken")                      \
	X(tx_done, "of them completed")                                        \
	X(tx_failed, "of them completed with an error")                        \
	X(rx_packets, "packets received, all kinds")                           \
	X(rx_bytes, "bytes of them")                                           \
	X(rx_calls, "system calls that received something")                    \
	X(rx_empty, "system calls that found nothing")                         \
	X(rx_msgs, "messages given to a receive")                              \
	X(rx_overflow, "packets the socket had no room for")                   \
	X(retransmits, "packets sent again")                                   \
	X(retransmit_bytes, "bytes of them")                                   \
	X(losses, "packets taken for lost")                                    \
	X(probes, "tail-loss probes and timeouts")                             \
	X(duplicates, "packets received twice")                                \
	X(reordered, "packets that overtook others")                           \
	X(beyond_window, "packets too far ahead to be kept")                   \
	X(acks_sent, "packets that only acknowledge")                          \
	X(acks_received, "of the peer's")                                      \
	X(rnr_sent, "packets refused for want of a receive")                   \
	X(rnr_received, "refusals by peers")                                   \
	X(nacks_sent, "packets refused for good")                              \
	X(nacks_received, "refusals by peers")                                 \
	X(bad_short, "dropped: too short or lengths that disagree")            \
	X(bad_magic, "dropped: not our protocol or version")                   \
	X(bad_crc, "dropped: damaged")                                         \
	X(bad_cid, "dropped: unknown connection")                              \
	X(bad_addr, "dropped: from another address than the connection's")     \
	X(bad_cookie, "dropped: forged or stale handshake")                    \
	X(bad_field, "dropped: a field that makes no sense")                   \
	X(connects, "connections opened to peers")                             \
	X(accepts, "connections opened by peers")                              \
	X(resets_sent, "peers told that we do not know them")                  \
	X(peer_deaths, "peers given up")                                       \
	X(peer_restarts, "peers that came back as another")                    \
	X(cwnd_cuts, "congestion: windows cut")                                \
	X(reads_served, "RDMA reads of peers")                                 \
	X(writes_served, "packets of RDMA writes of peers")                    \
	X(stale_completions, "completions of what was destroyed")              \
	X(cq_full, "completions that had to wait for room")                    \
	X(srtt_ns, "gauge: smoothed round trip of the last peer heard")        \
	X(cwnd_bytes, "gauge: its window")                                     \
	X(peers, "gauge: peers known")                                         \
	X(fault_lost, "fault injection: packets dropped")                      \
	X(fault_duplicated, "fault injection: packets doubled")                \
	X(fault_delayed, "fault injection: packets held back")                 \
	X(fault_corrupted, "fault injection: packets damaged")                 \
	X(tls_handshakes, "connections that are encrypted")                    \
	X(tls_refused, "connections refused: other key, or none")

struct wf_nic_counters {
#define WF_NIC_COUNTER_FIELD(name, text) _Atomic uint64_t name;
	WF_NIC_COUNTERS(WF_NIC_COUNTER_FIELD)
#undef WF_NIC_COUNTER_FIELD
};

/* One writer: no locked instruction. */
static inline void wf_nic_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static inline void wf_nic_gauge(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

static inline uint64_t wf_nic_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
