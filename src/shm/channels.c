/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channels of an endpoint.
 */
#include "shm/channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/place.h"
#include "shm/conn.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/letter.h"
#include "shm/name.h"
#include "shm/offer.h"
#include "shm/silence.h"
#include "shm/tx.h"

#define OUTS_MAX ((uint64_t)1 << 32)

/* -- by name --------------------------------------------------------------- */

static int make_room_for(struct wf_shm_ep *ep, uint64_t dst)
{
	size_t count = ep->out_count ? ep->out_count : 16;
	struct wf_shm_out **outs;
	bool *met;

	if (dst < ep->out_count)
		return 0;
	if (dst >= OUTS_MAX)
		return -EINVAL;
	while (count <= dst)
		count *= 2;
	outs = realloc(ep->outs, count * sizeof(*outs));
	if (!outs)
		return -ENOMEM;
	ep->outs = outs;
	met = realloc(ep->met, count * sizeof(*met));
	if (!met)
		return -ENOMEM;
	ep->met = met;
	memset(outs + ep->out_count, 0,
	       (count - ep->out_count) * sizeof(*outs));
	memset(met + ep->out_count, 0, (count - ep->out_count) * sizeof(*met));
	ep->out_count = count;
	return 0;
}

static void forget(struct wf_shm_ep *ep, struct wf_shm_out *out)
{
	if (out->dst < ep->out_count && ep->outs[out->dst] == out)
		ep->outs[out->dst] = NULL;
	out->gone = true;
	out->keep = false;
	out->dst = WF_MATCH_ANY;
	if (out->offer && out->state == WF_SHM_OUT_GREETED)
		wf_shm_conn_cut(out, wf_base_clock_ns());
	if (!out->offer) {
		wf_shm_out_free(out);
		return;
	}
	/* The peer has answered, and may be using the offer at this moment. The
	 * channel stays until our end of the other one is open (reap_outs()). */
	if (out->state == WF_SHM_OUT_OPEN)
		wf_shm_out_mark_dead(out, ECANCELED, false);
}

/* If only one of the two states a place (a network namespace): an address of this
 * node then means our own namespace, and any other address means the process that
 * has it, wherever that is. */
bool wf_shm_channels_is_meant(const struct wf_shm_ep *ep,
			      const struct wf_addr *peer,
			      const struct wf_addr *known)
{
	const struct wf_shm_home *home = &ep->attr.home;
	uint64_t of_peer = wf_base_place_of(peer);
	uint64_t of_known = wf_base_place_of(known);

	if (!wf_base_addr_equal(peer, known))
		return false;
	if (of_peer == of_known)
		return true;
	if (of_peer && of_known)
		return false;
	return !wf_shm_name_is_elsewhere(home, of_peer ? peer : known) ||
	       !wf_base_addr_is_local(peer);
}

uint64_t wf_shm_channels_name(const struct wf_shm_ep *ep,
			      const struct wf_addr *addr)
{
	const struct wf_names *names = &ep->host->names;
	struct wf_addr known;
	uint64_t name;

	if (addr->sa.sa_family == AF_UNSPEC)
		return WF_MATCH_ANY; /* a peer without an address */
	name = names->find(names->arg, addr);
	/* The AV does not know in which place we are. */
	if (name == WF_MATCH_ANY || names->get(names->arg, name, &known) ||
	    wf_shm_channels_is_meant(ep, addr, &known))
		return name;
	return WF_MATCH_ANY;
}

/* Returns a channel to @dst in any state except dead. */
static int open_out(struct wf_shm_ep *ep, uint64_t dst, const struct wf_tx *tx,
		    struct wf_shm_out **out)
{
	struct wf_addr addr;
	int err = ep->host->names.get(ep->host->names.arg, dst, &addr);
	bool used;

	if (err)
		return err;
	err = make_room_for(ep, dst);
	if (err)
		return err;
	*out = wf_shm_out_open(ep, dst, &addr);
	if (!*out)
		return -ENOMEM;
	used = wf_shm_offer_use(*out);
	ep->outs[dst] = *out;
	/* An injected message goes with the hello (early.h). */
	if (!used && !tx->inject)
		wf_shm_conn_try(*out, (*out)->since);
	wf_transport_host_wake(ep->host); /* for retries and the time-out */
	return 0;
}

int wf_shm_channels_submit(struct wf_shm_ep *ep, uint64_t dst,
			   const struct wf_tx *tx)
{
	struct wf_shm_out *out = wf_shm_ep_out(ep, dst);
	int err;

	if (ep->host->forked)
		return -EOPNOTSUPP;
	if (out && out->state == WF_SHM_OUT_DEAD) {
		err = out->err;
		if (!out->keep)
			return -EAGAIN; /* freed by the next progress */
		/* The channel may have died since the last progress, which
		 * would have failed its pending operations. */
		wf_shm_out_fail_all(out, err);
		forget(ep, out);
		out = NULL;
		/* For an injected message only the call can report the
		 * error. */
		if (tx->inject)
			return -err;
	}
	if (!out) {
		err = open_out(ep, dst, tx, &out);
		if (err)
			return err;
	}
	return wf_shm_out_send(out, tx);
}

