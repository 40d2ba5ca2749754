/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telling peers that we sleep: who sends to us rings our bell and wakes us by a
 * byte on the socket; who answers us or gives us credit does, too. The core
 * (core/sleep.c) says when, and runs the barrier between the first and the
 * second of these.
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
