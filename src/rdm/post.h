/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next packet for a peer is chosen here. Operations are in peer->queue,
 * packets that are owed to it in peer->owing. A function that adds to either
 * activates the peer, and progress serves active peers in turns.
 */
#ifndef WF_RDM_POST_H
#define WF_RDM_POST_H

#include <stdbool.h>
#include <stdint.h>

struct wf_rdm_peer;
struct wf_rdm_tx;

/* There is something to post. */
void wf_rdm_post_activate(struct wf_rdm_peer *peer);

/* Requests that the device may still get for it, in addition to what is
 * owed. */
uint32_t wf_rdm_post_room(const struct wf_rdm_peer *peer);

/* @tx is about to be sent for the first time. */
void wf_rdm_post_begin(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx);
/* Whether so many packets are under way that the peer might not keep another that
 * comes before its turn. */
bool wf_rdm_post_is_ahead(const struct wf_rdm_peer *peer);

/* Places of the device's queue that one of several peers may take. */
#define WF_RDM_PEER_SHARE 512

/* Posts all of @tx, the last of the queue, if nothing else is to be posted or
 * waited for. False: wf_rdm_post_pump() does the rest. */
bool wf_rdm_post_at_once(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx);

/* Posts what can be posted, up to @budget packets. False: nothing is left. */
bool wf_rdm_post_pump(struct wf_rdm_peer *peer, int budget);

#endif
