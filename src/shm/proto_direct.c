/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct: atomics on memory that both processes map (window.h), by the
 * instructions that the target would use, without involving it. Only where
 * these are atomic against other processes: elements of up to 8 bytes,
 * naturally aligned (op/amo.h). If the target counts accesses, it runs them
 * instead.
 */
#include <errno.h>

#include "op/amo.h"
#include "os/shared.h"
#include "shm/ep.h"
#include "shm/proto.h"
#include "shm/remote.h"

#define WORD_MAX 8

/* Atomics are in order: those in the ring come first. The receiver's word is not
 * checked, for nothing else depends on it. */
static bool are_run(const struct wf_shm_out *out)
{
	uint64_t credit = wf_shared_load(&out->region.header->credit, acquire);

	return (int32_t)((uint32_t)credit - out->amo_head) >= 0;
}

static bool is_whole(const struct wf_tx *req)
{
	const struct wf_remote *remote = req->remote;

	return req->iov_count <= 1 && remote->result_count <= 1 &&
	       remote->compare_count <= 1;
}

/* Where the operation takes place, or NULL. */
static void *place(const struct wf_shm_out *out, const struct wf_tx *req)
{
	size_t size = wf_op_amo_size(req->remote->amo_type);
	bool events = false;
	void *at;

	if (size > WORD_MAX || !is_whole(req) || !are_run(out))
		return NULL;
	at = wf_shm_remote_mapped(out, req, &events);
	return at && !events && !((uintptr_t)at % size) ? at : NULL;
}

/* A vector that is not used is not set. */
static void *first(const struct iovec *iov, uint32_t count)
{
	return count ? iov[0].iov_base : NULL;
}

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	return out->windows && place(out, tx->req);
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	const struct wf_tx *req = tx->req;
	const struct wf_remote *remote = req->remote;
	void *at = place(out, req);

	if (!at) {
		tx->proto = NULL; /* chosen again */
		return -EAGAIN;
	}
	wf_op_amo_run((enum wf_op_amo_kind)remote->amo_kind, remote->amo_op,
		      remote->amo_type, at, first(req->iov, req->iov_count),
		      first(remote->compare, remote->compare_count),
		      first(remote->result, remote->result_count),
		      req->len / wf_op_amo_size(remote->amo_type));
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_atomics, 1);
	return 0;
}

const struct wf_shm_proto wf_shm_proto_direct = {
	.name = "direct",
	.can_send = can_send,
	.push = push,
	.whole = true,
	.synchronous = true,
};
