/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages and long writes have this in common at their sender: a first
 * packet with as many bytes as fit, then a stream as the other side grants.
 */
#ifndef WF_RDM_CTS_H
#define WF_RDM_CTS_H

#include <stdbool.h>

struct wf_rdm_ep;
struct wf_rdm_pkt;
struct wf_rdm_tx;

/* The first packet; returns how many were made, 0 or 1. */
int wf_rdm_cts_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, bool with_data);

/* The device has it (handle_tx_packets_posted): the rest may be granted. */
void wf_rdm_cts_posted(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

#endif
