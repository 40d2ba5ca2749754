/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs: injected messages that report nothing, to a peer in its ordinary
 * state, are written behind each other into one packet as long as the device
 * has not sent it. A run is one request of the device, one wf_rdm_pkt and one
 * wf_rdm_tx, and counts as one wherever these are counted. Each message of a
 * run has a number (msg_id) and counts as one of the operations that an
 * endpoint may have under way. If a run fails, each message that did not
 * arrive is reported.
 *
 * A message that is sent at once is a run of one. So is a send that may complete
 * before the peer has acknowledged it: it completes when the device has written
 * it, and the copy in its packet is sent again if the connection breaks. If it
 * fails after that, it is reported as an injected message is, with no context.
 * One that the device could not write at once, to its last byte, completes as all
 * others do: the end of the program would lose the rest.
 */
#ifndef WF_RDM_RUN_H
#define WF_RDM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "op/tx.h"
#include "rdm/ep.h"
#include "rdm/peer.h"

struct wf_rdm_pkt;
struct wf_rdm_tx;

/* As much as can be injected. */
#define WF_RDM_RUN_MAX 4096u
/* Sends that complete early. If so many requests to the peer are under way, the
 * program does not wait for this one, and the copy is only work. */
#define WF_RDM_KEPT_MAX (16u << 10)
#define WF_RDM_KEPT_MOST 8u

/* After set_limits(). */
void wf_rdm_run_open(struct wf_rdm_ep *ep);

/* Whether @req may complete before the peer has it. One that is counted may not:
 * a counter cannot take back what it has counted. */
static inline bool wf_rdm_run_keeps(const struct wf_rdm_peer *peer,
				    const struct wf_tx *req)
{
	return req->wants_comp && !req->transmit && !req->delivery &&
	       req->len <= WF_RDM_KEPT_MAX &&
	       peer->outstanding < WF_RDM_KEPT_MOST;
}

static inline bool wf_rdm_run_is_silent(const struct wf_tx *req)
{
	return req->inject && !req->wants_comp && !req->context &&
	       req->len <= WF_RDM_RUN_MAX;
}

/* Whether @req can be a message of a run now. Others that wait for the peer go
 * first. */
static inline bool wf_rdm_run_fits(const struct wf_rdm_peer *peer,
				   const struct wf_tx *req)
{
	const struct wf_rdm_ep *ep = peer->ep;

	return ep->run_head && req->kind == WF_TX_SEND && !req->cntr &&
	       !req->fence &&
	       (wf_rdm_run_is_silent(req) || wf_rdm_run_keeps(peer, req)) &&
	       peer->greeted_us && !peer->active && !peer->barred &&
	       !peer->writes && !peer->reads && !peer->life.fixed &&
	       wf_base_list_empty(&peer->queue) && !ep->host->trace &&
	       !wf_base_log_debugs();
}

/* 0; -EAGAIN: too many are under way; 1: it is to be sent by itself. */
int wf_rdm_run_send(struct wf_rdm_peer *peer, const struct wf_tx *req);

/* Where the messages of a run begin. */
uint8_t *wf_rdm_run_bytes(struct wf_rdm_pkt *pkt);

/* No message is added to it any more. */
void wf_rdm_run_close(struct wf_rdm_tx *tx);
/* The run has failed; @good of its messages have arrived. */
void wf_rdm_run_lost(struct wf_rdm_pkt *pkt, uint32_t good);
/* Reports the failure of the others. */
void wf_rdm_run_report(const struct wf_rdm_tx *tx);
void wf_rdm_run_free(struct wf_rdm_tx *tx);

#endif
