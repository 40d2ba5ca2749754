/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parked: the payload stays in the sender's buffer until the message is
 * matched; only its description goes through the ring. The receiver decides how
 * the bytes are copied (pull.h): it reads them, asks the sender to copy a part,
 * or asks for them through the ring. In the last case push() is called again
 * for the stream.
 */
#include <errno.h>

#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"

/* Bytes of a stream per turn, so that messages behind it move too. */
#define STREAM_TURN 32768

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)out;
	(void)tx;
	return true;
}

static int push_stream(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct wf_stats *stats = &out->ep->stats;
	size_t turn = 0;

	while (tx->pushed < tx->help.len) {
		size_t part = tx->help.len - tx->pushed;
		struct wf_shm_slot *slot;

		if (part > out->chunk)
			part = out->chunk;
		if (turn >= STREAM_TURN || !wf_shm_out_has_room(out, part))
			return -EAGAIN;
		if (!tx->pushed)
			wf_shm_stats_add(stats, WF_SHM_STAT_sent_stream, 1);
		wf_shm_stats_add(stats, WF_SHM_STAT_sent_stream_bytes, part);
		slot = wf_shm_put_slot(out);
		wf_op_iov_gather(tx->req->iov, tx->req->iov_count, tx->pushed,
				 wf_shm_put_record(out, part), part);
		slot->tag = 0;
		slot->data = 0;
		slot->stream = (struct wf_shm_stream){
			.offset = tx->pushed,
			.op = tx->op,
		};
		wf_shm_put_publish(out, slot, part, WF_SHM_KIND_STREAM,
				   wf_shm_put_turn(out));
		tx->pushed += part;
		turn += part;
	}
	return 0;
}

static int push_description(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	size_t bytes = 0;
	struct wf_shm_slot *slot;

	if (tx->req->iov_count > 1)
		bytes = tx->req->iov_count * sizeof(struct wf_shm_part);
	if (!wf_shm_out_has_room(out, bytes) || !wf_shm_out_has_shares(out) ||
	    !wf_shm_out_wait(out, tx))
		return -EAGAIN;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_sent_parked, 1);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_sent_parked_bytes,
			 tx->req->len);
	slot = wf_shm_put_slot(out);
	if (bytes) {
		struct wf_shm_part *parts =
			(void *)wf_shm_put_record(out, bytes);

		for (uint32_t i = 0; i < tx->req->iov_count; i++) {
			parts[i].addr =
				(uint64_t)(uintptr_t)tx->req->iov[i].iov_base;
			parts[i].len = tx->req->iov[i].iov_len;
		}
	}
	slot->tag = tx->req->tag;
	slot->data = tx->req->data;
	slot->parked = (struct wf_shm_parked){
		.total = tx->req->len,
		.op = tx->op,
		.iov_count = tx->req->iov_count,
		.addr = (uint64_t)(uintptr_t)tx->req->iov[0].iov_base,
		.stamp = wf_shm_out_stamp(out),
	};
	wf_shm_put_publish(out, slot, bytes, WF_SHM_KIND_PARKED,
			   tx->slot_flags | wf_shm_put_turn(out));
	return 0;
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	return tx->stream ? push_stream(out, tx) : push_description(out, tx);
}

const struct wf_shm_proto wf_shm_proto_parked = {
	.name = "parked",
	.can_send = can_send,
	.push = push,
	.parks = true,
};
