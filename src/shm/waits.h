/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the operations of an endpoint wait for, as the core's report wants it
 * (transport/transport.h, waits).
 */
#ifndef WF_SHM_WAITS_H
#define WF_SHM_WAITS_H

#include "base/waits.h"

struct wf_shm_ep;

void wf_shm_waits(struct wf_shm_ep *ep, struct wf_waits *waits, uint64_t now);

#endif
