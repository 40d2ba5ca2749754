/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of ours (op/tx.h) on its way through a channel: its progress,
 * its state while it waits, and what it reports when it ends.
 */
#ifndef WF_SHM_TX_H
#define WF_SHM_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "op/amo.h"
#include "op/remote.h"
#include "op/tx.h"
#include "os/types.h"
#include "shm/ring_defs.h"

struct wf_shm_ep;
struct wf_shm_proto;

/* A share as the receiver described it, copied once and checked. */
struct wf_shm_help {
	uint64_t chunk;
	uint64_t len;
	uint32_t iov_count;
	struct iovec iov[WF_SHM_SHARE_IOV];
};

/* How far an operation on remote memory is. Replies come in the order of the
 * pieces. */
struct wf_shm_done {
	uint32_t seg;	      /* the next piece is in this segment ... */
	uint32_t outstanding; /* pieces that wait for a reply */
	uint64_t seg_done;    /* ... from here on */
	uint64_t answered;    /* bytes that came back */
	int status;	      /* of a piece that failed */
	bool issued;	      /* no further piece */
	bool moved;	      /* onesided: only the note is left */
};

/* An operation on its way out. On the stack while it is tried, from the pool
 * (hard limit: the transmit depth) when it has to wait. */
struct wf_shm_tx {
	struct wf_list link;
	const struct wf_tx *req; /* the caller's, or own once it is kept */
	const struct wf_shm_proto *proto;
	size_t pushed; /* bytes already in the ring */
	uint32_t op;   /* name in replies, see wf_shm_out_wait() */
	uint8_t slot_flags;
	bool stream;   /* pushes what the receiver asked for */
	void *bounce;  /* our copy of an injected message that had to wait */
	void *fetched; /* of word.c, which has no req->remote: result, 8 bytes */
	struct wf_shm_done done;
	/* These members are not set before they are used. */
	struct wf_tx own;
	uint64_t since; /* kept: first seen by waits.c, ns; 0: not yet */
	struct wf_shm_help help;
};

/* An operation that brings something back is always answered, whether or not an
 * acknowledgement was asked for. */
static inline bool wf_shm_tx_is_answered(const struct wf_tx *req)
{
	return req->delivery || (req->kind == WF_TX_ATOMIC &&
				 req->remote->amo_kind != WF_OP_AMO_WRITE);
}

/* Prepares @tx for its first try. Sets each member by itself: for memset() the
 * compiler takes `rep stos`, which is slow for so few bytes. */
static inline void wf_shm_tx_init(struct wf_shm_tx *tx, const struct wf_tx *req)
{
	tx->link = (struct wf_list){ 0 };
	tx->req = req;
	tx->proto = NULL;
	tx->pushed = 0;
	tx->op = 0;
	tx->slot_flags =
		(uint8_t)((req->tagged ? WF_SHM_SLOT_TAGGED : 0) |
			  (req->has_data ? WF_SHM_SLOT_DATA : 0) |
			  (wf_shm_tx_is_answered(req) ? WF_SHM_SLOT_ACK : 0));
	tx->stream = false;
	tx->bounce = NULL;
	tx->fetched = NULL;
	tx->done = (struct wf_shm_done){ 0 };
}

/* A copy that lives until its completion; NULL at the transmit depth. */
struct wf_shm_tx *wf_shm_tx_keep(struct wf_shm_ep *ep,
				 const struct wf_shm_tx *tx);

/* Copies the buffers of a kept operation, so that the caller gets them back.
 * False without memory. */
bool wf_shm_tx_copy_buffers(struct wf_shm_tx *kept);

void wf_shm_tx_release(struct wf_shm_ep *ep, struct wf_shm_tx *kept);

/* Report the end of an operation. @err is a positive errno. */
void wf_shm_tx_complete(struct wf_shm_ep *ep, const struct wf_shm_tx *tx);
void wf_shm_tx_fail(struct wf_shm_ep *ep, const struct wf_shm_tx *tx, int err);

#endif
