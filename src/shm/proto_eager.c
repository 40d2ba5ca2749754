/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager: the message in one record of the data area.
 */
#include <errno.h>

#include "shm/proto.h"
#include "shm/put.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return tx->req->len <= out->chunk;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct wf_shm_slot *slot;
	uint8_t *record, flags;

	if (!wf_shm_out_has_room(out, tx->req->len))
		return -EAGAIN;
	if ((tx->slot_flags & WF_SHM_SLOT_ACK) && !wf_shm_out_wait(out, tx))
		return -EAGAIN;
	slot = wf_shm_put_slot(out);
	record = wf_shm_put_record(out, tx->req->len);
	slot->tag = tx->req->tag;
	slot->data = tx->req->data;
	slot->eager =
		(struct wf_shm_eager){ .total = tx->req->len, .op = tx->op };
	flags = wf_shm_put_eager(out, slot, record, tx->req->iov,
				 tx->req->iov_count, tx->req->len);
	wf_shm_put_publish(out, slot, tx->req->len, WF_SHM_KIND_EAGER,
			   tx->slot_flags | flags | wf_shm_put_turn(out));
	return 0;
}

const struct wf_shm_proto wf_shm_proto_eager = {
	.name = "eager",
	.can_send = can_send,
	.push = push,
	.whole = true,
};
