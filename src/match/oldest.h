/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header knows which receives have been posted for longest. Not for paths
 * that messages take: it looks at every chain.
 */
#ifndef WF_MATCH_OLDEST_H
#define WF_MATCH_OLDEST_H

#include "match/match.h"

/* Fills in up to @room receives of @m that are posted, the oldest first, and
 * returns how many. Buffers for several messages (FI_MULTI_RECV) are left out:
 * nobody waits for one message there. */
uint32_t wf_match_oldest(const struct wf_match *m, const struct wf_rx **found,
			 uint32_t room);

#endif
