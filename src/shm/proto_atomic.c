/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics: the target runs them, so that all peers and the target itself use
 * the same instructions on the same memory. Each segment takes one slot. The
 * reply itself carries the result of a fetch of up to 8 bytes; a return carries
 * longer ones.
 */
#include <errno.h>

#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/remote.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)out;
	(void)tx;
	return true;
}

static bool fetches(const struct wf_shm_tx *tx)
{
	return tx->req->remote->amo_kind != WF_OP_AMO_WRITE;
}

/* Operands, then what to compare with. */
static void fill(const struct wf_shm_tx *tx, uint8_t *to, uint32_t len)
{
	const struct wf_remote *remote = tx->req->remote;

	wf_op_iov_gather(tx->req->iov, tx->req->iov_count, tx->pushed, to, len);
	if (remote->amo_kind == WF_OP_AMO_COMPARE)
		wf_op_iov_gather(remote->compare, remote->compare_count,
				 tx->pushed, to + len, len);
}

static int begin(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct iovec unused[WF_OP_IOV_PARTS_MAX];
	size_t count;
	bool events;
	int err = wf_shm_remote_check(out, tx, unused, &count, &events);

	if (err)
		return err;
	if ((tx->slot_flags & WF_SHM_SLOT_ACK) && !wf_shm_out_wait(out, tx))
		return -EAGAIN;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_atomics, 1);
	return 0;
}

/* Nothing to gather for an atomic read. */
static size_t bytes_of(const struct wf_shm_tx *tx,
		       const struct wf_shm_remote_piece *piece)
{
	if (!tx->req->iov_count)
		return 0;
	return tx->req->remote->amo_kind == WF_OP_AMO_COMPARE ?
		       2 * (size_t)piece->len :
		       piece->len;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	bool begun = tx->done.seg;

	while (!tx->done.issued) {
		struct wf_shm_remote_piece piece =
			wf_shm_remote_next(tx, WF_SHM_RETURN_MAX);
		size_t bytes = bytes_of(tx, &piece);
		int buffer = 0, err;

		if (!wf_shm_out_has_room(out, wf_shm_remote_record(bytes)))
			return -EAGAIN;
		if (fetches(tx) && piece.len > 8) {
			buffer = wf_shm_remote_take_return(out, tx);
			if (buffer < 0)
				return -EAGAIN;
		}
		err = begun ? 0 : begin(out, tx);
		if (err) {
			if (fetches(tx) && piece.len > 8)
				out->returns[buffer] = NULL;
			return err;
		}
		if (tx->slot_flags & WF_SHM_SLOT_ACK)
			tx->done.outstanding++;
		wf_shm_remote_put(out, tx, &piece, WF_SHM_KIND_ATOMIC,
				  (uint8_t)buffer, bytes, fill);
		out->amo_head = out->slot_lap.head;
		tx->pushed += piece.len;
		wf_shm_remote_advance(tx, &piece);
		begun = true;
	}
	return 0;
}

const struct wf_shm_proto wf_shm_proto_atomic = {
	.name = "atomic",
	.can_send = can_send,
	.push = push,
	.whole = true,
};
