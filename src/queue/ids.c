/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and unmaking pools of request ids.
 */
#include "queue/ids.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t index_mask(uint32_t count)
{
	uint32_t mask = 1;

	while (mask < count)
		mask <<= 1;
	return mask - 1;
}

int wf_queue_ids_init(struct wf_queue_ids *ids, uint32_t count, unsigned bits)
{
	uint32_t top, mask;

	/* The two marks lie above any index and any id of fewer bits. */
	if (bits < 1 || bits > 31 || !count || count > 1u << 24)
		return -EINVAL;
	top = (uint32_t)((1ull << bits) - 1);
	mask = index_mask(count);
	if (mask > top)
		return -EINVAL;
	*ids = (struct wf_queue_ids){
		.slots = calloc(count, sizeof(*ids->slots)),
		.last = count - 1,
		.count = count,
		.mask = mask,
		.step = mask + 1,
		.top = top,
	};
	if (!ids->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		ids->slots[i].id = i;
		ids->slots[i].next = i + 1 < count ? i + 1 : WF_QUEUE_ID_NONE;
	}
	return 0;
}

void wf_queue_ids_fini(struct wf_queue_ids *ids)
{
	free(ids->slots);
	ids->slots = NULL;
}
