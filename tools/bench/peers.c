/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint of the initiator with many peers: as many endpoints in the
 * responder, each of which has exchanged two messages each way with it. Measures the cost
 * of a poll that finds nothing, and the memory of all of it.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/footprint.h"
#include "tools/bench/message.h"
#include "tools/bench/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Longer than the time between two looks at the sockets, if a provider has
 * such. */
#define SETTLE_NS (20 * WF_NS_PER_MS)

struct peer {
	struct wf_tools_fabric_op op; /* of the message it receives */
	struct fid_ep *ep;	      /* responder */
	fi_addr_t addr;		      /* initiator */
};

struct peers {
	struct wf_tools_fabric *f;
	struct peer *list;
	unsigned n;
	bool connected;
};

static void drop_peers(struct peers *p)
{
	unsigned i;

	for (i = 0; i < p->n; i++) {
		if (p->list[i].ep)
			fi_close(&p->list[i].ep->fid);
		if (p->list[i].addr != FI_ADDR_UNSPEC)
			fi_av_remove(p->f->av, &p->list[i].addr, 1, 0);
	}
	free(p->list);
	p->list = NULL;
	p->n = 0;
	p->connected = false;
}

/* Both sides wait for each other, and make progress meanwhile. */
static int meet(struct peers *p)
{
	uint8_t word = 0;
	ssize_t got;
	int ret;

	if (send(WF_TOOLS_FD_SIDE, &word, 1, MSG_NOSIGNAL) != 1)
		return wf_tools_fabric_fail(p->f, "meeting", -errno);
	do {
		ret = wf_tools_message_read(p->f);
		got = recv(WF_TOOLS_FD_SIDE, &word, 1, MSG_DONTWAIT);
	} while (!ret && got < 0 && errno == EAGAIN);
	if (!ret && got != 1)
		ret = wf_tools_fabric_fail(p->f, "the other side is gone",
					   -FI_ENOTCONN);
	return ret;
}

/* Lets the provider notice which peers have gone, on both sides, and free
 * them. */
static int settle(struct peers *p)
{
	uint64_t until;
	int ret;

	ret = meet(p);
	until = wf_base_clock_ns() + SETTLE_NS;
	while (!ret && wf_base_clock_ns() < until)
		ret = wf_tools_message_read(p->f);
	return ret ? ret : meet(p);
}

static int open_peers(struct peers *p, unsigned n)
{
	unsigned i;
	int ret = 0;

	p->list = calloc(n, sizeof(*p->list));
	if (!p->list)
		return wf_tools_fabric_fail(p->f, "peers", -FI_ENOMEM);
	p->n = n;
	for (i = 0; i < n; i++)
		p->list[i].addr = FI_ADDR_UNSPEC;
	for (i = 0; i < n && !p->f->config.initiator && !ret; i++)
		ret = wf_tools_fabric_open_ep(p->f, &p->list[i].ep);
	return ret;
}

static int name_peers(struct peers *p)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < p->n && !ret; i++)
		ret = p->f->config.initiator ?
			      wf_tools_fabric_hear_name(p->f,
							&p->list[i].addr) :
			      wf_tools_fabric_tell_name(p->f, p->list[i].ep);
	return ret;
}

static int post_one(struct peers *p, struct fid_ep *ep, struct peer *peer)
{
	struct wf_tools_fabric *f = p->f;
	ssize_t ret;

	while ((ret = fi_trecv(ep, f->receives[0].buf, WF_TOOLS_MESSAGE_ACK,
			       f->desc, FI_ADDR_UNSPEC, WF_TOOLS_MESSAGE_TAG, 0,
			       &peer->op)) == -FI_EAGAIN) {
		if (wf_tools_message_read(f))
			return -EIO;
	}
	return ret ? wf_tools_fabric_fail(f, "receive", ret) : 0;
}

static int send_one(struct peers *p, struct fid_ep *ep, fi_addr_t addr)
{
	struct wf_tools_fabric *f = p->f;
	ssize_t ret;

	while ((ret = fi_tinject(ep, f->sends[0].buf, WF_TOOLS_MESSAGE_ACK,
				 addr, WF_TOOLS_MESSAGE_TAG)) == -FI_EAGAIN) {
		if (wf_tools_message_read(f))
			return -EIO;
	}
	return ret ? wf_tools_fabric_fail(f, "send", ret) : 0;
}

