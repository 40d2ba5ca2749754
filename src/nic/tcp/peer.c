/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: finds them by address, begins and ends their lives, and continues a
 * channel when a new connection replaces a broken one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "os/process.h"

/* How often one without a handle is looked at. */
#define RELEASE_EVERY (1 * WF_NS_PER_S)

static struct wf_list *bucket_of(struct wf_tcp_dev *dev,
				 const struct wf_addr *addr)
{
	return &dev->buckets[wf_base_addr_hash(addr) % 256];
}

struct wf_tcp_peer *wf_tcp_peer_find(struct wf_tcp_dev *dev,
				     const struct wf_addr *addr)
{
	struct wf_list *head = bucket_of(dev, addr), *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_tcp_peer *peer =
			wf_container_of(pos, struct wf_tcp_peer, bucket);

		if (wf_base_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

static uint64_t new_life(void)
{
	uint64_t life = 0;

	while (!life) {
		if (wf_os_random(&life, sizeof(life), false))
			life = wf_base_clock_ns() ^ (uint64_t)wf_os_getpid()
							    << 48;
	}
	return life;
}

static void init_chan(struct wf_tcp_peer *peer, unsigned index)
{
	struct wf_tcp_chan *chan = &peer->chans[index];

	chan->peer = peer;
	chan->index = (uint8_t)index;
	wf_base_list_init(&chan->active_link);
	wf_base_list_init(&chan->settle_link);
	wf_base_list_init(&chan->todo);
	wf_base_list_init(&chan->flight);
	wf_base_list_init(&chan->nacks);
	wf_base_list_init(&chan->nacks_sent);
	wf_base_list_init(&chan->held);
}

static struct wf_tcp_peer *make(struct wf_tcp_dev *dev,
				const struct wf_addr *addr)
{
	struct wf_tcp_peer *peer;

	if (wf_nic_timers_room(&dev->timers, dev->peer_count + 2) ||
	    wf_nic_timers_room(&dev->probes, dev->peer_count + 2))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->addr = *addr;
	peer->ah = WF_NIC_AH_UNKNOWN;
	peer->our_life = new_life();
	peer->used_at = dev->now;
	wf_nic_timer_init(&peer->timer);
	wf_nic_timer_init(&peer->probe);
	wf_base_list_init(&peer->acker);
	wf_base_list_init(&peer->reads);
	wf_base_list_init(&peer->served);
	wf_base_list_init(&peer->bucket);
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++)
		init_chan(peer, i);
	wf_base_list_add_tail(&dev->peers, &peer->link);
	dev->peer_count++;
	dev->strangers++;
	wf_nic_gauge(&dev->nic.counters->peers, dev->peer_count);
	return peer;
}

/* Whether the peer can be forgotten: only what we know of its life is lost. */
static bool is_spare(const struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
		if (peer->chans[i].conn)
			return false;
	}
	return !peer->handles && !peer->mirror && !wf_tcp_peer_is_busy(peer);
}

/* Whether it ever sent us a frame. Without one, it has only said hello. */
static bool has_talked(const struct wf_tcp_peer *peer)
{
	return peer->chans[WF_TCP_SMALL].taken ||
	       peer->chans[WF_TCP_BULK].taken;
}

/* Forgets the peer that was not used for longest. */
static bool forget_one(struct wf_tcp_dev *dev)
{
	struct wf_tcp_peer *found = NULL;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->peers) {
		struct wf_tcp_peer *peer =
			wf_container_of(pos, struct wf_tcp_peer, link);

		if (!is_spare(peer))
			continue;
		if (!found || has_talked(peer) < has_talked(found) ||
		    (has_talked(peer) == has_talked(found) &&
		     peer->used_at < found->used_at))
			found = peer;
	}
	if (found)
		wf_tcp_peer_free(dev, found);
	return found;
}

struct wf_tcp_peer *wf_tcp_peer_get(struct wf_tcp_dev *dev,
				    const struct wf_addr *addr, bool stranger)
{
	struct wf_tcp_peer *peer = wf_tcp_peer_find(dev, addr);

	if (peer)
		return peer;
	/* Peers that connect to us have places of their own: they cannot take
	 * those of peers that the user wants to reach. */
	if (stranger ? dev->strangers >= dev->max_peers && !forget_one(dev) :
		       dev->peer_count - dev->strangers >= dev->max_peers)
		return NULL;
	peer = make(dev, addr);
	if (!peer)
		return NULL;
	wf_base_list_add_tail(bucket_of(dev, addr), &peer->bucket);
	wf_tcp_peer_arm(dev, peer, dev->now + RELEASE_EVERY);
	return peer;
}

