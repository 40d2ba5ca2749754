/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second ring of a hello. An endpoint that connects to another one offers it
 * a ring for messages in the other direction, in the same memfd, with everything
 * that a welcome would say. If the peer sends something later, it uses that ring
 * and connects to nobody: two endpoints that send to each other need one
 * handshake and one socket. Between processes that all send to each other, half
 * of the connections are never made.
 *
 * An offer is made as follows: the endpoint that connects (A) reserves a bell
 * on its board and a number for the second channel, and names both in its
 * hello. The peer (B) keeps the offer with the channel from A, if it knows A's
 * address and has no channel to it; otherwise its welcome says that it
 * declines. B uses the offer when it first sends to A: it takes the first page
 * of the ring, writes the header and the message, and sets the bell. The two
 * channels are twins from then on (link.h). A opens its end of the second
 * channel when the bell is set, and not before, because its memory is not taken
 * before.
 *
 * A may close its own channel while the offer stands, and B may use the offer at
 * the same moment. So A opens its end of the second channel first. It withdraws
 * an offer only if B cannot have it, or does not send any more.
 *
 * Only processes of our own user get an offer: they learn from it what a peer
 * learns from a welcome, and A looks for their first message by a bell alone.
 * When a process of another user has mapped the board, and may clear bells,
 * A opens its ends of all offers, and makes no more.
 *
 * The endpoint's lock protects all of it.
 */
#ifndef WF_SHM_OFFER_H
#define WF_SHM_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/board.h"
#include "shm/conn_defs.h"
#include "shm/region.h"
#include "shm/regs.h"

struct wf_addr;
struct wf_shm_ep;
struct wf_shm_in;
struct wf_shm_out;

struct wf_shm_offer {
	struct wf_shm_region region;
	uint32_t bell;	 /* on the board of the endpoint that offers */
	uint32_t number; /* of the channel, in notes */
	bool left;	 /* the peer has closed it again */
	/* Members that came with the offer: */
	uint32_t flags; /* WF_SHM_WELCOME_* */
	struct wf_shm_board_map board;
	struct wf_shm_regs regs;
};

/* -- the side that connects --------------------------------------------------- */

/* Creates the ring of @out, and one that it offers if it may: then out->offer is
 * set. *@memfd is the caller's. 0 or -errno. */
int wf_shm_offer_create(struct wf_shm_out *out, bool trusted, int *memfd);

/* Adds the offer of @out to its hello, and the descriptors that go with it to
 * @fds, which has @count. Returns how many there are then. */
unsigned int wf_shm_offer_describe(const struct wf_shm_out *out,
				   struct wf_shm_hello *hello, int *fds,
				   unsigned int count);

/* The bell of an offer was set: opens the receiving end. 0, -ENOMEM or -EAGAIN:
 * try again; other -errno: there is nothing to open. */
int wf_shm_offer_open(struct wf_shm_out *out);

/* The peer cannot use the offer of @out, if there is one. */
void wf_shm_offer_withdraw(struct wf_shm_out *out);

/* @out closes, or its socket has ended: opens the receiving end of the offer if
 * the peer may have used it, withdraws it otherwise. False: there is no memory,
 * try again. */
bool wf_shm_offer_close(struct wf_shm_out *out);
bool wf_shm_offer_ended(struct wf_shm_out *out);

/* The peer says that it does not send by the channel with @number any more. The
 * receiving end, if the channel was offered by @out; or NULL. */
struct wf_shm_in *wf_shm_offer_left(struct wf_shm_out *out, uint32_t number);

/* Bells are not trusted any more: opens all receiving ends. */
void wf_shm_offer_open_all(struct wf_shm_ep *ep);

/* -- the side that is connected to -------------------------------------------- */

/* Keeps the offer of @hello for @in, with @region and the descriptors after the
 * first; false: it is declined. Descriptors that are not kept stay the caller's. */
bool wf_shm_offer_keep(struct wf_shm_in *in, const struct wf_shm_hello *hello,
		       const struct wf_shm_region *region, int *fds);

/* Forgets what @in keeps, if it keeps something. */
void wf_shm_offer_forget(struct wf_shm_in *in);

/* Opens @out, which was made just now, by an offer of its peer. Looks for peers
 * that are waiting to be accepted. False: there is no offer, connect. */
bool wf_shm_offer_use(struct wf_shm_out *out);

/* -- both ---------------------------------------------------------------------- */

/* In a forked child, where no ring is mapped. */
void wf_shm_offer_forked(struct wf_shm_offer **offer);

#endif
