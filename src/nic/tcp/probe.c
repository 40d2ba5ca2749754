/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Losses at the end of what was sent. TCP learns that a segment is lost when the
 * other side reports a later one. If there is none, it waits for a time-out of
 * 200 ms at least, while a round trip takes some 50 us. So if a peer that has not
 * acknowledged all frames says nothing new for a while, a head is sent that asks
 * for one: either is a later segment, which shows each kernel what it has to send
 * again. On a connection without losses this costs nothing but a look at it now
 * and then.
 */
#include "nic/tcp/dev.h"

/* Each after twice the time of the one before. Then the kernel's own time-out is
 * as soon; and a peer that has stopped is not asked for ever. */
#define PROBES_MOST 8u
/* Looks in a row that sent no probe, at most: as above. */
#define LOOKS_MOST 64u

static bool has_flight(const struct wf_tcp_chan *chan)
{
	return chan->state == WF_TCP_UP && chan->known != chan->sent;
}

/* How long the peer has for an answer, before the next probe. */
static uint64_t patience(const struct wf_tcp_chan *chan,
			 const struct wf_tcp_path *path)
{
	return (WF_TCP_PROBE_AFTER + 2ull * path->rtt_us * WF_NS_PER_US)
	       << chan->probes;
}

/* When the channel is to be looked at again. */
static uint64_t look(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	struct wf_tcp_path path;

	if (!has_flight(chan)) {
		chan->silent_from = 0;
		return WF_TCP_NEVER;
	}
	if (!chan->silent_from || chan->silent_known != chan->known) {
		chan->silent_from = dev->now;
		chan->silent_known = chan->known;
		chan->probes = 0;
		chan->looks = 0;
		return dev->now + WF_TCP_PROBE_AFTER;
	}
	if (chan->probes >= PROBES_MOST || chan->looks >= LOOKS_MOST ||
	    wf_tcp_sock_look(chan->conn->fd, &path))
		return WF_TCP_NEVER;
	if (dev->now >= chan->silent_from + patience(chan, &path)) {
		/* If the kernel or this process still has something to send, no
		 * probe is needed: the peer can answer that. */
		if (!path.unsent && wf_tcp_ack_ask(dev, chan)) {
			chan->probes++;
			chan->looks = 0;
		} else {
			chan->silent_from = dev->now;
			chan->looks++;
		}
	}
	return chan->silent_from + patience(chan, &path);
}

int wf_tcp_probe_run(struct wf_tcp_dev *dev)
{
	struct wf_nic_timer *timer;
	int count = 0;

	while ((timer = wf_nic_timers_take(&dev->probes, dev->now))) {
		struct wf_tcp_peer *peer =
			wf_container_of(timer, struct wf_tcp_peer, probe);
		uint64_t next = WF_TCP_NEVER;

		for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
			uint64_t due = look(dev, &peer->chans[i]);

			next = due < next ? due : next;
		}
		/* A later time than now, or this would not end. */
		if (next <= dev->now)
			next = dev->now + WF_TCP_PROBE_AFTER;
		wf_nic_timers_set(&dev->probes, timer, next);
		count++;
	}
	return count;
}

/* Whether the peer has frames to acknowledge. A peer that has acknowledged all
 * needs no timer. */
static bool awaits_any(const struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
		if (has_flight(&peer->chans[i]))
			return true;
	}
	return false;
}

uint64_t wf_tcp_probe_next(struct wf_tcp_dev *dev)
{
	uint64_t at = wf_nic_timers_next(&dev->probes);

	while (at != WF_TCP_NEVER) {
		struct wf_nic_timer *timer = dev->probes.heap[0];
		struct wf_tcp_peer *peer =
			wf_container_of(timer, struct wf_tcp_peer, probe);

		if (awaits_any(peer))
			break;
		wf_nic_timers_drop(&dev->probes, timer);
		at = wf_nic_timers_next(&dev->probes);
	}
	return at;
}
