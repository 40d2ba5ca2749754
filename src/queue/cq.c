/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion rings: making them, and the writing side.
 */
#include "queue/cq.h"

#include "queue/sub.h"

static int check(const struct wf_queue_cq_attr *attr)
{
	if (!attr->ring || attr->entries < WF_QUEUE_ENTRIES_MIN ||
	    attr->entries > WF_QUEUE_ENTRIES_MAX ||
	    (attr->entries & (attr->entries - 1)))
		return -EINVAL;
	if (attr->stride < 8 || attr->stride > WF_QUEUE_CQ_STRIDE_MAX ||
	    (attr->stride & (attr->stride - 1)))
		return -EINVAL;
	if (attr->phase_word % 4 || attr->phase_word + 4 > attr->stride ||
	    !attr->phase_bit || (attr->phase_bit & (attr->phase_bit - 1)))
		return -EINVAL;
	return (uintptr_t)attr->ring % WF_LINE ? -EINVAL : 0;
}

int wf_queue_cq_init(struct wf_queue_cq *cq,
		     const struct wf_queue_cq_attr *attr)
{
	int ret = check(attr);

	if (ret)
		return ret;
	*cq = (struct wf_queue_cq){
		.ring = attr->ring,
		.credit = attr->credit,
		.phase_bit = attr->phase_bit,
		.expect = attr->phase_bit,
		.mask = (uint16_t)(attr->entries - 1),
		.stride = (uint16_t)attr->stride,
		.phase_word = (uint16_t)attr->phase_word,
	};
	return 0;
}

int wf_queue_cqw_init(struct wf_queue_cqw *cqw,
		      const struct wf_queue_cq_attr *attr)
{
	int ret = check(attr);

	if (ret)
		return ret;
	*cqw = (struct wf_queue_cqw){
		.ring = attr->ring,
		.credit = attr->credit,
		.phase_bit = attr->phase_bit,
		.phase = attr->phase_bit,
		.mask = (uint16_t)(attr->entries - 1),
		.stride = (uint16_t)attr->stride,
		.phase_word = (uint16_t)attr->phase_word,
	};
	return 0;
}

static int room_left(const struct wf_queue_cqw *cqw)
{
	return cqw->mask + 1 - (uint16_t)(cqw->written - cqw->read);
}

int wf_queue_cqw_room(struct wf_queue_cqw *cqw)
{
	uint32_t credit;

	if (!cqw->credit)
		return cqw->mask + 1;
	/* Pairs with the release in wf_queue_cq_tell(): the reader is through
	 * with what it gives back. */
	credit = atomic_load_explicit(cqw->credit, memory_order_acquire);
	/* Neither ahead of us nor behind what it said before. */
	if (credit > UINT16_MAX || (uint16_t)(credit - cqw->read) >
					   (uint16_t)(cqw->written - cqw->read))
		return -EPROTO;
	cqw->read = (uint16_t)credit;
	return room_left(cqw);
}

int wf_queue_cqw_push(struct wf_queue_cqw *cqw, const void *entry)
{
	uint8_t *at =
		cqw->ring + (size_t)(cqw->written & cqw->mask) * cqw->stride;
	size_t tail = cqw->phase_word + sizeof(uint32_t);
	uint32_t word;

	if (cqw->credit && !room_left(cqw)) {
		int room = wf_queue_cqw_room(cqw);

		if (room <= 0)
			return room ? room : -EAGAIN;
	}
	if (wf_likely(cqw->stride == 32 && !cqw->phase_word)) {
		/* Of a NIC: copied without a call. */
		memcpy(at + 4, (const uint8_t *)entry + 4, 28);
	} else {
		memcpy(at, entry, cqw->phase_word);
		memcpy(at + tail, (const uint8_t *)entry + tail,
		       cqw->stride - tail);
	}
	memcpy(&word, (const uint8_t *)entry + cqw->phase_word, sizeof(word));
	word = (word & ~cqw->phase_bit) | cqw->phase;
	/* Last: pairs with the acquire in wf_queue_cq_take(). */
	atomic_store_explicit((_Atomic uint32_t *)(at + cqw->phase_word), word,
			      memory_order_release);
	cqw->written++;
	if (!(cqw->written & cqw->mask))
		cqw->phase ^= cqw->phase_bit;
	return 0;
}
