/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns the user about a peer that does not answer.
 */
#ifndef WF_SHM_SILENCE_H
#define WF_SHM_SILENCE_H

#include <stdint.h>

struct wf_shm_out;

/* Logs one line for a peer that was never reached, or that has our hello and
 * never answered: it may be stopped, or make no progress. If an endpoint waits for
 * many such peers at once, four are named. @after: for how long
 * it was waited for, @left: how long it still is, ns. */
void wf_shm_silence_tell(const struct wf_shm_out *out, uint64_t after,
			 uint64_t left);

#endif
