/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending end of a channel. Made at the first send to an address; messages
 * wait in `pending` until the channel is open and has room. Operations that the
 * receiver answers wait in `waiting` for its reply.
 *
 * A small message touches only the first line of the struct, and its slot.
 */
#ifndef WF_SHM_OUT_H
#define WF_SHM_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/list.h"
#include "op/reg.h"
#include "os/shared.h"
#include "os/types.h"
#include "shm/board.h"
#include "shm/lap.h"
#include "shm/mover.h"
#include "shm/region.h"
#include "shm/regs.h"
#include "transport/loop.h"
#include "base/table.h"

struct wf_shm_ep;
struct wf_shm_in;
struct wf_shm_offer;
struct wf_shm_out;
struct wf_shm_tx;
struct wf_shm_windows;
struct wf_tx;

enum wf_shm_out_state {
	WF_SHM_OUT_CONNECTING, /* nobody listens there, or not yet */
	WF_SHM_OUT_GREETED,    /* hello sent */
	WF_SHM_OUT_OPEN,
	WF_SHM_OUT_DEAD, /* ->err tells why; reaped after progress */
};

struct wf_shm_out {
	/* How many slots the fast path may still write; 0 if it must not be
	 * used: no room, not open, other messages are pending, or the credit
	 * must be looked at. lines_free: the same for lines of data. */
	uint32_t slots_free;
	uint32_t lines_free;
	struct wf_shm_lap slot_lap;
	uint8_t slot_turn; /* flag of the next slot: the last of its lap */
	uint8_t line_turn; /* flag of the next record: the first of its lap */
	struct wf_shm_slot *slots;
	const _Atomic uint32_t *bell_wanted; /* in the header; see trace.h */
	uint64_t bytes; /* of inline messages since counted */
	struct wf_shm_ep *ep;
	uint8_t *data;
	struct wf_shm_lap line_lap;
	uint32_t chunk;	  /* bytes per record of a larger message */
	size_t eager_max; /* above this, messages are parked */
	enum wf_shm_out_state state;

	uint32_t slots_done; /* of the last credit we looked at */
	uint32_t lines_done;
	uint32_t counted;      /* slots in the statistics; since then: */
	uint32_t eager;	       /* messages in one record, ... */
	uint64_t eager_bytes;  /* ... their bytes, ... */
	uint32_t parts;	       /* ... and slots that are no whole message */
	uint32_t bell;	       /* our number on its board */
	uint32_t remote_flags; /* WF_SHM_WELCOME_* */
	struct wf_shm_board_map board;
	struct wf_shm_regs regs;	/* its registrations, ... */
	struct wf_reg_known known;	/* the last of them that was used */
	struct wf_shm_windows *windows; /* ... those that we map, or NULL */
	uint32_t amo_head; /* slots up to the last atomic in the ring */
	struct wf_shm_tx *returns[WF_SHM_RETURNS]; /* what waits for each */
	struct wf_source sock;
	struct wf_source old;	/* given up for that of the twin, see link.h */
	struct ucred listener;	/* GREETED: the process that has our hello */
	struct wf_shm_in *twin; /* has the same socket */
	struct wf_shm_offer *offer; /* a ring for the peer (offer.h), or NULL */
	uint32_t number;	    /* the channel's, in notes */
	uint32_t join; /* joins: the ring whose socket the peer offers us */
	bool joins;
	bool told;    /* we have told the peer that we end */
	bool shut;    /* the peer does not read any more */
	bool unwoken; /* the peer sleeps, and could not be woken */
	bool gone;    /* given up, but the peer may use our offer */
	bool cut;     /* GREETED: the peer cannot answer any more */
	struct wf_shm_letter *room; /* GREETED by a letter: for its answer */
	bool letter;		    /* GREETED: by a letter, without a ring */
	bool done;		    /* DEAD: after a letter that was read */
	struct wf_shm_region region;
	struct wf_shm_mover mover;
	uint64_t dst; /* fi_addr_t */
	struct wf_addr addr;
	uint64_t since;	     /* when we began to connect, ns */
	uint64_t deadline;   /* CONNECTING: when to give up, ns */
	uint64_t greeted;    /* GREETED: since when, ns */
	uint64_t retry_at;   /* CONNECTING: when to try again, ns ... */
	uint64_t retry_wait; /* ... and how long that was to wait */
	int err;	     /* DEAD: positive errno; before: of the last try */
	bool err_is_theirs;  /* ... with which the peer refused */
	bool keep;	     /* DEAD: stays, to tell the next sender why */
	bool warned;	     /* that the peer does not answer */
	bool learns;	     /* the receiver chooses the path (pace.h), ... */
	bool stamps; /* ... and wants to know when this message was sent; ... */
	bool around; /* ... its records are written around the caches */
	uint32_t features;

