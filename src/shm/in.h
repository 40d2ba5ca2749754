/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end of a channel. The sender can change everything in the
 * region at any time, and it may be wrong: words are copied once, then checked;
 * positions are our own counts.
 */
#ifndef WF_SHM_IN_H
#define WF_SHM_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/list.h"
#include "match/rxq.h"
#include "os/shared.h"
#include "shm/mover.h"
#include "shm/pace.h"
#include "shm/region.h"
#include "shm/reply.h"
#include "transport/loop.h"
#include "base/table.h"

struct wf_shm_ep;
struct wf_shm_offer;
struct wf_shm_out;
struct wf_shm_pull;
struct wf_shm_parcel;

/* The message whose records are arriving: they follow each other, so there is
 * one per channel. */
struct wf_shm_assembly {
	struct wf_envelope env;
	size_t have;
	uint64_t since; /* first seen by waits.c, ns; 0: not yet */
	uint32_t op;
	uint32_t stamp; /* when it was sent (pace.h), ... */
	uint8_t way;	/* ... and how */
	bool ack;
	struct wf_rx *rx;	      /* goes straight to the user, or ... */
	struct wf_shm_parcel *parcel; /* ... waits for a receive */
};

/* Parked messages of a burst that are read in one system call. */
#define WF_SHM_IN_BATCH 8

struct wf_shm_in {
	uint32_t next;	   /* slots consumed, free-running */
	uint32_t slot_pos; /* place of the next one */
	uint32_t line_pos; /* place of the next record */
	uint32_t slot_count;
	const struct wf_shm_slot *slots;
	const uint8_t *data;
	uint32_t expect_lines;	 /* of the next message, for prefetching */
	bool expect_pair;	 /* ... or the second line of its slot */
	uint32_t lines;		 /* consumed, free-running */
	uint32_t credited;	 /* slots and ... */
	uint32_t credited_lines; /* ... lines returned so far */
	uint32_t line_count;
	uint32_t credit_slots; /* how many make a batch of credit */
	uint32_t credit_lines;
	bool broken;	      /* the peer broke the rules or is gone */
	bool ended;	      /* the peer closed; what it wrote still counts */
	bool watched;	      /* looked at by every poll */
	bool is_busy;	      /* in ep->busy_ins */
	uint64_t src;	      /* fi_addr_t, WF_MATCH_ANY when unknown */
	uint64_t bytes;	      /* of inline messages since they were counted */
	uint64_t eager_bytes; /* of messages in one record, ... */
	uint32_t eager;	      /* ... their number, ... */
	uint32_t parts;	      /* ... and slots that are no whole message */

	struct wf_rxq *rxq;
	struct wf_shm_ep *ep;
	struct wf_source sock;
	struct wf_shm_out *twin;    /* has the same socket, see link.h */
	struct wf_shm_offer *offer; /* of the sender (offer.h), or NULL */
	uint32_t number;	    /* the channel's, in notes */
	uint32_t asked_for; /* asked: the channel that shall be our twin */
	bool asked;
	bool told;    /* we have told the peer that we end */
	bool unwoken; /* the sender sleeps, and could not be woken */
	struct wf_shm_region region;
	struct wf_shm_mover mover;
	struct wf_addr addr; /* AF_UNSPEC: a stranger */
	struct wf_shm_replies replies;
	/* Only watch.c uses these, and ->watched. */
	uint32_t place;		   /* among all rings of the endpoint */
	uint32_t bell;		   /* its number on our board */
	uint32_t seen;		   /* turn of the last message */
	uint64_t again_at;	   /* when to look again, ns; 0: not set yet */
	struct wf_list again_link; /* in the look-again list */

