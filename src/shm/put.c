/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for messages larger than a slot. Above one record they go in
 * pieces, so that the receiver copies the first while the next is written.
 */
#include "shm/put.h"

#include <string.h>

static void put_one(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
		    uint64_t data, const void *buf, size_t len)
{
	struct wf_shm_slot *slot = wf_shm_put_slot(out);

	memcpy(wf_shm_put_record(out, len), buf, len);
	slot->tag = tag;
	slot->data = data;
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_EAGER, flags);
}

static void put_piece(struct wf_shm_out *out, const uint8_t *buf, size_t len)
{
	struct wf_shm_slot *slot = wf_shm_put_slot(out);

	memcpy(wf_shm_put_record(out, len), buf, len);
	wf_shm_put_publish(out, slot, len, WF_SHM_KIND_NEXT, 0);
}

bool wf_shm_put_records(struct wf_shm_out *out, uint8_t flags, uint64_t tag,
			uint64_t data, const void *buf, size_t len)
{
	const uint8_t *pos = buf;
	struct wf_shm_slot *slot;
	size_t left;

	if (len <= out->chunk) {
		if (!wf_shm_put_fits(out, len) &&
		    !wf_shm_out_has_room(out, len))
			return false;
		put_one(out, flags, tag, data, buf, len);
		return true;
	}
	if (!wf_shm_out_fits_whole(out, len))
		return false;
	slot = wf_shm_put_slot(out);
	memcpy(wf_shm_put_record(out, out->chunk), pos, out->chunk);
	slot->tag = tag;
	slot->data = data;
	slot->eager = (struct wf_shm_eager){ .total = len };
	wf_shm_put_publish(out, slot, out->chunk, WF_SHM_KIND_FIRST, flags);
	pos += out->chunk;
	for (left = len - out->chunk; left > out->chunk; left -= out->chunk) {
		put_piece(out, pos, out->chunk);
		pos += out->chunk;
	}
	put_piece(out, pos, left);
	return true;
}
