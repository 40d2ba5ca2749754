/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The injected message that opens a channel. It is in the ring before the hello
 * that passes the ring to the peer, so the peer finds it though the sender makes
 * no call afterwards. A process that sends one message to each of many peers
 * therefore connects to all of them at once.
 *
 * A copy stays at the head of the pending messages until the peer answers: if the
 * peer has to be greeted again, the message goes into the new ring.
 */
#ifndef WF_SHM_EARLY_H
#define WF_SHM_EARLY_H

#include <stdbool.h>

struct wf_shm_out;
struct wf_shm_tx;

/* Whether @tx may be written before the peer is known: it is one slot or one
 * record, injected, and nobody waits for a reply. */
bool wf_shm_early_may(const struct wf_shm_tx *tx);

/* Connects with @tx in the ring, if the channel was never tried. 0: the peer has
 * the ring. -EAGAIN: nothing of @tx is kept, the caller tries again. */
int wf_shm_early_inject(struct wf_shm_out *out, const struct wf_shm_tx *tx);

/* There is a new ring, and the peer was not told of it yet: writes the first
 * pending message into it, if that may go early. */
void wf_shm_early_begin(struct wf_shm_out *out);

/* The peer has taken the ring and reads the message: the copy is of no more use,
 * though the channel may have to be opened again. */
void wf_shm_early_end(struct wf_shm_out *out);

#endif
