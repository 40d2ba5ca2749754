/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns the user about a peer that does not answer, and of too few descriptors.
 */
#ifndef WF_SHM_SILENCE_H
#define WF_SHM_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

struct wf_shm_ep;
struct wf_shm_out;

/* Logs one line for a peer that was never reached, or that has our hello and
 * never answered: it may be stopped, or make no progress. If an endpoint waits for
 * many such peers at once, four are named. @after: for how long
 * it was waited for, @left: how long it still is, ns. */
void wf_shm_silence_tell(const struct wf_shm_out *out, uint64_t after,
			 uint64_t left);

/* The last try failed for want of a descriptor of ours, which is reported for the
 * endpoint: nothing is known about the peer. */
bool wf_shm_silence_is_ours(const struct wf_shm_out *out);

/* A peer could not connect, or be connected to, for want of a descriptor: @err is
 * EMFILE or ENFILE (others: nothing happens). Logs one line for the endpoint if
 * that lasts: peers that connect at the same time need more for a moment. */
void wf_shm_silence_short(struct wf_shm_ep *ep, int err, uint64_t now);

/* Operations fail with @err after @waited ns: the same, at once. */
void wf_shm_silence_failed(struct wf_shm_ep *ep, int err, uint64_t waited);

/* A peer has what it needs. */
void wf_shm_silence_enough(struct wf_shm_ep *ep);

#endif
