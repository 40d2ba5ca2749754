/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages whose payload the device receives where it belongs: into the receive
 * that takes the message, or into the memory of one that waits for its receive.
 * See wf_nic_place().
 */
#ifndef WF_RDM_PLACE_H
#define WF_RDM_PLACE_H

#include "rdm/in.h"
#include "rdm/rx.h"
#include "wire/packet.h"

/* The header of an eager message is in @buf, and buf->more bytes wait. 0;
 * -EAGAIN: no memory, give it again; -EPROTO: it is wrong. */
int wf_rdm_place_receive(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet,
			 struct wf_rdm_buf *buf);

/* The message was discarded: the device need not deliver the bytes. */
void wf_rdm_place_drop(struct wf_rdm_ep *ep, const struct wf_rdm_buf *buf);

/* Finishes those that the device is done with. Returns how many. */
int wf_rdm_place_done(struct wf_rdm_ep *ep);

/* @rx has a receive, or is over: its bytes no longer count as waiting for a
 * receive. A peer with many such bytes is asked to announce long messages
 * (WF_WIRE_FEATURE_ASK_FIRST), so that they stay with their sender. */
void wf_rdm_place_claim(struct wf_rdm_rx *rx);

/* From here on the device does not touch the memory. */
void wf_rdm_place_end(struct wf_rdm_rx *rx);

#endif
