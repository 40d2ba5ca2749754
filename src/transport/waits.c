/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes an operation or a message that waits.
 */
#include "transport/waits.h"

#include <stdio.h>

static enum wf_wait_kind kind_of(const struct wf_tx *req)
{
	switch (req->kind) {
	case WF_TX_WRITE:
		return WF_WAIT_WRITE;
	case WF_TX_READ:
		return WF_WAIT_READ;
	case WF_TX_ATOMIC:
		return WF_WAIT_ATOMIC;
	default:
		return WF_WAIT_SEND;
	}
}

static void describe(struct wf_wait *wait, uint64_t tag, uint64_t len,
		     const char *protocol, const struct wf_addr *peer)
{
	wait->tag = tag;
	wait->len = len;
	if (protocol)
		snprintf(wait->protocol, sizeof(wait->protocol), "%s",
			 protocol);
	if (peer->sa.sa_family != AF_UNSPEC)
		wf_base_waits_peer(wait, peer);
}

struct wf_wait *wf_transport_waits_add_tx(struct wf_waits *waits,
					  const struct wf_tx *req,
					  enum wf_wait_step step,
					  uint64_t since, const char *protocol,
					  const struct wf_addr *peer)
{
	struct wf_wait *wait =
		wf_base_waits_add(waits, kind_of(req), step, since);

	if (!wait)
		return NULL;
	describe(wait, req->tag, req->len, protocol, peer);
	wait->flags = req->tagged ? WF_WAIT_TAGGED : 0;
	return wait;
}

struct wf_wait *wf_transport_waits_add_rx(struct wf_waits *waits, uint64_t tag,
					  uint64_t len, uint64_t done,
					  uint64_t since, const char *protocol,
					  const struct wf_addr *peer)
{
	struct wf_wait *wait = wf_base_waits_add(waits, WF_WAIT_TRANSFER,
						 WF_WAIT_FOR_BYTES, since);

	if (!wait)
		return NULL;
	describe(wait, tag, len, protocol, peer);
	wait->done = done;
	return wait;
}
