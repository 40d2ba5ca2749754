/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of operations by packets, while somebody traces the endpoint
 * (core/trace.h): called only if host->trace is set.
 */
#ifndef WF_RDM_TRACE_H
#define WF_RDM_TRACE_H

#include "rdm/tx.h"

/* An operation has its number, and is about to leave. */
void wf_rdm_trace_post(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx);

/* The end of an operation is reported. */
void wf_rdm_trace_done(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx);

/* The first packet of a message came. */
void wf_rdm_trace_came(struct wf_rdm_peer *peer,
		       const struct wf_wire_packet *packet);

#endif
