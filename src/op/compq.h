/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue behind a completion queue: one cache line per completion, in the
 * widest form; the provider narrows it to the requested format.
 *
 * Nothing is lost: the queue grows when it is half full. Above its high mark
 * wf_op_compq_room() returns false, and transports take no new work until the
 * application reads. Completions of work that was already taken still find a
 * slot.
 */
#ifndef WF_OP_COMPQ_H
#define WF_OP_COMPQ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/lock.h"
#include "op/waker.h"

/* Begins like the widest entry of libfabric, struct fi_cq_tagged_entry. */
struct wf_comp {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	uint64_t src;	  /* fi_addr_t of the sender, receives only */
	uint64_t failure; /* 0: success, else wf_op_comp_failure() */
};

static_assert(sizeof(struct wf_comp) == WF_LINE, "one line per completion");
static_assert(offsetof(struct wf_comp, src) == 48, "what readers may be given");

/* A failure is part of the completion: to report one needs no memory. */
#define WF_COMP_ERR_BITS 16
#define WF_COMP_ERR_MAX ((1 << WF_COMP_ERR_BITS) - 1)

static inline uint64_t wf_op_comp_failure(int err, size_t olen)
{
	return (uint64_t)olen << WF_COMP_ERR_BITS | (uint16_t)err;
}

/* Positive FI_E*. */
static inline int wf_op_comp_err(const struct wf_comp *comp)
{
	return (uint16_t)comp->failure;
}

/* Bytes that did not fit. */
static inline size_t wf_op_comp_olen(const struct wf_comp *comp)
{
	return comp->failure >> WF_COMP_ERR_BITS;
}

struct wf_compq {
	struct wf_comp *ring;
	uint32_t mask;
	uint32_t head;	  /* next to write, free-running */
	uint32_t tail;	  /* next to read */
	uint32_t reserve; /* half of it; for wf_op_compq_room() alone */
	uint32_t high;	  /* no new work from here on */
	/* While the application reads an empty queue without locks: where the
	 * first completion may go at once, up to its source. Taken back when
	 * anything is queued, so that order is kept. */
	struct wf_comp *direct;
	bool direct_used;
	bool discards; /* stands for a queue that is not there */
	struct wf_lock lock;
	struct wf_waker waker; /* of threads that wait for completions */
	/* Operations that may all fail at once, and a larger ring, never
	 * touched before, for the time when that happens without memory. */
	uint32_t promised;
	uint32_t spare_slots;
	struct wf_comp *spare;
};

int wf_op_compq_init(struct wf_compq *q, size_t size, bool locked);

/* A queue that accepts failures and drops them, for an endpoint that has only
 * counters. Successes must not be pushed. */
extern struct wf_compq wf_op_compq_none;

void wf_op_compq_fini(struct wf_compq *q);

/* @operations more may be in flight and may all fail at once: they find a slot
 * even if there is no memory then. 0 or -ENOMEM. */
int wf_op_compq_promise(struct wf_compq *q, uint32_t operations);
void wf_op_compq_unpromise(struct wf_compq *q, uint32_t operations);

/* Doubles the ring. 0 or -ENOMEM, then the queue is as it was. */
int wf_op_compq_grow_locked(struct wf_compq *q);

/* wf_op_compq_room() once the queue is half full. */
bool wf_op_compq_make_room(struct wf_compq *q);

/* Writes a failed completion. */
void wf_op_compq_fail(struct wf_compq *q, const struct wf_comp *comp, int err,
		      size_t olen);

/* Relaxed: a reader without the lock only wants to know whether it is worth
 * taking the lock. */
static inline uint32_t wf_op_compq_count(const struct wf_compq *q)
{
	return __atomic_load_n(&q->head, __ATOMIC_RELAXED) -
	       __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
}

/* Whether new work may be taken. Allocates memory ahead of need. Under
 * FI_THREAD_SAFE the answer may be stale by the time of the push; the half that
 * is kept free covers that. */
static inline bool wf_op_compq_room(struct wf_compq *q)
{
	if (wf_likely(wf_op_compq_count(q) <=
		      __atomic_load_n(&q->reserve, __ATOMIC_RELAXED)))
		return true;
	return wf_op_compq_make_room(q);
}

/* Aborts only when memory ran out, and the reserve and the spare ring are used
 * up: a lost completion would be a silent hang instead. */
struct wf_comp *wf_op_compq_slow_slot_locked(struct wf_compq *q);

/* Begins the sleep of a waiter; false: there is something to read. */
bool wf_op_compq_doze(struct wf_compq *q);

/* Takes the lock and returns the slot, of which the caller must fill in every
 * member; wf_op_compq_end() publishes it. Written in place: a completion is one
 * line. */
static inline struct wf_comp *wf_op_compq_begin(struct wf_compq *q)
{
	wf_base_lock_take(&q->lock);
	if (wf_unlikely(q->direct))
		q->direct = NULL;
	if (wf_unlikely(wf_op_compq_count(q) > q->mask))
		return wf_op_compq_slow_slot_locked(q);
	return &q->ring[q->head & q->mask];
}

static inline void wf_op_compq_end(struct wf_compq *q)
{
	__atomic_store_n(&q->head, q->head + 1, __ATOMIC_RELAXED);
	wf_op_waker_ring(&q->waker);
	wf_base_lock_drop(&q->lock);
}

static inline void wf_op_compq_take_locked(struct wf_compq *q)
{
	__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELAXED);
}

static inline void wf_op_compq_push(struct wf_compq *q,
				    const struct wf_comp *comp)
{
	*wf_op_compq_begin(q) = *comp;
	wf_op_compq_end(q);
}

/* A send that succeeded. Always inlined: part of the fast path of sending. */
static inline __attribute__((always_inline)) void
wf_op_compq_push_sent(struct wf_compq *q, void *context, uint64_t flags)
{
	struct wf_comp *comp = wf_op_compq_begin(q);

	comp->context = context;
	comp->flags = flags;
	comp->len = 0;
	comp->buf = NULL;
	comp->data = 0;
	comp->tag = 0;
	comp->src = UINT64_MAX;
	comp->failure = 0;
	wf_op_compq_end(q);
}

#endif
