/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parked messages at the receiver. When a message is matched, its bytes are
 * fetched by the first way that works: the receiver reads the sender's memory,
 * or both sides copy (share.h), or the sender writes them into the ring.
 */
#ifndef WF_SHM_PULL_H
#define WF_SHM_PULL_H

#include "shm/in.h"

enum wf_shm_pull_state {
	WF_SHM_PULL_UNMATCHED,
	WF_SHM_PULL_ALONE,
	WF_SHM_PULL_SHARED,
	WF_SHM_PULL_STREAMED,
};

struct wf_shm_pull {
	struct wf_ux ux;
	struct wf_list busy;  /* in in->busy while it needs progress */
	struct wf_shm_in *in; /* NULL once the channel is gone */
	struct wf_rx *rx;
	uint32_t op;
	uint32_t share; /* SHARED */
	bool has_share;
	enum wf_shm_pull_state state;
	size_t want;	  /* bytes that fit the receive */
	size_t have;	  /* STREAMED: bytes that arrived */
	size_t chunk;	  /* SHARED */
	uint32_t done;	  /* SHARED: chunks we copied */
	bool claims_over; /* SHARED: no chunk is left */
	int failed;	  /* SHARED: errno of our copying */
	uint32_t theirs;  /* SHARED, failed: chunks the sender had claimed */
	uint32_t stamp;	  /* when it was sent; 0: not said, or it waited */
	uint64_t since;	  /* first seen by waits.c, ns; 0: not yet */
	uint32_t iov_count;
	struct iovec iov[WF_SHM_SHARE_IOV]; /* in the sender */
};

/* A description arrived. 0, -EAGAIN without memory, -EPROTO. */
int wf_shm_pull_arrive(struct wf_shm_in *in, const struct wf_shm_parked *parked,
		       const struct wf_shm_part *parts, uint8_t flags,
		       uint64_t tag, uint64_t data);

/* Reads the messages of a burst that were collected. None is left when
 * wf_shm_in_poll() returns. */
void wf_shm_pull_flush(struct wf_shm_in *in);

/* A piece of a stream arrived. 0 or -EPROTO. */
int wf_shm_pull_stream(struct wf_shm_in *in, const struct wf_shm_stream *stream,
		       const uint8_t *bytes, size_t len);

/* A message of @len bytes is complete that could have come by another way:
 * compares the ways (pace.h). @stamp says when it was sent, 0 if it had to wait
 * for its receive. */
void wf_shm_pull_paced(struct wf_shm_in *in, size_t len,
		       enum wf_shm_pace_way way, uint32_t stamp);

/* As wf_shm_pull_paced(), for a message in one record that found its receive at
 * once. @flags are those of its slot. */
void wf_shm_pull_paced_eager(struct wf_shm_in *in,
			     const struct wf_shm_slot *slot, uint8_t flags,
			     size_t len);

/* Goes on with a shared pull. */
void wf_shm_pull_progress(struct wf_shm_pull *pull);

/* The channel is gone. */
void wf_shm_pull_orphan(struct wf_shm_pull *pull, int err);

#endif
