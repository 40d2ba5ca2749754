/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of the packet side of an endpoint for `weft stat`. The first
 * ones are one for each protocol, in the order of the registry; the counters of
 * the device are copied now and then.
 */
#ifndef WF_RDM_STATS_H
#define WF_RDM_STATS_H

#define WF_RDM_STATS(X)                                                        \
	X(sent_eager) /* operations, by protocol ... */                        \
	X(sent_medium)                                                         \
	X(sent_runtread)                                                       \
	X(sent_longread)                                                       \
	X(sent_longcts)                                                        \
	X(direct_writes)                                                       \
	X(eager_writes)                                                        \
	X(longread_writes)                                                     \
	X(longcts_writes)                                                      \
	X(direct_reads)                                                        \
	X(short_reads)                                                         \
	X(longcts_reads)                                                       \
	X(write_atomics)                                                       \
	X(fetch_atomics)                                                       \
	X(compare_atomics)                                                     \
	X(sent_eager_bytes) /* ... and their bytes */                          \
	X(sent_medium_bytes)                                                   \
	X(sent_runtread_bytes)                                                 \
	X(sent_longread_bytes)                                                 \
	X(sent_longcts_bytes)                                                  \
	X(direct_write_bytes)                                                  \
	X(eager_write_bytes)                                                   \
	X(longread_write_bytes)                                                \
	X(longcts_write_bytes)                                                 \
	X(direct_read_bytes)                                                   \
	X(short_read_bytes)                                                    \
	X(longcts_read_bytes)                                                  \
	X(write_atomic_bytes)                                                  \
	X(fetch_atomic_bytes)                                                  \
	X(compare_atomic_bytes)                                                \
	X(received) /* messages of peers */                                    \
	X(received_bytes)                                                      \
	X(served) /* writes, reads, atomics of peers */                        \
	X(keys_rejected)                                                       \
	X(unexpected)	 /* messages that wait for a receive now */            \
	X(pending)	 /* operations under way */                            \
	X(reordered)	 /* packets that came before their turn */             \
	X(reorder_depth) /* most that waited at once, of one peer */           \
	X(read_nacks)	 /* messages that could not be read */                 \
	X(handshakes)	 /* of peers */                                        \
	X(peers)                                                               \
	X(peers_lost)                                                          \
	X(peers_released) /* forgotten: nothing was under way */               \
	X(unanswered)	  /* peers that have not answered for 2 s, now */      \
	X(stale_packets)  /* of a life that is over */                         \
	X(bad_packets)	  /* that broke the rules */                           \
	X(stale_completions)                                                   \
	X(packets_out) /* of the device, all kinds */                          \
	X(packets_in)                                                          \
	X(retransmits)                                                         \
	X(losses)                                                              \
	X(duplicates)                                                          \
	X(rnr_sent)                                                            \
	X(rnr_received)                                                        \
	X(rtt_ns)     /* smoothed, of the last peer heard */                   \
	X(cwnd_bytes) /* its window */                                         \
	X(send_calls) /* system calls */                                       \
	X(receive_calls)                                                       \
	X(wire_out_bytes) /* with headers and what was sent again */           \
	X(wire_in_bytes)                                                       \
	X(overflows)	   /* packets that the socket had no room for */       \
	X(damaged)	   /* packets with a wrong checksum */                 \
	X(tls_connections) /* encrypted ... */                                 \
	X(tls_refused)	   /* ... and refused: another key, or none */

#define X(name) WF_RDM_STAT_##name,
enum wf_rdm_stat { WF_RDM_STATS(X) WF_RDM_STAT_COUNT };
#undef X

extern const char *const wf_rdm_stats_names[WF_RDM_STAT_COUNT];

struct wf_rdm_ep;

/* Copies what the device counts. */
void wf_rdm_stats_flush(struct wf_rdm_ep *ep);

#endif
