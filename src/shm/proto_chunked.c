/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunked: the message in several records, so that both sides copy at the same
 * time. Records of one message follow each other in the ring.
 */
#include <errno.h>

#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return tx->req->len <= out->eager_max;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	while (tx->pushed < tx->req->len) {
		bool first = !tx->pushed;
		size_t part = tx->req->len - tx->pushed;
		struct wf_shm_slot *slot;
		uint32_t stamp = 0;

		if (part > out->chunk)
			part = out->chunk;
		if (!wf_shm_out_has_room(out, part))
			return -EAGAIN;
		if (first && (tx->slot_flags & WF_SHM_SLOT_ACK) &&
		    !wf_shm_out_wait(out, tx))
			return -EAGAIN;
		if (first) {
			stamp = wf_shm_out_stamp(out);
			wf_shm_stats_add(&out->ep->stats,
					 WF_SHM_STAT_sent_chunked, 1);
		}
		wf_shm_stats_add(&out->ep->stats,
				 WF_SHM_STAT_sent_chunked_bytes, part);
		slot = wf_shm_put_slot(out);
		wf_shm_put_bytes(wf_shm_put_record(out, part), tx->req->iov,
				 tx->req->iov_count, tx->pushed, part,
				 out->around);
		slot->tag = tx->req->tag;
		slot->data = tx->req->data;
		slot->eager = (struct wf_shm_eager){
			.total = tx->req->len,
			.op = tx->op,
			.stamp = stamp,
		};
		wf_shm_put_publish(
			out, slot, part,
			first ? WF_SHM_KIND_FIRST : WF_SHM_KIND_NEXT,
			(first ? tx->slot_flags : 0) |
				(out->around ? WF_SHM_SLOT_AROUND : 0) |
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
