/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission rings: descriptors of 64 or 16 bytes written by one side, taken by
 * another that may be a device, a thread or another process. Ring and doorbell
 * lie in memory that the caller gives; nothing here holds a pointer in it.
 *
 *   struct wf_queue_sub    the side that writes
 *   struct wf_queue_work   the side that takes
 *
 * Counts run freely in 16 bits; the doorbell is a 32-bit store of the writer's.
 * The place of a descriptor is its count modulo the size, its phase is the lap:
 * 0 in the first, 1 in the second, and so on. One writer and one taker; each
 * side's struct is private to it and needs its owner's lock.
 *
 * The writer never reads the ring. The taker validates the doorbell and copies
 * a descriptor out before anyone looks at it, so that what was checked is what
 * is used.
 */
#ifndef WF_QUEUE_SUB_H
#define WF_QUEUE_SUB_H

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"
#include "queue/copy.h"

#define WF_QUEUE_ENTRIES_MIN 2u
#define WF_QUEUE_ENTRIES_MAX 32768u /* half of what a count can tell apart */

struct wf_queue_sub_attr {
	void *ring;		    /* entries * stride bytes, 64-aligned */
	_Atomic uint32_t *doorbell; /* 0 at the start */
	uint32_t entries;	    /* power of two */
	uint32_t stride;	    /* 64 or 16 */
	uint32_t max_batch;	    /* a doorbell at the latest; 0 = entries */
	enum wf_queue_copy_kind copy; /* of 64 bytes; 0 = the best one */
};

struct wf_queue_sub;

typedef int (*wf_queue_post_fn)(struct wf_queue_sub *sub, const void *staged,
				bool more);

/* One line: a post touches it, the staged descriptor and the ring. Private:
 * what a caller may know is behind the functions below. */
struct wf_queue_sub {
	uint8_t *next;	 /* place of the next post, while quick lasts */
	uint32_t quick;	 /* posts to go before one fills a batch or the ring, or
			    leaves its end */
	uint32_t mask;	 /* entries - 1 */
	uint32_t posted; /* written to the ring */
	uint32_t done;	 /* of them completed: their places are free */
	uint32_t rung;	 /* of them told to the other side */
	uint32_t batch;	 /* max_batch */
	wf_queue_post_fn post; /* one per copy */
	_Atomic uint32_t *doorbell;
	uint8_t *ring;
	uint32_t rings;	  /* doorbells written */
	uint16_t refused; /* posts that found the ring full */
	uint16_t shift;	  /* log2(stride) */
} WF_ALIGNED(WF_LINE);

static_assert(sizeof(struct wf_queue_sub) == WF_LINE, "one line");

/* -EINVAL: size, stride, alignment. */
int wf_queue_sub_init(struct wf_queue_sub *sub,
		      const struct wf_queue_sub_attr *attr);

/* Stores to write-combined memory are ordered by this alone; on ordinary
 * memory the release of the doorbell would do. */
#if defined(__x86_64__)
static inline void wf_queue_store_fence(void)
{
	__asm__ volatile("sfence" ::: "memory");
}
#elif defined(__aarch64__)
static inline void wf_queue_store_fence(void)
{
	__asm__ volatile("dsb st" ::: "memory");
}
#else
static inline void wf_queue_store_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

/* The phase that the next descriptor carries, wherever its layout has it. */
static inline unsigned wf_queue_sub_phase(const struct wf_queue_sub *sub)
{
	return (sub->posted & (sub->mask + 1)) != 0;
}

/* Written and not yet completed. */
static inline uint32_t wf_queue_sub_used(const struct wf_queue_sub *sub)
{
	return sub->posted - sub->done;
}

static inline bool wf_queue_sub_full(const struct wf_queue_sub *sub)
{
	return wf_queue_sub_used(sub) > sub->mask;
}

/* Written and not yet told. */
static inline uint32_t wf_queue_sub_pending(const struct wf_queue_sub *sub)
{
	return sub->posted - sub->rung;
}

/* After any of the counts but posted has moved. */
static inline void wf_queue_sub_settle(struct wf_queue_sub *sub)
{
	uint32_t left = sub->mask + 1 - wf_queue_sub_used(sub);
	uint32_t due = sub->batch - 1 - wf_queue_sub_pending(sub);
	uint32_t at = sub->posted & sub->mask;

	left = left < due ? left : due;
	due = sub->mask + 1 - at; /* to the end of the ring */
	sub->quick = left < due ? left : due;
	sub->next = sub->ring + ((size_t)at << sub->shift);
}

/* Announces everything posted to the other side. Pairs with the acquire of the
 * doorbell in wf_queue_work_poll(). */
static inline void wf_queue_sub_ring(struct wf_queue_sub *sub)
{
	if (!wf_queue_sub_pending(sub))
		return;
	wf_queue_store_fence();
	atomic_store_explicit(sub->doorbell, (uint16_t)sub->posted,
			      memory_order_release);
	sub->rung = sub->posted;
	sub->rings++;
	wf_queue_sub_settle(sub);
}

/* Writes the descriptor that the caller has staged (64 bytes, 64-aligned). With
 * @more the doorbell may wait for the next post or for wf_queue_sub_ring().
 * -EAGAIN: the ring is full, everything before has been told. */
static inline int wf_queue_sub_post64(struct wf_queue_sub *sub,
				      const void *staged, bool more)
{
	return sub->post(sub, staged, more);
}

/* The same for rings of 16-byte descriptors, which lie in ordinary memory. */
int wf_queue_sub_post16(struct wf_queue_sub *sub, const void *staged,
			bool more);

/* @n descriptors came back, in whatever order. The caller has checked each
 * completion against its request ids (ids.h), so @n is not the peer's word. */
static inline void wf_queue_sub_done(struct wf_queue_sub *sub, uint32_t n)
{
	assert(n <= wf_queue_sub_used(sub));
	sub->done += n;
	wf_queue_sub_settle(sub);
}

/* -- the side that takes ---------------------------------------------------- */

struct wf_queue_work {
	const uint8_t *ring;
	const _Atomic uint32_t *doorbell;
	uint16_t taken;
	uint16_t told; /* last valid doorbell */
	uint16_t mask;
	uint8_t shift;
};

/* The ring and doorbell of a wf_queue_sub_attr; the rest of it is ignored. */
int wf_queue_work_init(struct wf_queue_work *work,
		       const struct wf_queue_sub_attr *attr);

/* Descriptors that may be taken now. -EPROTO: the doorbell is impossible (not a
 * 16-bit count, or more than the ring holds): give the writer up. */
static inline int wf_queue_work_poll(struct wf_queue_work *work)
{
	uint32_t bell =
		atomic_load_explicit(work->doorbell, memory_order_acquire);
	uint16_t ready = (uint16_t)(bell - work->taken);

	if (wf_unlikely(bell > UINT16_MAX || ready > work->mask + 1u))
		return -EPROTO;
	work->told = (uint16_t)bell;
	return ready;
}

/* Copies the next descriptor to @out: once, into memory the writer does not
 * see. Only after wf_queue_work_poll() counted it. */
static inline void wf_queue_work_take(struct wf_queue_work *work, void *out)
{
	size_t at = (size_t)(work->taken & work->mask) << work->shift;

	assert(work->taken != work->told);
	memcpy(out, work->ring + at, (size_t)1 << work->shift);
	work->taken++;
}

/* The phase that the next descriptor should carry. */
static inline unsigned wf_queue_work_phase(const struct wf_queue_work *work)
{
	return (work->taken & (work->mask + 1u)) != 0;
}

#endif
