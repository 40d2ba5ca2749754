/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going to sleep without missing anything. An endpoint that sleeps has told its
 * peers: who sends to it rings its bell and wakes it by a byte on their socket;
 * who answers it or gives it credit does, too. All of that, new peers and dying
 * ones make the endpoint's epoll descriptor readable.
 *
 * No fence is needed on the paths that send and answer: before the last look,
 * the sleeper runs one barrier for all processors.
 */
#ifndef WF_SHM_SLEEP_H
#define WF_SHM_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

struct wf_shm_ep;

/* True: nothing is to be done, and waiting for ep->epoll_fd will not miss
 * anything, as that is readable at @deadline_ns of the monotonic clock as well
 * (UINT64_MAX: at no time). False: make progress. Lock held. */
bool wf_shm_sleep_begin(struct wf_shm_ep *ep, uint64_t deadline_ns);

/* Awake again; progress does that. */
void wf_shm_sleep_end(struct wf_shm_ep *ep);

/* A call that makes no progress, a send or a receive, found or began something
 * that needs progress: wakes the threads that wait for ep->epoll_fd. Does nothing
 * unless the endpoint is asleep. */
void wf_shm_sleep_disturb(struct wf_shm_ep *ep);

#endif
