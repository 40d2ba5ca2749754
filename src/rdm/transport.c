/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as a transport: progress, sleep, and notifications of the core.
 */
#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdm/crowd.h"
#include "rdm/ep.h"
#include "rdm/in.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/place.h"
#include "rdm/post.h"
#include "rdm/pull.h"
#include "rdm/rx.h"
#include "rdm/silent.h"
#include "rdm/waits.h"

/* Completions handled per progress. */
#define COMPLETIONS 64
#define ROUNDS 4

/* Operations that nobody can wait for are sent, and retransmitted, for this
 * long after the endpoint was closed: a peer that computes acknowledges
 * nothing, and has them in its socket. */
#define LINGER (250 * WF_NS_PER_MS)

/* How often a sleeping endpoint tries to post packets, or to process packets
 * that it kept back because there was no memory or no room for their
 * completions. The application may make room without a call that makes
 * progress. */
#define RETRY_EVERY (5 * WF_NS_PER_MS)
#define STALLED_EVERY WF_NS_PER_MS

/* A peer that is gone, and has missed something, is asked less and less often
 * whether it is back: it may never be. */
#define ASK_MOST (10 * WF_NS_PER_S)

/* -- names ----------------------------------------------------------------- */

/* A peer on another host opens the device: from then on the device answers when
 * that peer connects, even while this process computes and does not call us.
 * Otherwise the peer would give up at the connect time-out. On this host, where
 * packets are an exception, a silent process has FI_WEFT_DEAD_TIMEOUT to
 * answer. */
static void inserted(void *self, uint64_t name, const struct wf_addr *addr,
		     bool taken)
{
	struct wf_rdm_ep *ep = self;
	struct wf_rdm_peer *peer;

	if (!ep->awake && !taken && !wf_base_addr_is_local(addr))
		wf_rdm_ep_try_wake(ep);
	if (!ep->awake || ep->host->forked)
		return;
	peer = wf_rdm_peer_find(ep, addr);
	if (peer)
		wf_rdm_peer_rename(peer, name);
}

void wf_rdm_ep_removed(struct wf_rdm_ep *ep, uint64_t name)
{
	struct wf_list *pos, *tmp;

	if (!ep->awake || ep->host->forked)
		return;
	if (name < ep->name_count && ep->by_name[name]) {
		ep->by_name[name]->named_by--;
		ep->by_name[name] = NULL;
	}
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (peer->name != name)
			continue;
		wf_rdm_peer_rename(peer, WF_MATCH_ANY);
		if (wf_rdm_peer_needs(peer))
			wf_rdm_peer_fail(peer, FI_ECANCELED);
	}
}

/* Checks everything again that has a name. */
static void renamed(void *self)
{
	struct wf_rdm_ep *ep = self;
	const struct wf_names *names = &ep->host->names;
	struct wf_list *pos, *tmp;

	if (!ep->awake || ep->host->forked)
		return;
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);
		struct wf_addr addr;

		/* Looks the name up; a name that is being changed counts as
		 * absent. */
		if (peer->name != WF_MATCH_ANY &&
		    (names->get(names->arg, peer->name, &addr) ||
		     !wf_base_addr_equal(&addr, &peer->addr)))
			wf_rdm_ep_removed(ep, peer->name);
		if (peer->name == WF_MATCH_ANY)
			wf_rdm_peer_rename(
				peer, names->find(names->arg, &peer->addr));
	}
}

static void unregistered(void *self, uint64_t key)
{
	struct wf_rdm_ep *ep = self;
	struct wf_list *pos, *tmp, *inner, *next;

	if (!ep->awake || ep->host->forked)
		return;
	/* The device may be in the middle of an access by a peer. */
	if (ep->direct)
		wf_nic_sync(ep->nic);
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		wf_list_for_each (inner, next, &peer->rxs) {
			struct wf_rdm_rx *rx =
				wf_container_of(inner, struct wf_rdm_rx, link);

			if (wf_rdm_pull_uses(rx, key))
				wf_rdm_rx_fail(rx, FI_EKEYREJECTED, true);
		}
	}
}

/* -- peers that left ------------------------------------------------------- */

/* The device lost a peer. Everything that arrived from it before has been
 * processed. */
static void follow_resets(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->resets = wf_nic_counter(ep->deaths);
	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (!peer->leaving)
			wf_rdm_peer_check(peer);
	}
}

/* -- progress -------------------------------------------------------------- */

static void wake(void *self)
{
	struct wf_rdm_ep *ep = self;

	if (!ep->dozing)
		return;
	ep->dozing = false;
	wf_nic_wait_end(ep->nic);
}

