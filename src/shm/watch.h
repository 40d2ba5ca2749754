/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header decides which rings of an endpoint are looked at, and when. Every
 * poll looks at a few watched rings; the senders of all others ring a bell on
 * the endpoint's board (board_defs.h). Only this module writes bells,
 * `bell_wanted` of a channel, and the members of struct wf_shm_in that are
 * named after it.
 *
 * The invariant, between calls and with store buffers drained:
 *
 *	a ring with a message is watched, or its bell is set, or it is on the
 *	look-again list.
 *
 * The endpoint's lock covers all of it.
 */
#ifndef WF_SHM_WATCH_H
#define WF_SHM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "shm/board.h"
#include "shm/in.h"

struct wf_stats;

struct wf_shm_watch {
	struct wf_shm_in **ins; /* all rings; the watched ones come first */
	uint32_t count;
	uint32_t room;
	uint32_t watched;
	uint32_t hot;	      /* the watched ring that had the last message */
	uint32_t turn;	      /* polls, to tell old from new */
	uint32_t bell_lines;  /* of the board that are in use */
	struct wf_list again; /* the look-again list: wf_shm_in.again_link */
	uint32_t bell_room;   /* bells that have a place in: */
	struct wf_shm_in **bell_ins; /* the ring of each bell */
	struct wf_shm_out **offers;  /* or whose offer (offer.h) has it */
	struct wf_shm_board *board;  /* ours */
	bool heard;	   /* messages came other than by the hot ring */
	bool distrusted;   /* a process of another user has mapped the board */
	uint64_t sweep_at; /* distrusted: when all rings are looked at */
	struct wf_rxq *rxq;
	struct wf_stats *stats;
};

void wf_shm_watch_open(struct wf_shm_watch *watch, struct wf_shm_board *board,
		       struct wf_rxq *rxq, struct wf_stats *stats);

/* Frees the tables, not the rings. */
void wf_shm_watch_close(struct wf_shm_watch *watch);

/* Looks after @in from now on. The sender does not know the bell yet: the
 * messages in the ring were there before the hello. 0 or -ENOMEM. */
int wf_shm_watch_add(struct wf_shm_watch *watch, struct wf_shm_in *in);
void wf_shm_watch_drop(struct wf_shm_watch *watch, struct wf_shm_in *in);

/* A bell for a ring that the peer of @out was offered; WF_SHM_BELLS: there is
 * none to spare. wf_shm_offer_open() is called when it is set. */
uint32_t wf_shm_watch_reserve(struct wf_shm_watch *watch,
			      struct wf_shm_out *out);
void wf_shm_watch_cancel(struct wf_shm_watch *watch, uint32_t bell);

/* wf_shm_watch_add() of a ring with a reserved bell. If it has messages, the bell
 * is set, or is being set. */
int wf_shm_watch_add_reserved(struct wf_shm_watch *watch, struct wf_shm_in *in,
			      uint32_t bell);

/* Whether a ring that is not watched may have a message. */
static inline bool wf_shm_watch_has_rung(const struct wf_shm_watch *watch)
{
	return wf_shm_board_has_rung(watch->board);
}

/* Takes messages from the watched rings and from those that rang. */
void wf_shm_watch_poll(struct wf_shm_watch *watch);

/* Called now and then with a clock that was read after the last poll: returns
 * credit, looks at the look-again list. */
void wf_shm_watch_tick(struct wf_shm_watch *watch, uint64_t now);

/* The endpoint is about to sleep: all senders shall ring. */
void wf_shm_watch_all_bells(struct wf_shm_watch *watch);

/* The endpoint is awake: senders of watched rings need not ring any more, and
 * the bells that they rang mean nothing. */
void wf_shm_watch_few_bells(struct wf_shm_watch *watch);

/* Called after a barrier on all processors: no sender can have missed its
 * bell_wanted since, so one look empties the look-again list. */
void wf_shm_watch_settle(struct wf_shm_watch *watch);

/* Whether a poll would find a message, or a bell to answer. */
bool wf_shm_watch_pending(const struct wf_shm_watch *watch);

/* Whether messages may be taken at all: the completion queue has room. */
bool wf_shm_watch_has_room(const struct wf_shm_watch *watch);

/* For tests: whether the invariant and the tables hold. */
bool wf_shm_watch_check(const struct wf_shm_watch *watch);

#endif
