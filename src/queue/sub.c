/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cold half of submission rings: making them, and the full ring.
 */
#include "queue/sub.h"

static int check(const struct wf_queue_sub_attr *attr)
{
	if (!attr->ring || !attr->doorbell ||
	    attr->entries < WF_QUEUE_ENTRIES_MIN ||
	    attr->entries > WF_QUEUE_ENTRIES_MAX ||
	    (attr->entries & (attr->entries - 1)))
		return -EINVAL;
	if (attr->stride != 64 && attr->stride != 16)
		return -EINVAL;
	/* A descriptor in two lines would be two writes to a device. */
	if ((uintptr_t)attr->ring % WF_LINE || attr->max_batch > attr->entries)
		return -EINVAL;
	return 0;
}

static uint8_t log2_of(uint32_t value)
{
	return (uint8_t)__builtin_ctz(value);
}

int wf_queue_sub_init(struct wf_queue_sub *sub,
		      const struct wf_queue_sub_attr *attr)
{
	int ret = check(attr);

	if (ret)
		return ret;
	*sub = (struct wf_queue_sub){
		.ring = attr->ring,
		.copy = attr->copy ? attr->copy : wf_queue_copy_best(),
		.doorbell = attr->doorbell,
		.mask = (uint16_t)(attr->entries - 1),
		.batch = (uint16_t)(attr->max_batch ? attr->max_batch :
						      attr->entries),
		.lap_bit = log2_of(attr->entries),
		.shift = log2_of(attr->stride),
	};
	return 0;
}

int wf_queue_sub_refuse(struct wf_queue_sub *sub)
{
	wf_queue_sub_ring(sub);
	sub->refused++;
	return -EAGAIN;
}

int wf_queue_work_init(struct wf_queue_work *work,
		       const struct wf_queue_sub_attr *attr)
{
	int ret = check(attr);

	if (ret)
		return ret;
	*work = (struct wf_queue_work){
		.ring = attr->ring,
		.doorbell = attr->doorbell,
		.mask = (uint16_t)(attr->entries - 1),
		.shift = log2_of(attr->stride),
	};
	return 0;
}
