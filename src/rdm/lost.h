/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer whose id never changes (life.h) must be told of some losses; this
 * header does it. A peer with lives learns from the next id that the last life
 * is over. A peer without lives waits for the next message number instead. For
 * a message that failed here we send it PEER_ERROR, as libfabric's efa does,
 * and we send again the packets that it was owed and did not get. While the
 * device reports that the peer is gone, we send none of this; when the peer is
 * heard of again, we send all of it. Meanwhile new messages wait until a probe
 * has found the peer, or fail with the probe. They take no number before that,
 * so nothing must be kept for messages to a dead peer.
 */
#ifndef WF_RDM_LOST_H
#define WF_RDM_LOST_H

#include <stdbool.h>

struct wf_rdm_peer;
struct wf_rdm_pkt;

/* All operations of @peer are about to fail. If nothing of an operation was
 * posted, its number is used again; the peer must be told of all others. */
void wf_rdm_lost_numbers(struct wf_rdm_peer *peer);

/* Whether @peer may be a libfabric before 2.6, which does not know
 * PEER_ERROR and takes it for a fatal error. Its handshake shows this: a
 * PEER_ERROR is kept until the handshake has arrived, and then dropped if
 * the peer does not know it. */
bool wf_rdm_lost_may_not_know(const struct wf_rdm_peer *peer);

/* Whether to tell @peer that its request was refused. Not if it does not know
 * PEER_ERROR, or has sent many such requests and no handshake. */
bool wf_rdm_lost_may_refuse(const struct wf_rdm_peer *peer);

/* @pkt, which repeats, was not delivered. It belongs to us now. */
void wf_rdm_lost_keep(struct wf_rdm_pkt *pkt);

/* @pkt, which repeats, will not be delivered. */
void wf_rdm_lost_drop(struct wf_rdm_pkt *pkt);

/* @peer waits for a number that will not come, and cannot be told: it is sent no
 * more messages. */
void wf_rdm_lost_give_up(struct wf_rdm_peer *peer);

/* Whether there is something to be told without which that is so; whether our
 * handshake is still to be told. */
bool wf_rdm_lost_skips(const struct wf_rdm_peer *peer);
bool wf_rdm_lost_greets(const struct wf_rdm_peer *peer);

/* Whether @peer has to stay because of what it is to be told. Not one that is
 * gone, nor one that sent no handshake and had its requests refused. */
bool wf_rdm_lost_holds(const struct wf_rdm_peer *peer);

/* Posts what can be posted. False: there was no room for all of it. */
bool wf_rdm_lost_post(struct wf_rdm_peer *peer);

void wf_rdm_lost_free(struct wf_rdm_peer *peer);

#endif