static int take_completions(struct wf_rdm_ep *ep)
{
	int total = 0;

	struct wf_nic_wc wc[COMPLETIONS];

	for (int i = 0; i < ROUNDS; i++) {
		int count = wf_nic_cq_poll(ep->cq, wc, COMPLETIONS);

		for (int j = 0; j < count; j++) {
			if (wc[j].flags & WF_NIC_WC_RECV)
				wf_rdm_in_received(ep, &wc[j]);
			else
				wf_rdm_pkt_done(ep, &wc[j]);
		}
		total += count;
		if (count < COMPLETIONS)
			break;
	}
	return total;
}

/* Each peer once, so that none takes the room of all others. */
static void pump(struct wf_rdm_ep *ep)
{
	struct wf_list *last = ep->active.prev;
	bool resets = wf_rdm_ep_has_resets(ep);
	uint32_t before = ep->posts;

	while (!wf_base_list_empty(&ep->active) && wf_rdm_ep_has_room(ep)) {
		struct wf_list *pos = ep->active.next;
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, active_link);

		wf_base_list_del(&peer->active_link);
		peer->active = false;
		if ((wf_unlikely(resets) && wf_rdm_peer_is_reset(peer)) ||
		    wf_rdm_post_pump(peer, WF_RDM_PEER_BUDGET))
			wf_rdm_post_activate(peer);
		if (pos == last)
			break;
	}
	ep->blocked = ep->posts == before;
}

/* Packets that came before their turn wait for others of the same sender. */
static bool waits_for(const struct wf_rdm_peer *peer)
{
	return !wf_base_list_empty(&peer->flight) ||
	       !wf_base_list_empty(&peer->rxs) || peer->order.held;
}

static bool has_missed(const struct wf_rdm_peer *peer)
{
	return peer->gone && !wf_base_list_empty(&peer->again);
}

/* Tests have less patience. */
static uint64_t probe_every(const struct wf_rdm_ep *ep)
{
	uint64_t most = ep->attr.warn_ms * WF_NS_PER_MS / 2;

	return most && most < WF_RDM_PROBE_EVERY ? most : WF_RDM_PROBE_EVERY;
}

/* Whether it is time to find out whether the peer is there. */
static bool is_due(struct wf_rdm_peer *peer)
{
	const struct wf_rdm_ep *ep = peer->ep;

	if (waits_for(peer))
		return true;
	if (!has_missed(peer) || ep->now < peer->ask_at)
		return false;
	peer->ask_wait = peer->ask_wait ? 2 * peer->ask_wait : probe_every(ep);
	if (peer->ask_wait > ASK_MOST)
		peer->ask_wait = ASK_MOST;
	peer->ask_at = ep->now + peer->ask_wait;
	return true;
}

/* An operation that waits for the peer's answer has no request at the device
 * that could report that the peer is gone. So an empty write is sent as a
 * probe. */
static void probe(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (peer->outstanding || !is_due(peer))
			continue;
		peer->owes_probe = true;
		wf_rdm_post_activate(peer);
	}
}

static void tick(void *self, uint64_t now)
{
	struct wf_rdm_ep *ep = self;

	ep->now = now;
}

static uint64_t look(void *self, uint64_t now)
{
	struct wf_rdm_ep *ep = self;

	if (wf_unlikely(!ep->awake)) {
		wf_rdm_ep_hear_again(ep, now);
		return UINT64_MAX;
	}
	wf_rdm_stats_flush(ep);
	if (now < ep->probe_at)
		return UINT64_MAX;
	ep->probe_at = now + probe_every(ep);
	probe(ep);
	wf_rdm_silent_check(ep);
	ep->aging = true;
	return UINT64_MAX;
}

bool wf_rdm_ep_progress(struct wf_rdm_ep *ep)
{
	bool resets;
	int did, got;

	if (wf_unlikely(!ep->awake || ep->host->forked))
		return false;
	if (wf_unlikely(ep->dozing))
		wake(ep);
	did = wf_nic_progress(ep->nic);
	if (wf_unlikely(!wf_base_list_empty(&ep->stalled)))
		wf_rdm_in_retry(ep);
	resets = wf_rdm_ep_has_resets(ep);
	got = take_completions(ep);
	if (wf_unlikely(wf_nic_has_placed(ep->nic)))
		did += wf_rdm_place_done(ep);
	if (wf_unlikely(resets && got < ROUNDS * COMPLETIONS &&
			wf_base_list_empty(&ep->stalled)))
		follow_resets(ep);
	did += got;
	if (wf_unlikely((ep->crowded || ep->aging ||
			 !wf_base_list_empty(&ep->leaving)) &&
			got < ROUNDS * COMPLETIONS &&
			!wf_rdm_ep_has_resets(ep)))
		wf_rdm_crowd_run(ep);
	if (!wf_base_list_empty(&ep->active))
		pump(ep);
	wf_rdm_ep_ring(ep);
	return did;
}

