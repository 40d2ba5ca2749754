/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of a receiver to a sender.
 */
#include "shm/reply.h"

#include <errno.h>
#include <stdlib.h>

#include "os/shared.h"

#define ROOM_MIN 16

void wf_shm_reply_init(struct wf_shm_replies *replies,
		       struct wf_shm_region *region)
{
	*replies = (struct wf_shm_replies){ .region = region };
}

void wf_shm_reply_fini(struct wf_shm_replies *replies)
{
	free(replies->kept);
	replies->kept = NULL;
}

/* The sender has taken the page of the replies, if it is honest: an error here is
 * better than a signal. -EINVAL: the kernel cannot tell, and the sender took all of
 * the ring. */
static bool has_page(struct wf_shm_region *region)
{
	if (wf_likely(region->replies_ready))
		return true;
	region->replies_ready = wf_shm_region_grow_replies(region) != -ENOMEM;
	return region->replies_ready;
}

int wf_shm_reply_expect(struct wf_shm_replies *replies)
{
	/* A kept reply may occupy its place for longer than its operation
	 * lasts: the sender may go on sending and read no reply. */
	uint32_t need =
		replies->count + (replies->owed + 1) * WF_SHM_REPLIES_PER_OP;
	uint32_t room = replies->room ? replies->room : ROOM_MIN;
	struct wf_shm_kept_reply *kept;

	if (!has_page(replies->region))
		return -ENOMEM;
	if (need > replies->room) {
		while (room < need)
			room *= 2;
		kept = malloc(room * sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		for (uint32_t i = 0; i < replies->count; i++)
			kept[i] = replies->kept[(replies->first + i) %
						replies->room];
		free(replies->kept);
		replies->kept = kept;
		replies->room = room;
		replies->first = 0;
	}
	replies->owed++;
	return 0;
}

/* The sender's value is only compared: whatever it is, we write inside the
 * ring. */
static bool ring_has_room(struct wf_shm_replies *replies)
{
	if (replies->head - replies->seen < WF_SHM_REPLIES)
		return true;
	replies->seen =
		wf_shared_load(&replies->region->header->replies_seen, acquire);
	return replies->head - replies->seen < WF_SHM_REPLIES;
}

static void write_reply(struct wf_shm_replies *replies,
			const struct wf_shm_kept_reply *reply)
{
	struct wf_shm_reply *to =
		&replies->region->replies[replies->head % WF_SHM_REPLIES];

	to->op = reply->op;
	to->kind = reply->kind;
	to->status = reply->status;
	to->share = reply->share;
	to->len = reply->len;
	/* Pairs with the acquire in wf_shm_out_poll(). */
	wf_shared_store(&to->seq, ++replies->head, release);
}

uint32_t wf_shm_reply_send(struct wf_shm_replies *replies,
			   const struct wf_shm_kept_reply *reply)
{
	if (reply->kind == WF_SHM_REPLY_FINAL && replies->owed)
		replies->owed--;
	if (!replies->count && ring_has_room(replies)) {
		write_reply(replies, reply);
		return replies->head;
	}
	replies->kept[(replies->first + replies->count++) % replies->room] =
		*reply;
	return replies->head + replies->count;
}

void wf_shm_reply_flush(struct wf_shm_replies *replies)
{
	while (replies->count && ring_has_room(replies)) {
		write_reply(replies, &replies->kept[replies->first]);
		replies->first = (replies->first + 1) % replies->room;
		replies->count--;
	}
}

bool wf_shm_reply_was_read(struct wf_shm_replies *replies, uint32_t place)
{
	if ((int32_t)(replies->seen - place) >= 0)
		return true;
	replies->seen =
		wf_shared_load(&replies->region->header->replies_seen, acquire);
	return (int32_t)(replies->seen - place) >= 0;
}
