/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that were connected and are lost: one line in the log for each.
 */
#ifndef WF_RDM_DEAD_H
#define WF_RDM_DEAD_H

#include <stdbool.h>

struct wf_rdm_peer;

/* Call it before the operations of the lost life fail: if there are none, the
 * loss is no news, because a peer may leave when all is done. @restarted: another
 * process is at its address. */
void wf_rdm_dead_tell(struct wf_rdm_peer *peer, bool restarted);

#endif