/* A message in each direction for each of them. */
static int exchange(struct peers *p)
{
	struct wf_tools_fabric *f = p->f;
	struct peer *peer;
	unsigned i;
	int ret = 0;

	f->received = 0;
	f->sent = 0;
	f->sent_done = 0;
	for (i = 0; i < p->n && !ret; i++)
		ret = post_one(p, f->config.initiator ? f->ep : p->list[i].ep,
			       &p->list[i]);
	for (i = 0; i < p->n && !ret; i++) {
		peer = &p->list[i];
		ret = f->config.initiator ? send_one(p, f->ep, peer->addr) :
					    send_one(p, peer->ep, f->peer);
	}
	if (!ret)
		ret = wf_tools_message_wait(f, p->n);
	return ret ? ret : meet(p);
}

/* Twice: a provider may need no connection for a first message. */
static int connect_peers(struct peers *p)
{
	int ret = exchange(p);

	if (!ret)
		ret = exchange(p);
	p->connected = !ret;
	return ret;
}

static int play_idle(struct peers *p, const struct wf_tools_phase *phase,
		     struct wf_tools_timing *timing)
{
	uint64_t total = phase->warm + phase->count, start = 0, i;
	struct fi_cq_tagged_entry entry;
	ssize_t got;

	for (i = 0; i < total; i++) {
		if (i == phase->warm)
			start = wf_base_clock_ns();
		got = fi_cq_read(p->f->cq, &entry, 1);
		if (got != -FI_EAGAIN)
			return wf_tools_fabric_fail(p->f, "an idle fi_cq_read",
						    got < 0 ? got : -FI_EOTHER);
	}
	timing->ns = wf_base_clock_ns() - start;
	return 0;
}

/* From the beginning, so that only the peers are counted. */
static int play_memory(struct peers *p, const struct wf_tools_phase *phase,
		       struct wf_tools_timing *timing)
{
	double before;
	int ret;

	drop_peers(p);
	ret = settle(p);
	if (ret)
		return ret;
	before = wf_tools_footprint();
	ret = open_peers(p, (unsigned)phase->size);
	if (!ret && phase->test == WF_TOOLS_ENDPOINT_MEMORY &&
	    !p->f->config.initiator)
		timing->value = wf_tools_footprint() - before;
	if (!ret)
		ret = name_peers(p);
	if (!ret)
		ret = meet(p);
	before = wf_tools_footprint();
	/* Both sides have counted; memory that they share is now used by
	 * both. */
	if (!ret)
		ret = meet(p);
	if (!ret)
		ret = connect_peers(p);
	if (!ret && phase->test == WF_TOOLS_PAIR_MEMORY)
		timing->value = wf_tools_footprint() - before;
	timing->value /= (double)phase->size;
	/* Neither side frees anything while the other counts. */
	return ret ? ret : meet(p);
}

static int peers_open(const struct wf_tools_engine_config *config,
		      void **engine, char *error, size_t error_len)
{
	struct peers *p = calloc(1, sizeof(*p));
	int ret = -ENOMEM;

	if (!p)
		return ret;
	ret = wf_tools_fabric_open(config, &p->f, error, error_len);
	if (ret) {
		free(p);
		return ret;
	}
	wf_tools_fabric_carve(p->f, WF_TOOLS_MESSAGE_ACK);
	*engine = p;
	return 0;
}

static int peers_prepare(void *engine, const struct wf_tools_phase *phase)
{
	(void)engine;
	(void)phase;
	return 0;
}

static int peers_play(void *engine, const struct wf_tools_phase *phase,
		      struct wf_tools_timing *timing)
{
	struct peers *p = engine;
	int ret = 0;

	if (phase->test != WF_TOOLS_IDLE)
		return play_memory(p, phase, timing);
	if (!p->connected || p->n != phase->size) {
		drop_peers(p);
		ret = open_peers(p, (unsigned)phase->size);
		if (!ret)
			ret = name_peers(p);
		if (!ret)
			ret = connect_peers(p);
	}
	if (ret || !p->f->config.initiator)
		return ret;
	return play_idle(p, phase, timing);
}

static int peers_progress(void *engine)
{
	return wf_tools_message_read(((struct peers *)engine)->f);
}

static const char *peers_error(void *engine)
{
	return ((struct peers *)engine)->f->error;
}

static const char *peers_describe(void *engine)
{
	return ((struct peers *)engine)->f->about;
}

static void peers_close(void *engine)
{
	struct peers *p = engine;

	drop_peers(p);
	wf_tools_fabric_close(p->f);
	free(p);
}

const struct wf_tools_engine_ops wf_tools_engine_peers = {
	.open = peers_open,
	.prepare = peers_prepare,
	.play = peers_play,
	.progress = peers_progress,
	.error = peers_error,
	.describe = peers_describe,
	.close = peers_close,
};
