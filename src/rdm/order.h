/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of one peer in the order of their numbers. Packets that arrive early
 * are copied, so that they hold no receive buffer: there is a window of lists
 * for the next messages, an overflow for those beyond, and a limit for all of
 * them. Senders stay below the limit by themselves (peer.c), so a peer that
 * reaches it violates the protocol.
 */
#ifndef WF_RDM_ORDER_H
#define WF_RDM_ORDER_H

#include <stdint.h>

#include "base/list.h"

#define WF_RDM_WINDOW 64u
/* Packets that a sender may have sent after its oldest unacknowledged
 * message. */
#define WF_RDM_AHEAD 2048u
/* ... and that a receiver holds: some more, because messages end in between. */
#define WF_RDM_HELD_MAX (2 * WF_RDM_AHEAD)

struct wf_rdm_saved {
	struct wf_list link;
	uint32_t msg_id;
	uint32_t len;
	uint8_t bytes[];
};

struct wf_rdm_order {
	uint32_t expected;
	uint32_t held;
	uint32_t held_max;     /* so far */
	struct wf_list *slots; /* WF_RDM_WINDOW, made when needed */
	struct wf_list overflow;
};

enum wf_rdm_turn {
	WF_RDM_TURN_NOW,  /* the next message */
	WF_RDM_TURN_PAST, /* a further packet of one that had its turn */
	WF_RDM_TURN_HELD, /* copied and kept */
};

void wf_rdm_order_init(struct wf_rdm_order *order);
void wf_rdm_order_fini(struct wf_rdm_order *order);

/* Says whether it is the turn of a packet: enum wf_rdm_turn, -ENOMEM, or -EPROTO if
 * its number is too far ahead. */
int wf_rdm_order_arrive(struct wf_rdm_order *order, uint32_t msg_id,
			const void *bytes, uint32_t len);

/* The message that was expected had its turn. */
void wf_rdm_order_advance(struct wf_rdm_order *order);

/* Continues with the next message that is kept; there is one, and none of the
 * message before it. */
void wf_rdm_order_skip(struct wf_rdm_order *order);

/* A kept packet whose turn has come, or NULL. It stays until dropped. */
struct wf_rdm_saved *wf_rdm_order_first(const struct wf_rdm_order *order);
/* Returns a packet of the previous message that came early, or NULL. */
struct wf_rdm_saved *wf_rdm_order_past(const struct wf_rdm_order *order);
void wf_rdm_order_drop(struct wf_rdm_order *order, struct wf_rdm_saved *saved);

#endif