void wf_shm_channels_inserted(struct wf_shm_ep *ep, uint64_t name,
			      const struct wf_addr *addr)
{
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		if (wf_shm_channels_is_meant(ep, &ep->watch.ins[i]->addr, addr))
			wf_shm_in_rename(ep->watch.ins[i], name);
	}
	wf_shm_letter_inserted(ep, name, addr);
}

void wf_shm_channels_removed(struct wf_shm_ep *ep, uint64_t name)
{
	struct wf_shm_out *out = wf_shm_ep_out(ep, name);

	for (uint32_t i = 0; i < ep->watch.count; i++) {
		if (ep->watch.ins[i]->src == name)
			wf_shm_in_rename(ep->watch.ins[i], WF_MATCH_ANY);
	}
	wf_shm_letter_removed(ep, name);
	if (!out)
		return;
	/* The peer may have answered: the messages to it have arrived. */
	if (out->state == WF_SHM_OUT_GREETED)
		wf_shm_conn_out_ready(&out->sock, 0, wf_base_clock_ns());
	/* As a message in a ring, a letter has left: the peer may read it yet. */
	if (out->letter)
		wf_shm_early_end(out);
	wf_shm_out_fail_all(out, FI_ECANCELED);
	forget(ep, out);
}

/* Looks up all names again. */
void wf_shm_channels_renamed(struct wf_shm_ep *ep)
{
	const struct wf_names *names = &ep->host->names;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);
		struct wf_addr addr;

		if (out->gone)
			continue;
		if (names->get(names->arg, out->dst, &addr) ||
		    !wf_base_addr_equal(&addr, &out->addr) ||
		    wf_base_place_of(&addr) != wf_base_place_of(&out->addr))
			wf_shm_channels_removed(ep, out->dst);
	}
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		struct wf_shm_in *in = ep->watch.ins[i];
		uint64_t src;

		src = wf_shm_channels_name(ep, &in->addr);
		if (src != in->src)
			wf_shm_in_rename(in, src);
	}
	wf_shm_letter_renamed(ep);
}

int wf_shm_channels_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in)
{
	int err = wf_shm_watch_add(&ep->watch, in);

	if (err)
		return err;
	if (!(in->features & WF_SHM_FEATURE_BARRIER))
		ep->host->all_joined = false;
	wf_shm_ep_busy(ep);
	return 0;
}

void wf_shm_channels_drop_in(struct wf_shm_ep *ep, struct wf_shm_in *in)
{
	wf_shm_watch_drop(&ep->watch, in);
	wf_shm_ep_busy(ep);
}

/* -- those that died -------------------------------------------------------- */

static void reap_ins(struct wf_shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->watch.count;) {
		struct wf_shm_in *in = ep->watch.ins[i];

		/* Messages that a closed peer wrote are still delivered, after
		 * its letter. */
		if (!in->broken && in->ended && wf_shm_in_ready(in)) {
			if (wf_base_list_empty(&ep->letters))
				wf_shm_in_poll(in, WF_SHM_IN_BUDGET);
			ep->draining = true;
			i++;
			continue;
		}
		if (!in->broken && !in->ended) {
			i++;
			continue;
		}
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_peers_lost, 1);
		wf_shm_channels_drop_in(ep, in);
		wf_shm_in_close(in, in->broken ? FI_EIO : FI_ECONNRESET);
	}
}

/* The peer no longer reads. Operations that it acknowledged were delivered. */
static void end_shut(struct wf_shm_out *out)
{
	if (!wf_shm_out_settle(out)) {
		out->ep->settling = true;
		return;
	}
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_peers_lost, 1);
	wf_shm_out_mark_dead(out, ECONNRESET, false);
}

static void reap_outs(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->shut && out->state == WF_SHM_OUT_OPEN)
			end_shut(out);
		if (out->state != WF_SHM_OUT_DEAD)
			continue;
		wf_shm_out_fail_all(out, out->err);
		if (!wf_shm_offer_close(out)) {
			ep->reap = true; /* no memory: again */
			continue;
		}
		wf_shm_out_release(out);
		if (!out->keep)
			forget(ep, out);
	}
}

static void spare_fd(struct wf_shm_regs *regs)
{
	/* Without memory it is kept as before. */
	if (regs->memfd >= 0)
		wf_shm_regs_map(regs);
}

void wf_shm_channels_spare_fds(struct wf_shm_ep *ep, int err, uint64_t now)
{
	struct wf_list *pos, *tmp;

	wf_shm_silence_short(ep, err, now);
	if (!wf_shm_regs_scarce(err))
		return;
	wf_list_for_each (pos, tmp, &ep->all_outs)
		spare_fd(&wf_container_of(pos, struct wf_shm_out, link)->regs);
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		struct wf_shm_offer *offer = ep->watch.ins[i]->offer;

		if (offer)
			spare_fd(&offer->regs);
	}
}

void wf_shm_channels_reap(struct wf_shm_ep *ep)
{
	ep->reap = false;
	ep->draining = false;
	ep->settling = false;
	reap_outs(ep);
	reap_ins(ep);
}
