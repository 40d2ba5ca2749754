/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of a receiver to a sender. They are written into the channel's reply
 * ring, or kept here in order while the ring is full. Memory for a reply is
 * reserved when the message arrives that needs it, so that no reply is lost.
 */
#ifndef WF_SHM_REPLY_H
#define WF_SHM_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/region.h"

struct wf_shm_kept_reply {
	uint32_t op;
	uint32_t kind;
	int32_t status;
	uint32_t share;
	uint64_t len;
};

struct wf_shm_replies {
	struct wf_shm_region *region;
	struct wf_shm_kept_reply *kept; /* a ring of its own */
	uint32_t room;
	uint32_t first;
	uint32_t count;
	uint32_t owed; /* operations whose final reply is still to come */
	uint32_t head; /* replies written, free-running */
	uint32_t seen; /* replies the sender had read when we last looked */
};

void wf_shm_reply_init(struct wf_shm_replies *replies,
		       struct wf_shm_region *region);
void wf_shm_reply_fini(struct wf_shm_replies *replies);

/* An operation arrived that will be replied to. 0 or -ENOMEM. */
int wf_shm_reply_expect(struct wf_shm_replies *replies);

/* Gets the place of the next reply into our cache. */
static inline __attribute__((always_inline)) void
wf_shm_reply_prefetch(const struct wf_shm_replies *replies)
{
	__builtin_prefetch(
		&replies->region->replies[replies->head % WF_SHM_REPLIES], 1);
}

/* Sends or keeps a reply. Returns its place among all replies of the channel,
 * for wf_shm_reply_was_read(). */
uint32_t wf_shm_reply_send(struct wf_shm_replies *replies,
			   const struct wf_shm_kept_reply *reply);

/* Writes kept replies as far as there is room. */
void wf_shm_reply_flush(struct wf_shm_replies *replies);

/* Whether the sender has dealt with the reply at @place. */
bool wf_shm_reply_was_read(struct wf_shm_replies *replies, uint32_t place);

#endif
