/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided: the initiator copies by itself, with one system call (or none
 * inside a process and on memory that both map), and the target need not make
 * progress. The initiator notifies the target afterwards only if the operation
 * has remote CQ data or the target counts remote accesses.
 */
#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "op/iov.h"
#include "os/poll.h"
#include "os/shared.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/proto.h"
#include "shm/put.h"
#include "shm/remote.h"

static bool can_send(const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	(void)tx;
	return out->mover.way != WF_SHM_WAY_NONE;
}

static void count(struct wf_shm_ep *ep, const struct wf_shm_tx *tx)
{
	bool write = tx->req->kind == WF_TX_WRITE;

	wf_shm_stats_add(&ep->stats,
			 write ? WF_SHM_STAT_rma_writes : WF_SHM_STAT_rma_reads,
			 1);
	wf_shm_stats_add(&ep->stats,
			 write ? WF_SHM_STAT_rma_write_bytes :
				 WF_SHM_STAT_rma_read_bytes,
			 tx->req->len);
}

static bool has_ended(const struct wf_shm_out *out)
{
	struct pollfd end = { .fd = wf_shm_link_out_fd(out),
			      .events = POLLRDHUP };

	return wf_os_poll(&end, 1, 0) > 0;
}

/* The copying failed. A process that is gone has closed its socket: the channel
 * ends when the sockets are looked at. A process whose first thread has ended
 * cannot be reached by its pid either, but its other threads read the ring. */
static int handle_failure(struct wf_shm_out *out, struct wf_shm_tx *tx, int err)
{
	if (err == EFAULT)
		return -FI_EFAULT;
	if (err == ESRCH && has_ended(out)) {
		wf_transport_host_look(out->ep->host);
		return -EAGAIN;
	}
	wf_info("CMA is refused (error %d): using the ring", err);
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_cma_refused, 1);
	wf_shm_mover_close(&out->mover);
	tx->proto = NULL; /* chosen again */
	return -EAGAIN;
}

/* Both processes map the memory, here at @at. Release: a reader that learns of
 * the operation sees its bytes. */
static void move_mapped(const struct wf_tx *req, void *at)
{
	if (req->kind == WF_TX_WRITE)
		wf_op_iov_gather(req->iov, req->iov_count, 0, at, req->len);
	else
		wf_op_iov_scatter(req->iov, req->iov_count, 0, at, req->len);
	wf_shared_fence(release);
}

static int move(struct wf_shm_out *out, struct wf_shm_tx *tx, void *mapped,
		const struct iovec *remote, size_t remote_count)
{
	const struct wf_tx *req = tx->req;
	int err = 0;

	if (mapped)
		move_mapped(req, mapped);
	else if (!req->len)
		err = 0;
	else if (req->kind == WF_TX_WRITE)
		err = wf_shm_mover_write(&out->mover, req->iov, req->iov_count,
					 remote, remote_count, req->len);
	else
		err = wf_shm_mover_read(&out->mover, req->iov, req->iov_count,
					remote, remote_count, req->len);
	if (err)
		return handle_failure(out, tx, -err);
	tx->done.moved = true;
	count(out->ep, tx);
	return 0;
}

/* Only its key matters of the memory that was touched. */
static void put_note(struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	const struct wf_remote *remote = tx->req->remote;
	const struct wf_shm_remote_piece note = {
		.key = remote->seg_count ? remote->segs[0].key : 0,
		.last = true,
	};

	wf_shm_remote_put(out, tx, &note, WF_SHM_KIND_NOTE, 0, 0, NULL);
}

static int push(struct wf_shm_out *out, struct wf_shm_tx *tx)
{
	struct iovec remote[WF_OP_IOV_PARTS_MAX];
	bool has_room = false, events = true;
	size_t remote_count = 0;
	void *mapped = NULL;
	int err;

	if (!tx->done.moved && out->windows)
		mapped = wf_shm_remote_mapped(out, tx->req, &events);
	if (!tx->done.moved && !mapped) {
		err = wf_shm_remote_check(out, tx, remote, &remote_count,
					  &events);
		if (err)
			return err;
	}
	events |= tx->slot_flags & WF_SHM_SLOT_DATA;
	if (events)
		has_room = wf_shm_out_has_room(out, 0);
	/* An injected operation is done whole or not at all. */
	if (events && !has_room && tx->req->inject)
		return -EAGAIN;
	if (!tx->done.moved) {
		err = move(out, tx, mapped, remote, remote_count);
		if (err)
			return err;
	}
	if (!events)
		return 0;
	if (!has_room)
		return -EAGAIN;
	put_note(out, tx);
	return 0;
}

const struct wf_shm_proto wf_shm_proto_onesided = {
	.name = "onesided",
	.can_send = can_send,
	.push = push,
	.whole = true,
	.synchronous = true,
};