struct wf_tcp_peer *wf_tcp_peer_mirror(struct wf_tcp_dev *dev,
				       const struct wf_addr *addr)
{
	struct wf_tcp_peer *self = wf_tcp_peer_find(dev, addr);

	if (!dev->mirror)
		dev->mirror = make(dev, addr);
	if (!dev->mirror)
		return NULL;
	dev->mirror->mirror = true;
	/* Messages from the mirror are reported under our own handle. */
	dev->mirror->ah = self ? self->ah : WF_NIC_AH_UNKNOWN;
	return dev->mirror;
}

bool wf_tcp_peer_is_self(const struct wf_tcp_dev *dev,
			 const struct wf_tcp_peer *peer)
{
	return dev->mirror &&
	       wf_base_addr_equal(&peer->addr, &dev->mirror->addr);
}

void wf_tcp_peer_arm(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		     uint64_t due)
{
	if (due < peer->timer.due)
		wf_nic_timers_set(&dev->timers, &peer->timer, due);
}

bool wf_tcp_chan_is_busy(const struct wf_tcp_chan *chan)
{
	return !wf_base_list_empty(&chan->todo) ||
	       !wf_base_list_empty(&chan->flight) ||
	       !wf_base_list_empty(&chan->held) ||
	       (chan->conn && (chan->conn->sink.kind || chan->conn->carry));
}

bool wf_tcp_peer_is_busy(const struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
		if (wf_tcp_chan_is_busy(&peer->chans[i]))
			return true;
	}
	return !wf_base_list_empty(&peer->reads) ||
	       !wf_base_list_empty(&peer->served) || peer->owes;
}

/* The other end of our own connections cannot connect: if we wait for anything,
 * it may have the data of a read for this channel. */
bool wf_tcp_chan_is_needed(const struct wf_tcp_dev *dev,
			   const struct wf_tcp_chan *chan)
{
	return wf_tcp_chan_is_busy(chan) ||
	       (wf_tcp_peer_is_self(dev, chan->peer) &&
		wf_tcp_peer_is_busy(chan->peer));
}

static struct wf_tcp_op *first(const struct wf_list *head)
{
	return wf_base_list_empty(head) ?
		       NULL :
		       wf_container_of(head->next, struct wf_tcp_op, link);
}

static void end_list(struct wf_tcp_dev *dev, struct wf_list *head,
		     enum wf_nic_status status)
{
	struct wf_tcp_op *op;

	while ((op = first(head))) {
		/* The counts start again, so it need not stay for them. */
		dev->flying -= wf_tcp_op_flying(op);
		op->where = WF_TCP_NOWHERE;
		wf_base_list_del(&op->link);
		wf_tcp_work_end(dev, op, status);
	}
}

/* Ends the requests of a channel and sets its counts to 0. */
static void reset_chan(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		       enum wf_nic_status status)
{
	wf_tcp_conn_drop(dev, chan);
	/* In their order: the first end tells the user that the peer is lost, and
	 * those in flight know how much of them is there. */
	end_list(dev, &chan->flight, status);
	end_list(dev, &chan->todo, status);
	wf_tcp_target_drop_held(dev, chan);
	chan->asked_from = 0;
	chan->by_first = false;
	chan->disputes = 0;
	chan->welcome = 0;
	chan->welcomed = 0;
	chan->sent = 0;
	chan->known = 0;
	chan->acked = 0;
	chan->taken = 0;
	chan->ack_sent = 0;
	chan->flying = 0;
	chan->answers = false;
	chan->silent_from = 0;
}

/* Ends everything that is under way with the peer. */
static void end(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		enum wf_nic_status status)
{
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++)
		reset_chan(dev, &peer->chans[i], status);
	end_list(dev, &peer->reads, status);
	while (!wf_base_list_empty(&peer->served))
		wf_tcp_work_end(dev,
				wf_container_of(peer->served.next,
						struct wf_tcp_op, qp_link),
				status);
	if (peer->owes)
		wf_base_list_del(&peer->acker);
	peer->owes = false;
	peer->owed = 0;
}

