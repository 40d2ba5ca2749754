/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that do not answer. The device asks for a connection, and gives up at
 * the connect time-out; until then nobody would know what an operation waits
 * for. This says so: one line in the log after two seconds, and a gauge for
 * `weft stat`.
 */
#ifndef WF_RDM_SILENT_H
#define WF_RDM_SILENT_H

struct wf_rdm_ep;
struct wf_rdm_peer;

/* Looks at all peers; often enough is a few times before the warning is due. */
void wf_rdm_silent_check(struct wf_rdm_ep *ep);

/* The device gave @peer up before it was ever connected: if that was before the
 * warning was due, now is the time. */
void wf_rdm_silent_failed(struct wf_rdm_peer *peer);

#endif
