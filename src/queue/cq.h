/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion rings: entries written by a device (or software in its place) and
 * read by its user, perhaps in another process. An entry is new when its phase
 * bit says so: 1 in the first lap of a zeroed ring, 0 in the second, and so on.
 * The phase lies in one 32-bit word of the entry, which is written last
 * (release) and read first (acquire).
 *
 *   struct wf_queue_cq    the side that reads
 *   struct wf_queue_cqw   the side that writes
 *
 * With a credit word the reader says how far it is, now and then, and the
 * writer never overwrites what was not read. Without one the ring must be as
 * large as everything that may be outstanding, as on hardware.
 * Each side's struct is private to it and needs its owner's lock.
 */
#ifndef WF_QUEUE_CQ_H
#define WF_QUEUE_CQ_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

#define WF_QUEUE_CQ_STRIDE_MAX 64u

struct wf_queue_cq_attr {
	void *ring; /* entries * stride bytes, zeroed, 64-aligned */
	_Atomic uint32_t *credit; /* 0 at the start; NULL = none */
	uint32_t entries;	  /* power of two, 2 to 32768 */
	uint32_t stride;	  /* power of two, 8 to 64 */
	uint32_t phase_word;	  /* offset of the word with the phase */
	uint32_t phase_bit;	  /* its mask in that word */
};

struct wf_queue_cq {
	uint8_t *ring;
	_Atomic uint32_t *credit;
	uint32_t phase_bit;
	uint32_t expect; /* phase_bit or 0: what the next entry carries */
	uint16_t read;
	uint16_t told; /* of read, in the credit word */
	uint16_t mask;
	uint16_t stride;
	uint16_t phase_word;
};

int wf_queue_cq_init(struct wf_queue_cq *cq,
		     const struct wf_queue_cq_attr *attr);

/* Tells the writer how far we have read. wf_queue_cq_take() does this often
 * enough for a writer that waits for room. */
static inline void wf_queue_cq_tell(struct wf_queue_cq *cq)
{
	if (!cq->credit || cq->told == cq->read)
		return;
	cq->told = cq->read;
	atomic_store_explicit(cq->credit, cq->read, memory_order_release);
}

static inline _Atomic uint32_t *wf_queue_cq_word(const struct wf_queue_cq *cq)
{
	return (_Atomic uint32_t *)(cq->ring +
				    (size_t)(cq->read & cq->mask) * cq->stride +
				    cq->phase_word);
}

static inline bool wf_queue_cq_ready(const struct wf_queue_cq *cq)
{
	uint32_t word = atomic_load_explicit(wf_queue_cq_word(cq),
					     memory_order_relaxed);

	return (word & cq->phase_bit) == cq->expect;
}

/* Copies the next entry to @out (stride bytes), once: the caller then checks
 * the same bytes that it uses. False: none. */
static inline bool wf_queue_cq_take(struct wf_queue_cq *cq, void *out)
{
	uint32_t word = atomic_load_explicit(wf_queue_cq_word(cq),
					     memory_order_acquire);
	const uint8_t *from;

	if ((word & cq->phase_bit) != cq->expect)
		return false;
	from = cq->ring + (size_t)(cq->read & cq->mask) * cq->stride;
	if (wf_likely(cq->stride == 32))
		memcpy(out, from, 32); /* of a NIC: without a call */
	else
		memcpy(out, from, cq->stride);
	memcpy((uint8_t *)out + cq->phase_word, &word, sizeof(word));
	cq->read++;
	if (!(cq->read & cq->mask))
		cq->expect ^= cq->phase_bit;
	if (cq->credit && (uint16_t)(cq->read - cq->told) > cq->mask / 4)
		wf_queue_cq_tell(cq);
	return true;
}

/* -- the side that writes --------------------------------------------------- */

struct wf_queue_cqw {
	uint8_t *ring;
	const _Atomic uint32_t *credit;
	uint32_t phase_bit;
	uint32_t phase; /* phase_bit or 0 */
	uint16_t written;
	uint16_t read; /* as the reader last said */
	uint16_t mask;
	uint16_t stride;
	uint16_t phase_word;
};

int wf_queue_cqw_init(struct wf_queue_cqw *cqw,
		      const struct wf_queue_cq_attr *attr);

/* Places for entries. -EPROTO: the credit word says what cannot be. */
int wf_queue_cqw_room(struct wf_queue_cqw *cqw);

/* Publishes @entry (stride bytes); its phase is ours to set. -EAGAIN: no room,
 * the reader is behind; -EPROTO as above. */
int wf_queue_cqw_push(struct wf_queue_cqw *cqw, const void *entry);

#endif
