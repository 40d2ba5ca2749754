/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transports add their waits to a report (base/waits.h) by these calls:
 * operations of ours and messages of peers, described alike by all of them.
 */
#ifndef WF_TRANSPORT_WAITS_H
#define WF_TRANSPORT_WAITS_H

#include "base/waits.h"
#include "op/tx.h"

/* When something was first seen waiting, which it did not say itself: no path
 * that messages take looks at the clock. *@since is 0 before that. */
static inline uint64_t wf_transport_waits_seen(uint64_t *since, uint64_t now)
{
	if (!*since)
		*since = now;
	return *since;
}

/* An operation of ours. @protocol: NULL if none is chosen. Returns NULL if there
 * is no room for more. */
struct wf_wait *wf_transport_waits_add_tx(struct wf_waits *waits,
					  const struct wf_tx *req,
					  enum wf_wait_step step,
					  uint64_t since, const char *protocol,
					  const struct wf_addr *peer);

/* A message of a peer whose bytes are on the way. @peer: AF_UNSPEC if its address
 * is not known. Returns NULL if there is no room for more. */
struct wf_wait *wf_transport_waits_add_rx(struct wf_waits *waits, uint64_t tag,
					  uint64_t len, uint64_t done,
					  uint64_t since, const char *protocol,
					  const struct wf_addr *peer);

#endif
