/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint counts for `weft stat`. Paths that are taken per message are
 * counted in their channel and added up now and then (wf_shm_stats_flush());
 * the others count here at once.
 */
#ifndef WF_SHM_STATS_H
#define WF_SHM_STATS_H

#include "base/stats.h"

#define WF_SHM_STATS(X)                                                        \
	X(peers_out)	     /* open channels to ... */                        \
	X(peers_in)	     /* ... and from peers */                          \
	X(sent)		     /* slots written: messages and parts of them */   \
	X(sent_bytes)	     /* payload that went through rings */             \
	X(sent_chunked)	     /* messages in several records */                 \
	X(sent_parked)	     /* messages fetched from our memory */            \
	X(sent_parked_bytes) /* their bytes */                                 \
	X(received)                                                            \
	X(received_bytes)                                                      \
	X(pulled) /* parked messages that we fetched ... */                    \
	X(pulled_bytes)                                                        \
	X(pulled_cma)	 /* ... alone by CMA */                                \
	X(pulled_shared) /* ... copied by both sides */                        \
	X(pulled_stream) /* ... through the ring */                            \
	X(rma_writes)	 /* one-sided */                                       \
	X(rma_write_bytes)                                                     \
	X(rma_reads)                                                           \
	X(rma_read_bytes)                                                      \
	X(ring_writes) /* through the ring, where CMA is refused */            \
	X(ring_reads)                                                          \
	X(atomics)	 /* asked for */                                       \
	X(served)	 /* pieces of writes, reads, atomics of peers */       \
	X(keys_rejected) /* asked by us or by peers */                         \
	X(unexpected)	 /* messages that wait for a receive now */            \
	X(unexpected_max)                                                      \
	X(pending)     /* operations that wait for room or a peer */           \
	X(sleeps)      /* times this endpoint went to sleep */                 \
	X(wakes)       /* times it woke a peer */                              \
	X(bells)       /* bells answered */                                    \
	X(cma_refused) /* the kernel said no after it had said yes */          \
	X(peers_lost)                                                          \
	X(protocol_errors) /* channels ended because a peer broke rules */

#define X(name) WF_SHM_STAT_##name,
enum wf_shm_stat { WF_SHM_STATS(X) WF_SHM_STAT_COUNT };
#undef X

extern const char *const wf_shm_stats_names[WF_SHM_STAT_COUNT];

struct wf_shm_ep;

static inline void wf_shm_stats_add(struct wf_stats *stats,
				    enum wf_shm_stat item, uint64_t more)
{
	wf_base_stats_add(stats, item, more);
}

/* Adds up what channels have counted. Called every half millisecond of
 * polling. */
void wf_shm_stats_flush(struct wf_shm_ep *ep);

#endif
