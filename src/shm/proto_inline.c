/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inline: the whole message in its slot.
 */
#include <errno.h>

#include "op/iov.h"
#include "shm/proto.h"
#include "shm/put.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)out;
	/* An acknowledged message needs the slot's room for its name. */
	return tx->req->len <= WF_SHM_INLINE_MAX &&
	       !(tx->slot_flags & WF_SHM_SLOT_ACK);
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct wf_shm_slot *slot;

	if (!wf_shm_out_has_room(out, 0))
		return -EAGAIN;
	slot = wf_shm_put_slot(out);
	slot->tag = tx->req->tag;
	slot->data = tx->req->data;
	wf_op_iov_gather(tx->req->iov, tx->req->iov_count, 0, slot->payload,
			 tx->req->len);
	wf_shm_put_publish(out, slot, tx->req->len, WF_SHM_KIND_INLINE,
			   tx->slot_flags);
	return 0;
}

const struct wf_shm_proto wf_shm_proto_inline = {
	.name = "inline",
	.can_send = can_send,
	.push = push,
	.whole = true,
};
