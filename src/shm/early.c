/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message in a ring that the peer does not have yet.
 */
#include "shm/early.h"

#include <errno.h>

#include "base/clock.h"
#include "shm/conn.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/put.h"
#include "shm/region.h"
#include "shm/stats.h"
#include "shm/trace.h"

bool wf_shm_early_may(const struct wf_shm_tx *tx)
{
	return tx->bounce && !tx->req->remote && !tx->req->fence &&
	       !(tx->slot_flags & WF_SHM_SLOT_ACK) &&
	       tx->req->len <= WF_SHM_PUT_MAX;
}

static void write_first(struct wf_shm_out *out)
{
	struct wf_shm_tx *tx;
	uint32_t lines;
	bool inlined;
	int err;

	if (wf_base_list_empty(&out->pending))
		return;
	tx = wf_container_of(out->pending.next, struct wf_shm_tx, link);
	if (!wf_shm_early_may(tx))
		return;
	inlined = tx->req->len <= WF_SHM_INLINE_MAX;
	lines = inlined ? 0 : wf_shm_put_lines(tx->req->len);
	if (wf_shm_region_grow_lines(&out->region, lines))
		return;
	out->slots_free = 1;
	out->lines_free = lines;
	tx->proto = inlined ? &wf_shm_proto_inline : &wf_shm_proto_eager;
	err = tx->proto->push(out, tx);
	tx->proto = NULL; /* chosen anew if it has to wait for the answer */
	out->slots_free = 0;
	out->lines_free = 0;
	if (!err)
		out->early = tx;
}

void wf_shm_early_begin(struct wf_shm_out *out)
{
	wf_shm_stats_count_out(out); /* of the ring before this one */
	out->counted = 0;
	out->slots = out->region.slots;
	out->data = out->region.data;
	wf_shm_trace_ring(out);
	wf_shm_lap_init(&out->slot_lap, out->region.slot_count);
	wf_shm_lap_init(&out->line_lap, out->region.line_count);
	write_first(out);
}

void wf_shm_early_end(struct wf_shm_out *out)
{
	if (!out->early)
		return;
	wf_base_list_del(&out->early->link);
	wf_shm_tx_complete(out->ep, out->early);
	wf_shm_tx_release(out->ep, out->early);
	out->early = NULL;
}

int wf_shm_early_inject(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	struct wf_shm_tx *kept;

	/* Tried before, or being tried: the answer opens the channel. */
	if (out->state != WF_SHM_OUT_CONNECTING || out->retry_at)
		return -EAGAIN;
	kept = wf_shm_tx_keep(out->ep, tx);
	if (kept) {
		wf_base_list_init(&kept->link);
		if (wf_shm_tx_copy_buffers(kept))
			wf_shm_out_enqueue(out, kept);
	}
	wf_shm_conn_try(out, wf_base_clock_ns());
	if (out->early)
		return 0;
	if (kept) {
		wf_base_list_del(&kept->link);
		wf_base_list_del(&out->pending_link);
		wf_shm_tx_release(out->ep, kept);
	}
	return -EAGAIN;
}
