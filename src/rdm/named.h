/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that peers refer to by a number of ours: one table for those of
 * ours and for those of peers, because a packet does not say which it means. A
 * number is reused only with another upper half, which is random at first: a
 * peer may still answer an operation of the previous process at our address,
 * and the answer reaches us. Packets name only the life of their sender, so
 * only the number distinguishes such an answer from one to us.
 */
#ifndef WF_RDM_NAMED_H
#define WF_RDM_NAMED_H

#include <stdbool.h>
#include <stdint.h>

struct wf_rdm_ep;
struct wf_rdm_peer;

struct wf_rdm_named {
	struct wf_rdm_peer *peer;
	uint32_t id;
	bool has_id;
	bool is_tx; /* a wf_rdm_tx, else a wf_rdm_rx */
};

/* Takes a number if it has none. 0, -ENOMEM or -ENOSPC. */
int wf_rdm_named_add(struct wf_rdm_ep *ep, struct wf_rdm_named *named);
void wf_rdm_named_del(struct wf_rdm_ep *ep, struct wf_rdm_named *named);

/* The operation of @peer with @id, or NULL. */
struct wf_rdm_named *wf_rdm_named_get(const struct wf_rdm_ep *ep,
				      const struct wf_rdm_peer *peer,
				      uint32_t id);

#endif
