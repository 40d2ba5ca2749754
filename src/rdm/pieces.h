/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that are longer than a packet: cut into pieces of whole elements,
 * each an operation of its own (rta.h), and one completion for all.
 */
#ifndef WF_RDM_PIECES_H
#define WF_RDM_PIECES_H

#include <stdbool.h>
#include <stddef.h>

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_tx;

/* @room: bytes that a piece holds. @receipt: the peer acknowledges. 0, -EAGAIN
 * or -errno. */
int wf_rdm_pieces_submit(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
			 const struct wf_tx *req, bool receipt, size_t room);

#endif
