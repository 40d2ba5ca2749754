/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three protocols of atomics have this in common: a request of one packet,
 * run at the target in the order of its number. Longer ones come in pieces
 * (ep.c), each of which is whole elements.
 */
#ifndef WF_RDM_RTA_H
#define WF_RDM_RTA_H

#include <stdbool.h>
#include <stddef.h>

#include "op/amo.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_protocol;
struct wf_rdm_tx;
struct wf_wire_packet;

/* Bytes of target memory that one packet can be about. */
size_t wf_rdm_rta_room(const struct wf_rdm_peer *peer);

bool wf_rdm_rta_can_send(const struct wf_rdm_tx *tx, enum wf_op_amo_kind kind,
			 size_t room);
int wf_rdm_rta_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, bool answered);

/* The values that were there: for protocols (answered) that fetch. */
int wf_rdm_rta_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			const struct wf_wire_packet *packet);

/* At the target. */
int wf_rdm_rta_receive(struct wf_rdm_peer *peer,
		       const struct wf_rdm_protocol *protocol,
		       const struct wf_wire_packet *packet,
		       enum wf_op_amo_kind kind);

#endif
