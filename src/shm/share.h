/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both sides copy a large message at once: the receiver reads, the sender
 * writes, chunk by chunk. Each claims its next chunk from one shared counter,
 * so either can finish alone, and neither waits for the other to begin.
 *
 * The share is in shared memory, which the peer may change at any time. Each
 * side keeps a checked copy of what it needs; the counter only says which chunk
 * of that copy is next.
 */
#ifndef WF_SHM_SHARE_H
#define WF_SHM_SHARE_H

#include <stdbool.h>

#include "shm/mover.h"
#include "shm/ring_defs.h"
#include "shm/tx.h"

/* Receiver: describes where the bytes go. */
void wf_shm_share_open(struct wf_shm_share *share, const struct iovec *to,
		       size_t count, size_t len, size_t chunk);

/* One side's copying. 1: no chunk is left to claim; 0: stopped at the budget;
 * -errno: the chunk claimed last was not copied. *@done counts chunks. */
int wf_shm_share_copy(struct wf_shm_share *share, uint64_t chunk, uint64_t len,
		      int (*copy)(void *arg, uint64_t offset, uint64_t part),
		      void *arg, uint32_t *done);

/* Sender: takes over what the receiver wrote. False if it is invalid. */
bool wf_shm_share_join(const struct wf_shm_share *share, struct wf_shm_tx *tx);

/* Sender: copies. False when there is nothing more for it to do. */
bool wf_shm_share_help(struct wf_shm_share *share, struct wf_shm_mover *mover,
		       struct wf_shm_tx *tx);

#endif
