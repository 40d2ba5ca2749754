/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both protocols of reading have this in common; they differ in whether the
 * answer is one packet.
 */
#ifndef WF_RDM_RTR_H
#define WF_RDM_RTR_H

#include <stdbool.h>
#include <stdint.h>

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_protocol;
struct wf_rdm_tx;
struct wf_wire_packet;

/* Bytes that one packet brings back. */
uint64_t wf_rdm_rtr_room(const struct wf_rdm_peer *peer);

/* Asks; @first bytes may come at once. Returns how many packets were made. */
int wf_rdm_rtr_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, uint64_t first);

/* The data of the answer: for protocols (answered). */
int wf_rdm_rtr_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			const struct wf_wire_packet *packet);

/* Grants more of a long one (tx is in peer->asking). False: no room. */
bool wf_rdm_rtr_ask(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx);

/* At the target. */
int wf_rdm_rtr_receive(struct wf_rdm_peer *peer,
		       const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet);

#endif
