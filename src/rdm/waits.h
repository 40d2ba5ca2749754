/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the operations of an endpoint wait for, as the core's report wants it
 * (transport/transport.h, waits).
 */
#ifndef WF_RDM_WAITS_H
#define WF_RDM_WAITS_H

#include "base/waits.h"

struct wf_rdm_ep;

void wf_rdm_waits(struct wf_rdm_ep *ep, struct wf_waits *waits, uint64_t now);

#endif
