/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on the memory of a peer, at their initiator: what the protocols
 * for them (proto_onesided.c, proto_write.c, proto_read.c, proto_atomic.c) have
 * in common. Keys are checked here against the peer's registrations, so that a
 * wrong one is known without asking; a peer that is asked checks again.
 */
#ifndef WF_SHM_REMOTE_H
#define WF_SHM_REMOTE_H

#include <string.h>

#include "op/amo.h"
#include "shm/out.h"

enum wf_shm_remote_kind {
	WF_SHM_REMOTE_WRITE,
	WF_SHM_REMOTE_READ,
	WF_SHM_REMOTE_ATOMIC,
};

struct wf_shm_remote_seg {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/* Beside the wf_shm_tx, whose vector is the local buffer: the source of a write
 * or of operands, where a read goes. */
struct wf_shm_remote {
	enum wf_shm_remote_kind kind;
	uint32_t seg_count;

	/* ATOMIC */
	uint8_t amo_kind; /* enum wf_op_amo_kind */
	uint8_t amo_op;
	uint8_t amo_type;
	uint32_t compare_count;
	uint32_t result_count;

	/* How far it is. Replies come in the order of the pieces. */
	uint32_t seg;	      /* the next piece is in this segment ... */
	uint64_t seg_done;    /* ... from here on */
	uint64_t answered;    /* bytes that came back */
	uint32_t outstanding; /* pieces that wait for a reply */
	bool issued;	      /* no further piece */
	bool moved;	      /* onesided: only the note is left */
	int status;	      /* of a piece that failed */

	/* As many as are counted above are set. */
	struct wf_shm_remote_seg segs[WF_OP_IOV_MAX];
	struct iovec compare[WF_OP_IOV_MAX];
	struct iovec result[WF_OP_IOV_MAX];
};

/* Zeroes all but the vectors, which are most of it. */
static inline void wf_shm_remote_init(struct wf_shm_remote *remote,
				      enum wf_shm_remote_kind kind)
{
	memset(remote, 0, offsetof(struct wf_shm_remote, segs));
	remote->kind = kind;
}

static inline void wf_shm_remote_copy(struct wf_shm_remote *to,
				      const struct wf_shm_remote *from)
{
	memcpy(to, from, offsetof(struct wf_shm_remote, segs));
	for (uint32_t i = 0; i < from->seg_count; i++)
		to->segs[i] = from->segs[i];
	for (uint32_t i = 0; i < from->compare_count; i++)
		to->compare[i] = from->compare[i];
	for (uint32_t i = 0; i < from->result_count; i++)
		to->result[i] = from->result[i];
}

/* A piece of the operation as one slot carries it. */
struct wf_shm_remote_piece {
	uint64_t addr;
	uint64_t key;
	uint32_t len;
	bool last;
};

/* The next piece, of at most @max bytes. */
struct wf_shm_remote_piece
wf_shm_remote_next(const struct wf_shm_remote *remote, uint32_t max);

/* It was issued. */
void wf_shm_remote_advance(struct wf_shm_remote *remote,
			   const struct wf_shm_remote_piece *piece);

/* Checks every segment. *@events: somebody there wants to hear of it. 0,
 * -FI_EKEYREJECTED, -EAGAIN. @to has room for WF_OP_IOV_PARTS_MAX. */
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

/* A reply to a piece of @tx. False when it makes no sense. */
bool wf_shm_remote_reply(struct wf_shm_out *out, struct wf_shm_tx *tx,
			 const struct wf_shm_reply *reply);

#endif
