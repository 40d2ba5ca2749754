/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header reports the waits of an endpoint's operations in the form of the
 * core's report (transport/transport.h, waits).
 */
#ifndef WF_SHM_WAITS_H
#define WF_SHM_WAITS_H

#include "base/waits.h"

struct wf_shm_ep;

void wf_shm_waits(struct wf_shm_ep *ep, struct wf_waits *waits, uint64_t now);

#endif
