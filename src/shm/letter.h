/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message to a peer, without a ring. A small injected message goes
 * over the socket of the handshake in place of the hello: as a letter. The peer
 * reads it and closes the socket, which tells the sender that it was read. A
 * ring is made from the second message on, so a peer to which one message is
 * sent costs no memory and, afterwards, no descriptor.
 *
 * A peer that has a first message for the sender, too, writes it on the same
 * socket before it closes it: two letters need one connection.
 *
 * The sender makes no ring before its letter was read: no message overtakes it.
 */
#ifndef WF_SHM_LETTER_H
#define WF_SHM_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_addr;
struct wf_shm_ep;
struct wf_shm_letter;
struct wf_shm_letter_head;
struct wf_shm_out;

/* -- the sender ------------------------------------------------------------ */

/* Whether all that waits is a message that may go as a letter, the first one to
 * this peer. */
bool wf_shm_letter_suits(const struct wf_shm_out *out);

/* A socket on which the peer of @out waits for the answer to its own letter: our
 * letter is as good an answer. -ENOENT: there is none. */
int wf_shm_letter_socket(struct wf_shm_out *out);

/* Sends it over out->sock. 0: out->early is the message, and its answer is the
 * end of the socket. */
int wf_shm_letter_send(struct wf_shm_out *out);

/* The peer has read it, and sent one of its own. 0 or a positive errno: it was
 * not taken. */
int wf_shm_letter_answered(struct wf_shm_out *out,
			   const struct wf_shm_letter_head *head, size_t got,
			   uint64_t now);

/* The peer has read it. If nothing else waits, the channel ends; its place is
 * free for one with a ring. */
void wf_shm_letter_was_read(struct wf_shm_out *out, uint64_t now);

/* -- the receiver ---------------------------------------------------------- */

/* Checks what came instead of a hello: @got bytes. 0 or EPROTO. */
int wf_shm_letter_check(const struct wf_shm_letter_head *head, size_t got);

/* Memory for one letter, taken before it is read: to close the socket afterwards
 * would tell the sender that it arrived. NULL: none. */
struct wf_shm_letter *wf_shm_letter_reserve(void);
void wf_shm_letter_unreserve(struct wf_shm_letter **room);

/* Keeps a letter that was checked in *@room, which it takes, until it is
 * delivered; closes @fd then. @ours: it is of a process of our user. */
void wf_shm_letter_keep(struct wf_shm_ep *ep, struct wf_shm_letter **room,
			int fd, const struct wf_addr *addr, bool ours,
			const struct wf_shm_letter_head *head);

/* Whether no further letters should be read for now. */
bool wf_shm_letter_is_full(const struct wf_shm_ep *ep);

/* Gives letters to the receives that match, as far as the completion queue has
 * room. Called before rings are read: the messages that a peer writes into a
 * ring come after its letter. Those without a receive wait in the matcher. */
void wf_shm_letter_deliver(struct wf_shm_ep *ep);

/* The AV changed (channels.h): letters that wait in the matcher get their new
 * source. */
void wf_shm_letter_inserted(struct wf_shm_ep *ep, uint64_t name,
			    const struct wf_addr *addr);
void wf_shm_letter_removed(struct wf_shm_ep *ep, uint64_t name);
void wf_shm_letter_renamed(struct wf_shm_ep *ep);

/* Drops letters that are not delivered; the matcher keeps the others. */
void wf_shm_letter_close(struct wf_shm_ep *ep);
void wf_shm_letter_forked(struct wf_shm_ep *ep);

#endif