	struct wf_list pending; /* wf_shm_tx, in order */
	struct wf_shm_tx
		*early; /* the first of them is in the ring (early.h) */
	struct wf_list pending_link; /* in ep->pending_outs */
	struct wf_table waiting;     /* wf_shm_tx, by number of its name */
	uint32_t waiting_turn;	     /* makes names of operations differ */
	uint32_t sharing;	     /* bit set = help with that share */
	uint32_t reply_tail;
	struct wf_list waiting_link;		 /* in ep->waiting_outs */
	struct wf_shm_tx *shared[WF_SHM_SHARES]; /* for each bit */
	struct wf_list link;			 /* in ep->all_outs */
	bool traced;				 /* and by this number: */
	uint16_t trace_channel;
	uint32_t put_polls;  /* host->polls and ... */
	uint64_t put_now;    /* ... host->now when a record was last put */
	uint64_t regs_until; /* no memory to map regs: tried until then, ns */
};

/* Makes the sending end for @addr and starts to connect. NULL without
 * memory. */
struct wf_shm_out *wf_shm_out_open(struct wf_shm_ep *ep, uint64_t dst,
				   const struct wf_addr *addr);

/* Marks the channel dead; the endpoint frees it at the end of progress, when no
 * function uses it. @keep: the address never answered; the channel stays, so
 * that the next send fails with the same error. */
void wf_shm_out_mark_dead(struct wf_shm_out *out, int err, bool keep);

/* Fails everything in flight with @err (positive). */
void wf_shm_out_fail_all(struct wf_shm_out *out, int err);

/* Releases the socket and the ring of a dead channel. */
void wf_shm_out_release(struct wf_shm_out *out);

/* Frees @out and, without completions, the operations that it still has. */
void wf_shm_out_free(struct wf_shm_out *out);

/* Adds @tx to the end of the pending operations. */
void wf_shm_out_enqueue(struct wf_shm_out *out, struct wf_shm_tx *tx);

/* The channel is open now: sends what is pending. */
void wf_shm_out_opened(struct wf_shm_out *out);

/* Looks at the credit that the receiver returned. False if the fast path must
 * not be used. */
bool wf_shm_out_refresh(struct wf_shm_out *out);

/* With so few slots left, the line of the credit is prefetched. */
#define WF_SHM_OUT_LOW 2

/* Few slots are left, or the lap has ended. */
void wf_shm_out_low(struct wf_shm_out *out);

/* Sends @req or queues a copy; an injected message that finds no room is copied. 0,
 * -EAGAIN (not connected and it may not wait, or the transmit depth is reached),
 * or the -errno of a dead peer. */
int wf_shm_out_send(struct wf_shm_out *out, const struct wf_tx *req);

/* Pushes what is pending as far as there is room. */
void wf_shm_out_push(struct wf_shm_out *out);

/* Whether copies of injected messages are pending that can still be sent. */
bool wf_shm_out_holds_copies(const struct wf_shm_out *out);

/* The endpoint closes: drops pending operations whose data is in buffers of the
 * application, which may be gone, and keeps the copies. */
void wf_shm_out_keep_copies(struct wf_shm_out *out);

/* Whether the next reply is there. Pairs with the release in
 * wf_shm_reply_send(). */
static inline bool wf_shm_out_has_reply(const struct wf_shm_out *out)
{
	const struct wf_shm_reply *at =
		&out->region.replies[out->reply_tail % WF_SHM_REPLIES];

	return wf_shared_load(&at->seq, acquire) == out->reply_tail + 1;
}

/* Handles replies. Returns how many. */
int wf_shm_out_poll(struct wf_shm_out *out);

/* The peer has ended: handles the replies that it left, because what it has
 * acknowledged was delivered. False if the completion queue has no room for all
 * of them: call again later. */
bool wf_shm_out_settle(struct wf_shm_out *out);

/* Rings the receiver's bell for what was published: it does not poll this ring.
 */
void wf_shm_out_ring(struct wf_shm_out *out);

/* Whether a look at replies and credit would find something. */
bool wf_shm_out_has_work(const struct wf_shm_out *out);

/* For protocols: whether there is room for one slot and @len bytes of data.
 * Reads the receiver's credit if there is not. */
bool wf_shm_out_has_room(struct wf_shm_out *out, size_t len);

/* For protocols, before they let the receiver use that part of the ring: makes
 * sure that it has memory. False: none, try again later. */
bool wf_shm_out_has_shares(struct wf_shm_out *out);
bool wf_shm_out_has_returns(struct wf_shm_out *out);

/* For protocols: when the message was sent, if the receiver wants to know; else
 * 0. */
uint32_t wf_shm_out_stamp(const struct wf_shm_out *out);

/* For protocols: gives an operation that waits for replies a number, ->op.
 * False without memory. */
bool wf_shm_out_wait(struct wf_shm_out *out, struct wf_shm_tx *tx);

/* For protocols: ends an operation that waits; @status is a positive errno or
 * 0. */
void wf_shm_out_finish(struct wf_shm_out *out, struct wf_shm_tx *tx,
		       int status);

#endif
