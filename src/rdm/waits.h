/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header reports the waits of an endpoint's operations in the form of the
 * core's report (transport/transport.h, waits).
 */
#ifndef WF_RDM_WAITS_H
#define WF_RDM_WAITS_H

#include "base/waits.h"

struct wf_rdm_ep;

void wf_rdm_waits(struct wf_rdm_ep *ep, struct wf_waits *waits, uint64_t now);

#endif
