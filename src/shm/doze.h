/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells peers that this endpoint sleeps: a peer that sends to us sets our bell
 * and wakes us with a byte on the socket, and so does a peer that answers us or
 * gives us credit. The core (core/sleep.c) decides when, and runs the barrier
 * between the first and the second of these functions.
 */
#ifndef WF_SHM_DOZE_H
#define WF_SHM_DOZE_H

#include <stdbool.h>
#include <stdint.h>

struct wf_shm_ep;

/* As doze(), has_work() and wake() of transport/transport.h. */
bool wf_shm_doze_begin(struct wf_shm_ep *ep);
bool wf_shm_doze_has_work(struct wf_shm_ep *ep, uint64_t *deadline);
void wf_shm_doze_end(struct wf_shm_ep *ep);

#endif
