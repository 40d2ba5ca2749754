/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write through the ring, for peers between which CMA is refused: the initiator
 * sends pieces, and the target puts them in place when it makes progress.
 */
#include <errno.h>

#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/remote.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)out;
	return tx->req->kind == WF_TX_WRITE;
}

static void fill(const struct wf_shm_tx *tx, uint8_t *to, uint32_t len)
{
	wf_op_iov_gather(tx->req->iov, tx->req->iov_count, tx->pushed, to, len);
}

static int begin(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	struct iovec unused[WF_OP_IOV_PARTS_MAX];
	size_t count;
	bool events;
	int err = wf_shm_remote_check(out, tx, unused, &count, &events);

	if (err)
		return err;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_ring_writes, 1);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_ring_write_bytes,
			 tx->req->len);
	return 0;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	bool begun = tx->pushed || tx->done.seg;

	while (!tx->done.issued) {
		struct wf_shm_remote_piece piece =
			wf_shm_remote_next(tx, out->chunk);
		int err;

		if (!wf_shm_out_has_room(out, wf_shm_remote_record(piece.len)))
			return -EAGAIN;
		err = begun ? 0 : begin(out, tx);
		if (err)
			return err;
		if (piece.last && (tx->slot_flags & WF_SHM_SLOT_ACK)) {
			if (!wf_shm_out_wait(out, tx))
				return -EAGAIN;
			tx->done.outstanding = 1;
		}
		wf_shm_remote_put(out, tx, &piece, WF_SHM_KIND_WRITE, 0,
				  piece.len, fill);
		tx->pushed += piece.len;
		wf_shm_remote_advance(tx, &piece);
		begun = true;
	}
	return 0;
}

const struct wf_shm_proto wf_shm_proto_write = {
	.name = "write",
	.can_send = can_send,
	.push = push,
};
