/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The crowd decides which peers are kept. An address that sent one packet must
 * not occupy memory and a handle of the device for ever, so peers that hold
 * nothing are given back: peers outside the AV after some seconds of silence,
 * any peer when there are too many.
 *
 * A peer holds something while an operation of ours or of its own is under way,
 * while one of its messages waits for a receive or for its turn, or while we
 * owe it a packet.
 *
 * Two facts must survive, because they make messages arrive once and in order:
 * the life of the peer, and the number of the message that is expected next. A
 * peer that was given back may be alive and continue where it was. The device
 * keeps these words (a memo) as long as it knows the peer, that is, as long as
 * either connection is open. When both are closed the memo is not needed: a
 * sender's life never outlasts its connection. If we send to a peer that comes
 * back, we begin a new life in any case (life.h): KEEP if there is a memo, so
 * that the other side forgets nothing, otherwise NEW.
 *
 * No packet that the device acknowledged is dropped. A packet of a peer without
 * a handle takes a handle when it is processed. As many handles are kept free
 * as there are receive buffers. When no more than that are left, and no peer
 * can be given back, the device refuses packets of unknown peers (RNR), which
 * try again.
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

/* Whether the endpoint may sleep, until *@deadline, which is lowered: an
 * unknown peer that is refused must not wait if another peer could be
 * released. If none can be released, something must arrive first. */
bool wf_rdm_crowd_doze(struct wf_rdm_ep *ep, uint64_t *deadline);

/* @peer was released and is needed again. 0 or -errno. */
int wf_rdm_crowd_rejoin(struct wf_rdm_peer *peer);

#endif
