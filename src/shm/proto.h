/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocols: how a message that did not take the fast path gets into the ring.
 * One file and one table each; the registry is tried in order.
 */
#ifndef WF_SHM_PROTO_H
#define WF_SHM_PROTO_H

#include "shm/out.h"
#include "shm/remote.h"
#include "shm/tx.h"

/* All are called under the endpoint's lock, on an open channel; none blocks.
 */
struct wf_shm_proto {
	const char *name;
	/* Whether this protocol carries @tx. */
	bool (*can_send)(const struct wf_shm_out *out,
			 const struct wf_shm_tx *tx);
	/* Writes as much as there is room for. 0 when the whole message is
	 * written, -EAGAIN to be called again, other -errno: give up. Owns
	 * nothing; the bytes that it has written are counted in tx->pushed. */
	int (*push)(struct wf_shm_out *out, struct wf_shm_tx *tx);
	/* The message is over only with the receiver's final reply. */
	bool parks;
	/* One push does all of it or nothing, in one piece of remote memory. */
	bool whole;
	/* When it is done, it is delivered: no acknowledgement is needed. */
	bool synchronous;
};

extern const struct wf_shm_proto wf_shm_proto_inline;
extern const struct wf_shm_proto wf_shm_proto_eager;
extern const struct wf_shm_proto wf_shm_proto_chunked;
extern const struct wf_shm_proto wf_shm_proto_parked;
extern const struct wf_shm_proto wf_shm_proto_onesided;
extern const struct wf_shm_proto wf_shm_proto_write;
extern const struct wf_shm_proto wf_shm_proto_read;
extern const struct wf_shm_proto wf_shm_proto_atomic;
extern const struct wf_shm_proto wf_shm_proto_direct;

/* Sets the sizes up to which messages take the ring. */
void wf_shm_proto_set_limits(struct wf_shm_out *out);

/* Before a message of more than WF_SHM_PUT_MAX bytes: the receiver decides which
 * way it takes (pace.h). */
void wf_shm_proto_choose_way(struct wf_shm_out *out, const struct wf_tx *req);

/* The first that can, or NULL. Tries CMA if a protocol may use it. */
const struct wf_shm_proto *wf_shm_proto_choose(struct wf_shm_out *out,
					       const struct wf_shm_tx *tx);

static inline bool wf_shm_proto_waits(const struct wf_shm_tx *tx)
{
	return tx->proto->parks ||
	       (!tx->proto->synchronous && (tx->slot_flags & WF_SHM_SLOT_ACK));
}

/* Whether @tx can be tried without being kept. */
static inline bool wf_shm_proto_is_whole(const struct wf_shm_tx *tx)
{
	return tx->proto->whole && !wf_shm_proto_waits(tx) &&
	       (!tx->req->remote || tx->req->remote->seg_count <= 1);
}

#endif
