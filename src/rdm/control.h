/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that belong to an operation which is under way: handshakes, grants,
 * data, answers, errors. Requests go to their protocols instead.
 */
#ifndef WF_RDM_CONTROL_H
#define WF_RDM_CONTROL_H

#include <stdbool.h>

struct wf_rdm_peer;
struct wf_rdm_tx;
struct wf_wire_packet;

/* 0 or -EPROTO: drop it. */
int wf_rdm_control_receive(struct wf_rdm_peer *peer,
			   const struct wf_wire_packet *packet);

#endif
