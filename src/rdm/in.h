/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive buffers, and the path of a packet from the device to its protocol.
 */
#ifndef WF_RDM_IN_H
#define WF_RDM_IN_H

#include <stdint.h>

#include "nic/nic.h"
#include "rdm/ep.h"

struct wf_rdm_buf {
	struct wf_list link;	  /* in ep->stalled */
	struct wf_rdm_peer *peer; /* NULL: there is none yet ... */
	struct wf_addr from;	  /* ... for this one */
	uint8_t *memory;
	uint32_t left;	/* of a run: bytes that were not taken */
	uint8_t *bytes; /* the packet */
	uint32_t len;
	uint32_t more;	/* bytes behind it that ask for a place ... */
	uint32_t place; /* ... by this number; see place.h */
};

/* Makes the buffers. 0 or -ENOMEM. */
int wf_rdm_in_open(struct wf_rdm_ep *ep);
/* Gives them to the device. */
void wf_rdm_in_begin(struct wf_rdm_ep *ep);
void wf_rdm_in_close(struct wf_rdm_ep *ep);

/* A packet came. */
void wf_rdm_in_received(struct wf_rdm_ep *ep, const struct wf_nic_wc *wc);

/* Takes a packet that is in memory of the device: hear() of
 * struct wf_nic_qp_attr. */
bool wf_rdm_in_hear(void *arg, uint16_t ah, const uint8_t *bytes, uint32_t len);

/* Packets of @peer that are kept and whose turn it is. */
void wf_rdm_in_catch_up(struct wf_rdm_peer *peer);

/* No more packets of its life will arrive. Packets that are kept have their
 * turn now, although messages before them are missing: those failed at their
 * sender. False: there is no memory for it, try again. */
bool wf_rdm_in_finish(struct wf_rdm_peer *peer);

/* Tries again to process the packets that were kept back. */
void wf_rdm_in_retry(struct wf_rdm_ep *ep);

#endif
