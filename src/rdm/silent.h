/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that do not answer. The device tries to connect until the connect
 * time-out; without a report nobody would know what an operation waits for.
 * This file writes one line to the log after two seconds and keeps a gauge for
 * `weft stat`.
 */
#ifndef WF_RDM_SILENT_H
#define WF_RDM_SILENT_H

struct wf_rdm_ep;
struct wf_rdm_peer;

/* Checks all peers; call it a few times before the warning is due. */
void wf_rdm_silent_check(struct wf_rdm_ep *ep);

/* The device gave @peer up before it was ever connected: if the warning was not
 * due yet, it is given now. */
void wf_rdm_silent_failed(struct wf_rdm_peer *peer);

#endif
