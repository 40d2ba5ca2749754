/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to post one descriptor that bench/wqe_copy measures, all with one
 * signature, so that the same code can count and time each of them.
 */
#ifndef WF_BENCH_WQE_VARIANTS_H
#define WF_BENCH_WQE_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/sub.h"

struct wqe_words {
	uint64_t words[8];
} WF_ALIGNED(64);

struct wqe_queue {
	struct wf_queue_sub sub; /* ours */
	struct wqe_words wqe;	 /* staged */
	void *ring;		 /* theirs */
	_Atomic uint32_t *doorbell;
	uint16_t count;
	uint16_t mask;
};

/* Their doorbell: the same fence and store as ours. */
static inline void wqe_queue_ring(struct wqe_queue *q)
{
	wf_queue_store_fence();
	atomic_store_explicit(q->doorbell, q->count, memory_order_release);
}

typedef void (*wqe_post_fn)(struct wqe_queue *q, bool ring);

void wqe_calls_o0(struct wqe_queue *q, bool ring);
void wqe_loop_o0(struct wqe_queue *q, bool ring);
void wqe_calls_o2(struct wqe_queue *q, bool ring);
void wqe_loop_o2(struct wqe_queue *q, bool ring);
void wqe_calls_o2_inlined(struct wqe_queue *q, bool ring);
void wqe_loop_o2_inlined(struct wqe_queue *q, bool ring);
/* wf_queue_sub_post64() with the copy that q->sub has. */
void wqe_post(struct wqe_queue *q, bool ring);

#endif
