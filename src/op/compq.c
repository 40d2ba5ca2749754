/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of completion queues. Not on the path of a message.
 */
#include "op/compq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "os/inline.h"
#include "os/knob.h"

/* From four times the requested size on, and at least 16384, a queue stops new
 * work instead of growing with every message that a slow reader leaves. */
#define HIGH_FACTOR 4
#define HIGH_MIN WF_KNOB(compq_high_min, 16384)
#define SIZE_MIN 16
#define SIZE_MAX_LOG2 24

WF_PER_PROCESS struct wf_compq wf_op_compq_none = {
	.discards = true,
	.waker = WF_WAKER_NONE,
};

int wf_op_compq_init(struct wf_compq *q, size_t size, bool locked)
{
	uint32_t slots = SIZE_MIN;

	while (slots < size && slots < (1u << SIZE_MAX_LOG2))
		slots *= 2;
	*q = (struct wf_compq){
		.mask = slots - 1,
		.reserve = slots / 2,
		.waker = WF_WAKER_NONE,
	};
	q->high = slots * HIGH_FACTOR;
	if (q->high < HIGH_MIN)
		q->high = HIGH_MIN;
	wf_base_lock_init(&q->lock, locked);
	q->ring = aligned_alloc(WF_LINE, slots * sizeof(*q->ring));
	return q->ring ? 0 : -ENOMEM;
}

void wf_op_compq_fini(struct wf_compq *q)
{
	free(q->ring);
	free(q->spare);
	q->ring = NULL;
	q->spare = NULL;
}

/* Moves to a larger ring. */
static void use_ring(struct wf_compq *q, struct wf_comp *ring, uint32_t slots)
{
	for (uint32_t i = q->tail; i != q->head; i++)
		ring[i & (slots - 1)] = q->ring[i & q->mask];
	free(q->ring);
	q->ring = ring;
	q->mask = slots - 1;
	__atomic_store_n(&q->reserve, slots / 2, __ATOMIC_RELAXED);
}

/* The spare ring holds a full ring and whatever was promised. */
static int make_spare_locked(struct wf_compq *q)
{
	uint32_t slots = (q->mask + 1) * 2;
	struct wf_comp *spare;

	while (slots < q->mask + 1 + q->promised)
		slots *= 2;
	if (q->spare_slots >= slots || slots > (1u << SIZE_MAX_LOG2))
		return 0;
	spare = aligned_alloc(WF_LINE, slots * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	free(q->spare);
	q->spare = spare;
	q->spare_slots = slots;
	return 0;
}

int wf_op_compq_promise(struct wf_compq *q, uint32_t operations)
{
	int err;

	if (q->discards)
		return 0;
	wf_base_lock_take(&q->lock);
	q->promised += operations;
	err = make_spare_locked(q);
	if (err)
		q->promised -= operations;
	wf_base_lock_drop(&q->lock);
	return err;
}

void wf_op_compq_unpromise(struct wf_compq *q, uint32_t operations)
{
	if (q->discards)
		return;
	wf_base_lock_take(&q->lock);
	q->promised -= operations;
	wf_base_lock_drop(&q->lock);
}

int wf_op_compq_grow_locked(struct wf_compq *q)
{
	uint32_t slots = (q->mask + 1) * 2;
	struct wf_comp *ring;

	if (wf_op_compq_count(q) <= q->mask / 2)
		return 0; /* another thread was here first */
	if (slots > (1u << SIZE_MAX_LOG2))
		return -ENOMEM;
	ring = aligned_alloc(WF_LINE, slots * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	use_ring(q, ring, slots);
	/* If this fails, the old ring serves as long as it has room. */
	if (q->promised)
		make_spare_locked(q);
	return 0;
}

bool wf_op_compq_make_room(struct wf_compq *q)
{
	uint32_t count;
	bool room;

	wf_base_lock_take(&q->lock);
	count = wf_op_compq_count(q);
	room = count <= q->mask / 2 ||
	       (count < q->high &&
		(!wf_op_compq_grow_locked(q) || count < q->mask));
	wf_base_lock_drop(&q->lock);
	return room;
}

struct wf_comp *wf_op_compq_slow_slot_locked(struct wf_compq *q)
{
	if (wf_op_compq_grow_locked(q)) {
		if (q->spare_slots <= q->mask + 1) {
			wf_warn("no memory for completions, %u are unread",
				wf_op_compq_count(q));
			abort();
		}
		use_ring(q, q->spare, q->spare_slots);
		q->spare = NULL;
		q->spare_slots = 0;
	}
	return &q->ring[q->head & q->mask];
}

void wf_op_compq_fail(struct wf_compq *q, const struct wf_comp *comp, int err,
		      size_t olen)
{
	struct wf_comp failed = *comp;

	if (q->discards)
		return;
	assert(err > 0 && err <= WF_COMP_ERR_MAX);
	failed.failure = wf_op_comp_failure(err, olen);
	wf_op_compq_push(q, &failed);
}

bool wf_op_compq_doze(struct wf_compq *q)
{
	bool empty;

	wf_base_lock_take(&q->lock);
	empty = !wf_op_compq_count(q);
	if (empty)
		wf_op_waker_doze(&q->waker);
	wf_base_lock_drop(&q->lock);
	return empty;
}
