/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that were connected and are lost.
 */
#include "rdm/dead.h"

#include "base/clock.h"
#include "base/log.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

/* Peers that are named, of those that are lost one soon after the other: there may
 * be a thousand on a host that fails. */
#define LINES 4
#define APART (600 * WF_NS_PER_S)

static unsigned int count_txs(const struct wf_list *head)
{
	const struct wf_list *pos;
	unsigned int count = 0;

	for (pos = head->next; pos != head; pos = pos->next) {
		const struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		/* Pieces of an operation are none of their own. */
		count += !tx->reported && !tx->err && !tx->whole;
	}
	return count;
}

static unsigned int count_rxs(const struct wf_list *head)
{
	const struct wf_list *pos;
	unsigned int count = 0;

	for (pos = head->next; pos != head; pos = pos->next) {
		const struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, link);

		count += !rx->over && !rx->err;
	}
	return count;
}

void wf_rdm_dead_tell(struct wf_rdm_peer *peer, bool restarted)
{
	struct wf_rdm_ep *ep = peer->ep;
	unsigned int ours = count_txs(&peer->queue) + count_txs(&peer->flight);
	unsigned int its = count_rxs(&peer->rxs);
	char text[WF_ADDR_STR_LEN];

	if (!ours && !its)
		return;
	if (ep->now - ep->dead_at > APART)
		ep->dead_lines = 0;
	ep->dead_at = ep->now;
	if (ep->dead_lines == LINES)
		wf_warn("more peers are lost, which are not named here");
	if (ep->dead_lines > LINES)
		return;
	if (ep->dead_lines++ == LINES)
		return;
	wf_warn("peer %s is lost: %s, %.1f s after the last packet or "
		"operation; %u operations of ours and %u of its had not ended",
		wf_base_addr_str(&peer->addr, text, sizeof(text)),
		restarted ?
			"another process is at its address" :
			"its process has ended, or its host does not answer",
		(double)(ep->now - peer->used) / 1e9, ours, its);
}
