/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for messages larger than a slot.
 */
#include "shm/put.h"

#include <string.h>

bool wf_shm_put_large(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
		      uint64_t data, const void *buf, size_t len)
{
	struct wf_shm_slot *slot;

	if (!wf_shm_put_fits(out, len) && !wf_shm_out_has_room(out, len))
		return false;
	slot = wf_shm_put_slot(out);
	memcpy(wf_shm_put_record(out, len), buf, len);
	slot->tag = tag;
	slot->data = data;
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_EAGER,
			   flags | wf_shm_put_turn(out));
	return true;
}
