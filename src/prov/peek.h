/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD: looking at messages that have no receive.
 */
#ifndef WF_PROV_PEEK_H
#define WF_PROV_PEEK_H

#include "os/types.h"

struct wf_prov_ep;
struct wf_prov_xfer;

/* Handles a receive that carries one of the three flags. */
ssize_t wf_prov_peek_locked(struct wf_prov_ep *ep,
			    const struct wf_prov_xfer *xfer);

/* Gives up claimed messages that were never received: all of them, or those
 * that came to @owner (as in struct wf_ux). */
void wf_prov_peek_close(struct wf_prov_ep *ep, const void *owner);

#endif
