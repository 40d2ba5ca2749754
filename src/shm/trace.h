/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of messages through shared memory, while somebody traces the endpoint
 * (core/trace.h). A sender's fast path asks the word at out->bell_wanted whether
 * to call wf_shm_out_ring(): while traced, that points to a word that always
 * says yes, and the call records the message. A receiver compares positions of
 * rings before and after a poll.
 */
#ifndef WF_SHM_TRACE_H
#define WF_SHM_TRACE_H

#include <stdbool.h>

#include "shm/ep.h"
#include "shm/in.h"
#include "shm/out.h"

/* Turns recording on or off for all channels. */
void wf_shm_trace_turn(struct wf_shm_ep *ep, bool on);

/* The channel has a ring: sets out->bell_wanted. */
void wf_shm_trace_ring(struct wf_shm_out *out);

static inline bool wf_shm_trace_is_on(const struct wf_shm_out *out)
{
	return out->ep->host->trace;
}

/* A slot was published. Returns whether the receiver wants to be told. */
bool wf_shm_trace_put(struct wf_shm_out *out);

/* The peer was woken. */
void wf_shm_trace_rang(struct wf_shm_out *out);

/* An operation that waited for the peer is over. */
void wf_shm_trace_end(struct wf_shm_out *out, uint32_t op);

/* The peer's operation was answered for the last time. */
void wf_shm_trace_reply(struct wf_shm_in *in, uint32_t op);

/* A letter was sent, and one from @addr was delivered. */
void wf_shm_trace_letter(struct wf_shm_out *out, uint64_t tag, uint64_t len);
void wf_shm_trace_letter_taken(struct wf_shm_ep *ep,
			       const struct wf_addr *addr);

/* After a poll: what was taken. @all: also from rings that are not watched. */
void wf_shm_trace_taken(struct wf_shm_ep *ep, bool all);

#endif