static enum wf_polled rdm_poll(void *self)
{
	struct wf_rdm_ep *ep = self;

	if (wf_rdm_ep_progress(ep))
		return WF_POLLED_SOMETHING;
	return ep->outstanding ? WF_POLLED_WAITING : WF_POLLED_NOTHING;
}

/* -- sleep ----------------------------------------------------------------- */

/* When some peer is to be asked whether it is there. */
static uint64_t next_probe(const struct wf_rdm_ep *ep)
{
	uint64_t at = UINT64_MAX;
	const struct wf_list *pos;

	for (pos = ep->peers.next; pos != &ep->peers; pos = pos->next) {
		const struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		if (waits_for(peer))
			return ep->probe_at;
		if (wf_unlikely(has_missed(peer)) && peer->ask_at < at)
			at = peer->ask_at;
	}
	return at > ep->probe_at ? at : ep->probe_at;
}

static void lower(uint64_t *deadline, uint64_t ns)
{
	if (ns < *deadline)
		*deadline = ns;
}

bool wf_rdm_ep_doze(struct wf_rdm_ep *ep, uint64_t *deadline)
{
	uint64_t device;
	bool waits;

	if (!ep->awake && ep->deaf)
		lower(deadline, ep->wake_at);
	if (!ep->awake || ep->host->forked)
		return true;
	wf_rdm_stats_flush(ep);
	waits = !wf_base_list_empty(&ep->active);
	if ((waits && !ep->blocked) || !wf_rdm_crowd_doze(ep, deadline))
		return false;
	ep->dozing = !wf_nic_wait_begin(ep->nic, ep->cq, &device);
	if (!ep->dozing)
		return false;
	lower(deadline, device);
	lower(deadline, next_probe(ep));
	/* The device wakes us when it has room again. If memory or numbers are
	 * missing, nobody does. */
	if (waits)
		lower(deadline, wf_base_clock_ns() + RETRY_EVERY);
	if (!wf_base_list_empty(&ep->stalled))
		lower(deadline, wf_base_clock_ns() + STALLED_EVERY);
	return true;
}

static bool doze(void *self, uint64_t *deadline)
{
	return wf_rdm_ep_doze(self, deadline);
}

/* The device checked when it began to wait. */
static bool has_work(void *self, uint64_t *deadline)
{
	(void)self;
	(void)deadline;
	return false;
}

/* -- the rest of the table --------------------------------------------------- */

static void rdm_close(void *self)
{
	wf_rdm_ep_close(self);
}

static void forked(void *self)
{
	struct wf_rdm_ep *ep = self;

	/* A thread that does not exist in the child may hold its lock. */
	if (ep->nic)
		wf_nic_forked(ep->nic);
	ep->nic = NULL;
	if (ep->awake)
		wf_base_stats_forked(&ep->stats);
}

/* Packets reach every address. The core asks the other transports before. */
static int reaches(const void *self, const struct wf_addr *addr)
{
	(void)self;
	(void)addr;
	return true;
}

static int submit(void *self, uint64_t dst, const struct wf_tx *tx)
{
	int err = wf_rdm_ep_submit(self, dst, tx);

	return wf_unlikely(err == -ENOMEM) ? -EAGAIN : err;
}

static void waits(void *self, struct wf_waits *to, uint64_t now)
{
	wf_rdm_waits(self, to, now);
}

static bool has_peers(const void *self)
{
	const struct wf_rdm_ep *ep = self;

	return ep->peer_count;
}

static bool drain(void *self)
{
	return wf_rdm_ep_drain(self);
}

static void removed(void *self, uint64_t name)
{
	wf_rdm_ep_removed(self, name);
}

const struct wf_transport wf_rdm_transport = {
	.name = "packets",
	.linger_ns = LINGER,
	.close = rdm_close,
	.forked = forked,
	.reaches = reaches,
	.submit = submit,
	.has_peers = has_peers,
	.poll = rdm_poll,
	.tick = tick,
	.look = look,
	.waits = waits,
	.drain = drain,
	.doze = doze,
	.has_work = has_work,
	.wake = wake,
	.inserted = inserted,
	.removed = removed,
	.renamed = renamed,
	.unregistered = unregistered,
};