	uint32_t counted;  /* slots in the statistics */
	int remote_status; /* errno of the operation on memory that arrives */
	struct wf_list busy_link; /* in ep->busy_ins */
	uint32_t features;	  /* that both sides have */
	uint32_t shares_used;	  /* bit set = in use */
	uint32_t alone;		  /* messages to read without help (pull.c) */
	bool burst;		  /* another parked message is there already */
	uint32_t batch_count;
	size_t batch_bytes;
	struct wf_shm_pull *batch[WF_SHM_IN_BATCH]; /* read in one call */
	uint32_t share_ended[WF_SHM_SHARES]; /* place of the final reply */
	struct wf_shm_assembly assembly;
	struct wf_shm_pace pace;
	struct wf_list parcels; /* messages of this peer without a receive */
	struct wf_list busy;	/* pulls that go on in progress */
	struct wf_table pulls;	/* by the sender's number */
	struct wf_shm_pull *spare_pull; /* one that was freed, or NULL */
	uint32_t trace_next;		/* slots that were recorded as taken */
	bool traced;			/* and by this number: */
	uint16_t trace_channel;
};

/* A message in one piece of memory of ours, until a receive takes it. */
struct wf_shm_parcel {
	struct wf_ux ux;
	struct wf_list link;  /* in in->parcels */
	struct wf_shm_in *in; /* NULL once the channel is gone */
	struct wf_rx *rx;     /* matched before all of it was here */
	size_t have;
	uint32_t op;
	bool ack;
	bool lost; /* the sender died in the middle */
	uint8_t payload[];
};

/* Takes over @region and @fd. NULL without memory, then the caller keeps
 * both. */
struct wf_shm_in *wf_shm_in_open(struct wf_shm_ep *ep,
				 const struct wf_shm_region *region, int fd,
				 const struct wf_addr *addr, uint64_t src);

/* Frees @in. Receives that were being filled fail with @err (positive); 0: they
 * get no completion, because the endpoint closes. */
void wf_shm_in_close(struct wf_shm_in *in, int err);

/* The sender's name in the AV changed. */
void wf_shm_in_rename(struct wf_shm_in *in, uint64_t src);

/* Returns credit that was held back for a batch. Called from time to time, so
 * that a sender does not wait for credit while the receiver is idle. */
void wf_shm_in_credit(struct wf_shm_in *in);

/* Messages taken from one ring before others get their turn. */
#define WF_SHM_IN_BUDGET 32

/* Handles up to @budget messages. Returns how many. */
int wf_shm_in_poll(struct wf_shm_in *in, int budget);

/* After a reply or credit was written: wakes the sender if it sleeps. */
void wf_shm_in_nudge(struct wf_shm_in *in);

/* Has progress look at @in: pulls are under way, or replies found no room. */
void wf_shm_in_busy(struct wf_shm_in *in);

/* Sends @reply to the sender; see wf_shm_reply_send(). */
uint32_t wf_shm_in_reply(struct wf_shm_in *in,
			 const struct wf_shm_kept_reply *reply);

/* The last reply of @op. */
static inline uint32_t wf_shm_in_reply_final(struct wf_shm_in *in, uint32_t op,
					     int status)
{
	const struct wf_shm_kept_reply reply = {
		.op = op,
		.kind = WF_SHM_REPLY_FINAL,
		.status = status,
	};

	return wf_shm_in_reply(in, &reply);
}

/* Pairs with the release in wf_shm_put_publish(). */
static inline bool wf_shm_in_ready(const struct wf_shm_in *in)
{
	uint64_t word = wf_shared_load(&in->slots[in->slot_pos].word, acquire);

	return WF_SHM_WORD_SEQ(word) == in->next + 1;
}

/* Lines fetched ahead while the ring is empty. More would take lines away from
 * the sender while it writes them. */
#define WF_SHM_IN_PREFETCH 8

/* Prefetches the lines in which the payload of the next message will be, before
 * its slot is written. Always inlined: gcc assumes that a function that only
 * prefetches has no effect, and drops calls of it. */
static inline __attribute__((always_inline)) void
wf_shm_in_prefetch(const struct wf_shm_in *in)
{
	uint32_t count = in->expect_lines;

	if (in->expect_pair)
		__builtin_prefetch((const char *)&in->slots[in->slot_pos] +
				   WF_LINE);
	if (wf_likely(!count || in->line_pos + count > in->line_count))
		return;
	if (count > WF_SHM_IN_PREFETCH)
		count = WF_SHM_IN_PREFETCH;
	for (uint32_t i = 0; i < count; i++)
		__builtin_prefetch(in->data +
				   (size_t)(in->line_pos + i) * WF_LINE);
}

#endif
