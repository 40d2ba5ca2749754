/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of an endpoint for `weft stat`. Paths that are taken per message
 * are counted in their channel and added up now and then
 * (wf_shm_stats_flush()); the others count here at once.
 */
#ifndef WF_SHM_STATS_H
#define WF_SHM_STATS_H

#include "base/stats.h"

#define WF_SHM_STATS(X)                                                        \
	X(peers_out)   /* open channels to ... */                              \
	X(peers_in)    /* ... and from peers */                                \
	X(letters_out) /* first messages, without a ring, to ... */            \
	X(letters_in)  /* ... and from peers; also counted as inline */        \
	X(unanswered)  /* peers that we wait for: no answer so far */          \
	X(slots_out)   /* written: messages, parts of them, requests */        \
	X(slots_in)    /* taken */                                             \
	X(sent_inline) /* messages in a slot ... */                            \
	X(sent_inline_bytes)                                                   \
	X(sent_eager) /* ... in one record ... */                              \
	X(sent_eager_bytes)                                                    \
	X(sent_chunked) /* ... in several ... */                               \
	X(sent_chunked_bytes)                                                  \
	X(sent_parked) /* ... and those that stay with us until matched */     \
	X(sent_parked_bytes)                                                   \
	X(sent_stream) /* of these, asked for through the ring */              \
	X(sent_stream_bytes)                                                   \
	X(received_inline)                                                     \
	X(received_inline_bytes)                                               \
	X(received_eager)                                                      \
	X(received_eager_bytes)                                                \
	X(received_chunked)                                                    \
	X(received_chunked_bytes)                                              \
	X(pulled_cma) /* parked messages that we fetched by CMA ... */         \
	X(pulled_cma_bytes)                                                    \
	X(pulled_shared) /* ... copied together with the sender ... */         \
	X(pulled_shared_bytes)                                                 \
	X(pulled_stream) /* ... got through the ring ... */                    \
	X(pulled_stream_bytes)                                                 \
	X(pulled_self) /* ... and copied inside our process */                 \
	X(pulled_self_bytes)                                                   \
	X(rma_writes) /* one-sided */                                          \
	X(rma_write_bytes)                                                     \
	X(rma_reads)                                                           \
	X(rma_read_bytes)                                                      \
	X(ring_writes) /* through the ring, where CMA is refused */            \
	X(ring_write_bytes)                                                    \
	X(ring_reads)                                                          \
	X(ring_read_bytes)                                                     \
	X(atomics)	  /* asked for */                                      \
	X(served)	  /* pieces of writes, reads, atomics of peers */      \
	X(keys_rejected)  /* asked by us or by peers */                        \
	X(unexpected)	  /* messages that wait for a receive now */           \
	X(unexpected_max) /* most of one kind, tagged or not, at once */       \
	X(pending)	  /* operations that wait for room or a peer */        \
	X(sleeps)	  /* times this endpoint went to sleep */              \
	X(wakes)	  /* times it woke a peer */                           \
	X(bells)	  /* bells answered */                                 \
	X(cma_refused) /* channels where the kernel said no, then or later */  \
	X(peers_lost)                                                          \
	X(protocol_errors) /* channels ended because a peer broke rules */

#define X(name) WF_SHM_STAT_##name,
enum wf_shm_stat { WF_SHM_STATS(X) WF_SHM_STAT_COUNT };
#undef X

extern const char *const wf_shm_stats_names[WF_SHM_STAT_COUNT];

struct wf_shm_ep;
struct wf_shm_in;
struct wf_shm_out;

static inline void wf_shm_stats_add(struct wf_stats *stats,
				    enum wf_shm_stat item, uint64_t more)
{
	wf_base_stats_add(stats, item, more);
}

/* Adds up the counts of a channel; also before it is freed. */
void wf_shm_stats_count_out(struct wf_shm_out *out);
void wf_shm_stats_count_in(struct wf_shm_in *in);

/* Adds up what some of the channels have counted, others the next time. Called
 * every half millisecond of polling. */
void wf_shm_stats_flush(struct wf_shm_ep *ep);

/* Flushes the counts of all channels, before the endpoint sleeps. */
void wf_shm_stats_flush_all(struct wf_shm_ep *ep);

#endif
