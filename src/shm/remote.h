/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on the memory of a peer, at their initiator: what the protocols
 * for them (proto_onesided.c, proto_write.c, proto_read.c, proto_atomic.c) have
 * in common. Keys are checked here against the peer's registrations, so that a
 * wrong one is known without asking; a peer that is asked checks again.
 */
#ifndef WF_SHM_REMOTE_H
#define WF_SHM_REMOTE_H

#include "op/amo.h"
#include "shm/out.h"
#include "shm/tx.h"

/* A piece of the operation as one slot carries it. */
struct wf_shm_remote_piece {
	uint64_t addr;
	uint64_t key;
	uint32_t len;
	bool last;
};

/* The next piece, of at most @max bytes. */
struct wf_shm_remote_piece wf_shm_remote_next(const struct wf_shm_tx *tx,
					      uint32_t max);

/* @piece was issued: the next one begins behind it. */
void wf_shm_remote_advance(struct wf_shm_tx *tx,
			   const struct wf_shm_remote_piece *piece);

/* How the operation accesses memory: FI_REMOTE_READ, FI_REMOTE_WRITE. */
uint64_t wf_shm_remote_access(const struct wf_tx *req);

/* Where the memory of an operation on one segment is mapped here, or NULL.
 * *@events as below. */
void *wf_shm_remote_mapped(const struct wf_shm_out *out,
			   const struct wf_tx *req, bool *events);

/* Checks every segment. *@events: the target wants to be notified. 0,
 * -FI_EKEYREJECTED, -EAGAIN, -FI_ENOMEM, or -EPROTO: the channel has ended.
 * @to has room for WF_OP_IOV_PARTS_MAX. */
int wf_shm_remote_check(struct wf_shm_out *out, const struct wf_shm_tx *tx,
			struct iovec *to, size_t *count, bool *events);

/* Writes one slot for @piece; the caller has made sure of room for it: a record
 * of wf_shm_remote_record() bytes. @fill writes the bytes that go with it. */
size_t wf_shm_remote_record(size_t bytes);
void wf_shm_remote_put(struct wf_shm_out *out, const struct wf_shm_tx *tx,
		       const struct wf_shm_remote_piece *piece,
		       enum wf_shm_kind kind, uint8_t buffer, size_t bytes,
		       void (*fill)(const struct wf_shm_tx *tx, uint8_t *to,
				    uint32_t len));

/* A return buffer for @tx, or -1. */
int wf_shm_remote_take_return(struct wf_shm_out *out, struct wf_shm_tx *tx);

/* A reply to a piece of @tx. False if it is invalid. */
bool wf_shm_remote_reply(struct wf_shm_out *out, struct wf_shm_tx *tx,
			 const struct wf_shm_reply *reply);

#endif
