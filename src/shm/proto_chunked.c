/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunked: the message in several records, so that both sides copy at the same
 * time. Records of one message follow each other in the ring.
 */
#include <errno.h>

#include "base/clock.h"
#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return tx->req->len <= out->eager_max;
}

/* Copies a record into the ring, and clocks some. */
static void copy(struct wf_shm_out *out, const struct wf_shm_tx *tx,
		 size_t part)
{
	const struct wf_tx *req = tx->req;
	uint8_t *to = wf_shm_put_record(out, part);
	bool is_due = out->learns && wf_shm_pace_is_due(&out->pace, part);
	uint64_t begin = is_due ? wf_base_clock_ns() : 0;

	wf_op_iov_gather(req->iov, req->iov_count, tx->pushed, to, part);
	if (is_due)
		wf_shm_pace_note(&out->pace, wf_base_clock_ns() - begin, part);
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	while (tx->pushed < tx->req->len) {
		bool first = !tx->pushed;
		size_t part = tx->req->len - tx->pushed;
		struct wf_shm_slot *slot;

		if (part > out->chunk)
			part = out->chunk;
		if (!wf_shm_out_has_room(out, part))
			return -EAGAIN;
		if (first && (tx->slot_flags & WF_SHM_SLOT_ACK) &&
		    !wf_shm_out_wait(out, tx))
			return -EAGAIN;
		if (first)
			wf_shm_stats_add(&out->ep->stats,
					 WF_SHM_STAT_sent_chunked, 1);
		wf_shm_stats_add(&out->ep->stats,
				 WF_SHM_STAT_sent_chunked_bytes, part);
		slot = wf_shm_put_slot(out);
		copy(out, tx, part);
		slot->tag = tx->req->tag;
		slot->data = tx->req->data;
		slot->eager = (struct wf_shm_eager){
			.total = tx->req->len,
			.op = tx->op,
		};
		wf_shm_put_publish(out, slot, part,
				   first ? WF_SHM_KIND_FIRST : WF_SHM_KIND_NEXT,
				   (first ? tx->slot_flags : 0) |
					   wf_shm_put_turn(out));
		tx->pushed += part;
	}
	return 0;
}

const struct wf_shm_proto wf_shm_proto_chunked = {
	.name = "chunked",
	.can_send = can_send,
	.push = push,
};