void wf_tcp_peer_end_life(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
			  enum wf_nic_status status, bool ours)
{
	/* First those that the peer has acknowledged: they were delivered. */
	wf_tcp_settle(dev);
	peer->lost_life = peer->life;
	peer->life = 0;
	peer->rails = 0;
	peer->next_rail = 0;
	peer->last_err = 0;
	if (ours)
		peer->our_life = new_life();
	peer->fails++;
	peer->lost = peer->handles;
	wf_tcp_count(dev, peer_deaths, 1);
	end(dev, peer, status);
	wf_tcp_peer_arm(dev, peer, dev->now + RELEASE_EVERY);
}

/* The request has ended already, and the frame need not be sent again. */
static bool is_abandoned(const struct wf_tcp_op *op)
{
	return op->qp && op->status;
}

bool wf_tcp_peer_resume(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			uint32_t taken)
{
	struct wf_list again, *pos, *tmp;
	uint32_t there, at = 0;
	struct wf_tcp_op *op;

	wf_tcp_settle(dev);
	there = taken - chan->acked;
	if (there > chan->sent - chan->acked)
		return false;
	/* Of the first frame a part may have been written. */
	op = first(&chan->todo);
	if (op && is_abandoned(op))
		wf_tcp_work_end(dev, op, (enum wf_nic_status)op->status);
	/* Or some frames of a run, which are counted. */
	op = first(&chan->todo);
	if (op && op->sent) {
		wf_base_list_unlink(&op->link);
		wf_base_list_add_tail(&chan->flight, &op->link);
	}
	/* Frames that have arrived wait for their acknowledgement, which may be
	 * a refusal; the others are sent again. */
	wf_base_list_init(&again);
	wf_list_for_each (pos, tmp, &chan->flight) {
		uint32_t left, here;

		op = wf_container_of(pos, struct wf_tcp_op, link);
		left = wf_tcp_op_flying(op);
		here = there - at < left ? there - at : left;
		at += here;
		if (here == left && op->where == WF_TCP_FLIGHT)
			continue;
		dev->flying -= left - here;
		if (op->run && !wf_tcp_run_cut(dev, op, here))
			continue;
		wf_base_list_unlink(&op->link);
		op->where = WF_TCP_TODO;
		wf_base_list_add_tail(&again, &op->link);
	}
	while (!wf_base_list_empty(&again)) {
		struct wf_tcp_chan *refused;

		op = wf_container_of(again.prev, struct wf_tcp_op, link);
		wf_base_list_unlink(&op->link);
		wf_base_list_add_head(&chan->todo, &op->link);
		if (op->kind == WF_TCP_OP_NACK) {
			refused = &chan->peer->chans[op->req.op];
			wf_base_list_unlink(&op->nack_link);
			wf_tcp_ack_add_nack(&refused->nacks, op);
		}
		if (op->over) {
			/* The request has ended: no completion is written. */
			op->where = WF_TCP_NOWHERE;
			wf_base_list_del(&op->link);
			wf_tcp_work_free(dev, op);
		} else if (is_abandoned(op)) {
			wf_tcp_work_end(dev, op,
					(enum wf_nic_status)op->status);
		}
		wf_tcp_count(dev, retransmits, 1);
	}
	chan->sent = taken;
	chan->flying = 0;
	return true;
}

void wf_tcp_peer_free(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer)
{
	wf_tcp_settle(dev);
	end(dev, peer, WF_NIC_FLUSHED);
	wf_nic_timers_drop(&dev->timers, &peer->timer);
	wf_nic_timers_drop(&dev->probes, &peer->probe);
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++)
		wf_base_list_del(&peer->chans[i].active_link);
	wf_base_list_del(&peer->bucket);
	wf_base_list_del(&peer->link);
	if (!peer->handles)
		dev->strangers--;
	dev->peer_count--;
	wf_nic_gauge(&dev->nic.counters->peers, dev->peer_count);
	free(peer);
}

void wf_tcp_peer_release(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer)
{
	if (peer->handles || peer->mirror)
		return;
	if (!is_spare(peer))
		wf_tcp_peer_arm(dev, peer, dev->now + RELEASE_EVERY);
	else if (!peer->life)
		wf_tcp_peer_free(dev, peer);
	else if (dev->strangers > dev->max_peers)
		forget_one(dev);
	/* Otherwise keep it: a peer that lives on would take us for another
	 * process if we no longer knew it. */
}
