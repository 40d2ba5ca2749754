/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA that the device does by itself: it accesses the target's memory by the
 * key of its registration, without the target's application. For devices that
 * know the keys of their users (caps.user_keys), and for those whose own keys
 * the users have (caps.hard_reads): these have 32 bits. An application that has
 * another key of 32 bits also has a virtual address, and nothing else is accessed.
 */
#ifndef WF_RDM_DIRECT_H
#define WF_RDM_DIRECT_H

#include <stdbool.h>
#include <stddef.h>

#include "nic/nic.h"
#include "nic/wqe_defs.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_tx;
struct wf_wire_packet;

/* For the device: the memory that @want names here. Any thread. */
enum wf_nic_status
wf_rdm_direct_find(void *ep, const struct wf_nic_access *want, void **at);

/* Both protocols have these functions: see protocol.h. */
bool wf_rdm_direct_can_use(const struct wf_rdm_ep *ep,
			   const struct wf_rdm_tx *tx, size_t room);
int wf_rdm_direct_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			    struct wf_rdm_pkt **pkts, int max);
bool wf_rdm_direct_completed(const struct wf_rdm_tx *tx);
int wf_rdm_direct_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			   const struct wf_wire_packet *packet);

#endif
