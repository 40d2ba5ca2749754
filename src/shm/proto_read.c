/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read through the ring, for peers between which CMA is refused: the initiator
 * asks for pieces, and the target puts them into the returns of the channel.
 */
#include <errno.h>

#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/remote.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)out;
	return tx->req->kind == WF_TX_READ;
}

static int begin(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct iovec unused[WF_OP_IOV_PARTS_MAX];
	size_t count;
	bool events;
	int err = wf_shm_remote_check(out, tx, unused, &count, &events);

	if (err)
		return err;
	if (!wf_shm_out_wait(out, tx))
		return -EAGAIN;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_ring_reads, 1);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_ring_read_bytes,
			 tx->req->len);
	return 0;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	tx->slot_flags |= WF_SHM_SLOT_ACK;
	while (!tx->done.issued) {
		struct wf_shm_remote_piece piece =
			wf_shm_remote_next(tx, WF_SHM_RETURN_MAX);
		int buffer, err;

		if (!wf_shm_out_has_room(out, 0))
			return -EAGAIN;
		err = tx->pushed ? 0 : begin(out, tx);
		if (err)
			return err;
		tx->pushed = 1; /* begun */
		buffer = wf_shm_remote_take_return(out, tx);
		if (buffer < 0)
			return -EAGAIN;
		tx->done.outstanding++;
		wf_shm_remote_put(out, tx, &piece, WF_SHM_KIND_READ,
				  (uint8_t)buffer, 0, NULL);
		wf_shm_remote_advance(tx, &piece);
	}
	return 0;
}

const struct wf_shm_proto wf_shm_proto_read = {
	.name = "read",
	.can_send = can_send,
	.push = push,
};
