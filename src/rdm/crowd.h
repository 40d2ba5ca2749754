/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which peers are kept. An address that sent one packet must not cost memory and
 * a handle of the device for ever, so peers that hold nothing are given back:
 * those outside the AV after some seconds of silence, any when there are too
 * many.
 *
 * A peer holds something while an operation of ours or of its own is under way,
 * a message of its waits for a receive or for its turn, or we owe it a packet.
 *
 * What must survive is what makes messages come once and in order: the life of
 * the peer, and the number of the message that is expected next. A peer that was
 * given back may be alive, and goes on where it was. The device keeps these words
 * (a memo) for as long as it knows the peer, that is as long as either connection
 * is open. When both are closed they are not needed: a life of a sender never
 * lasts longer than its connection. What we send to a peer that comes back is a
 * new life in any case (life.h): one that says KEEP where there is a memo, upon
 * which the other side forgets nothing, else NEW.
 *
 * Nothing that the device acknowledged is dropped. A packet of somebody who has
 * no handle takes one when it is looked at. Handles are kept free for as many
 * packets as there are receive buffers; when no more than that are left, and
 * nobody can be given back, the device refuses strangers (RNR), who try again.
 */
#ifndef WF_RDM_CROWD_H
#define WF_RDM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct wf_rdm_ep;
struct wf_rdm_peer;

/* Whether there may be another peer: one that we send to, or one whose packet
 * has arrived. Records that there are too many. */
bool wf_rdm_crowd_room(struct wf_rdm_ep *ep, bool came);

/* A peer was created. */
void wf_rdm_crowd_joined(struct wf_rdm_ep *ep);

/* Called once in every progress, when all completions of the device have
 * been seen: frees the peers that were released the last time, and releases
 * others. */
void wf_rdm_crowd_run(struct wf_rdm_ep *ep);

/* Whether the endpoint may sleep, until *@deadline, which is lowered: whoever is
 * refused does not wait for a peer that could be released. If nobody can,
 * something must arrive first. */
bool wf_rdm_crowd_doze(struct wf_rdm_ep *ep, uint64_t *deadline);

/* @peer was released and is needed again. 0 or -errno. */
int wf_rdm_crowd_rejoin(struct wf_rdm_peer *peer);

#endif
