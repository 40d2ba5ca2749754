/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunked: the message in several records, so that both sides copy at the same
 * time. Records of one message follow each other in the ring.
 *
 * From which size on one copy and a system call (parked) are faster depends on
 * how far the two processors are apart, which nobody knows before they talk. So
 * the sender looks at the clock around each whole record that it copies: its
 * lines come from the receiver's cache, and go back there. A channel that parks what it could send in records sends
 * a message in records now and then, to learn whether that is still right.
 */
#include <errno.h>

#include "base/clock.h"
#include "op/iov.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return tx->req->len <= out->eager_max ||
	       (tx->req->len <= out->learn_max &&
		out->untried >= WF_SHM_PROTO_TRIAL);
}

/* The receiver copies the last record while the sender has nothing to do: it is a
 * short one. Shorter ones cost more than they gain. */
#define TAIL 1024

/* What a parked message takes beyond a call of CMA and what records take beyond
 * their copies: its description, the reply, and the lines that carry them. The
 * lines take as long as 1.2 records. The receiver takes longer than we to copy a
 * record, because it waits for each line: 1.8 times as long in all. Records may
 * take a fifth longer than CMA, because they overlap with the next message
 * (docs/performance.md). */
#define PARKED_NS 600
#define PARKED_RECORDS 6 / 5
#define RECEIVE 9 / 5
#define OVERLAP 6 / 5

size_t wf_shm_proto_ring_max(uint64_t chunk_ns, uint64_t call_ns, size_t chunk,
			     size_t most)
{
	uint64_t parked_ns = call_ns + PARKED_NS + chunk_ns * PARKED_RECORDS;
	uint64_t record_ns = chunk_ns * RECEIVE + 1;
	uint64_t max = parked_ns * OVERLAP * chunk / record_ns;

	max = max > TAIL + chunk ? max - TAIL : chunk;
	return max < most ? max : most;
}

/* Bytes of the next record. */
static size_t part_of(const struct wf_shm_out *out, size_t left)
{
	if (left > out->chunk)
		return out->chunk;
	return left > 2 * TAIL ? left - TAIL : left;
}

/* The best of late: what is longer was interrupted, or the processors are
 * further apart than they were. */
static void learn(struct wf_shm_out *out, uint64_t took)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	uint64_t slower = out->chunk_ns + out->chunk_ns / 16 + 1;

	out->chunk_ns = !out->chunk_ns || took < slower ? took + 1 : slower;
	out->eager_max = wf_shm_proto_ring_max(out->chunk_ns, attr->cma_call_ns,
					       out->chunk, out->learn_max);
}

static void copy(struct wf_shm_out *out, const struct wf_shm_tx *tx, size_t len)
{
	bool learns = len == out->chunk && out->ep->attr.cma_call_ns &&
		      out->mover.way == WF_SHM_WAY_CMA;
	uint64_t begin = learns ? wf_base_clock_ns() : 0;

	wf_op_iov_gather(tx->req->iov, tx->req->iov_count, tx->pushed,
			 wf_shm_put_record(out, len), len);
	if (learns)
		learn(out, wf_base_clock_ns() - begin);
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	while (tx->pushed < tx->req->len) {
		bool first = !tx->pushed;
		size_t part = part_of(out, tx->req->len - tx->pushed);
		struct wf_shm_slot *slot;

		if (!wf_shm_out_has_room(out, part))
			return -EAGAIN;
		if (first && (tx->slot_flags & WF_SHM_SLOT_ACK) &&
		    !wf_shm_out_wait(out, tx))
			return -EAGAIN;
		if (first) {
			out->untried = 0;
			wf_shm_stats_add(&out->ep->stats,
					 WF_SHM_STAT_sent_chunked, 1);
		}
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
