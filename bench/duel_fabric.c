/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libfabric provider in a duel: an RDM endpoint, messages by fi_send and
 * fi_recv, small ones by fi_inject.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "duel.h"

#define RECEIVES 256u
#define RATE_WINDOW 64u

struct side {
	struct duel *duel;
	int me;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *txcq;
	struct fid_cq *rxcq;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint8_t *memory;
	struct fi_context2 *contexts;
	unsigned next_context;
	unsigned sends;
	unsigned receives;
};

static int fail(struct side *s, const char *what, long ret)
{
	fprintf(stderr, "%s: %s: %s\n", s->duel->engine, what,
		fi_strerror((int)-ret));
	s->duel->failed = 1;
	return 1;
}

static int read_cq(struct side *s, struct fid_cq *cq, unsigned *count)
{
	struct fi_cq_entry got[32];
	ssize_t n = fi_cq_read(cq, got, 32);

	if (n == -FI_EAGAIN) {
		if (s->duel->yield)
			sched_yield();
		return 0;
	}
	if (n < 0) {
		fail(s, "fi_cq_read", n);
		return 0;
	}
	*count += (unsigned)n;
	return (int)n;
}

static int poll_cq(struct side *s)
{
	int n = read_cq(s, s->rxcq, &s->receives);

	return n + read_cq(s, s->txcq, &s->sends);
}

static void idle(void *arg)
{
	poll_cq(arg);
}

static void *context(struct side *s)
{
	return &s->contexts[s->next_context++ % (4 * RECEIVES)];
}

static int open_ep(struct side *s)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT,
				 .size = 4 * RECEIVES };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	long ret;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(s->duel->engine);
	ret = fi_getinfo(FI_VERSION(1, 17), s->duel->node[s->me], NULL,
			 FI_SOURCE, hints, &s->info);
	fi_freeinfo(hints);
	if (ret)
		return fail(s, "fi_getinfo", ret);
	ret = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);
	if (!ret)
		ret = fi_domain(s->fabric, s->info, &s->domain, NULL);
	if (!ret)
		ret = fi_av_open(s->domain, &av, &s->av, NULL);
	if (!ret)
		ret = fi_cq_open(s->domain, &cq, &s->txcq, NULL);
	if (!ret)
		ret = fi_cq_open(s->domain, &cq, &s->rxcq, NULL);
	if (!ret)
		ret = fi_endpoint(s->domain, s->info, &s->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(s->ep, &s->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(s->ep, &s->txcq->fid, FI_TRANSMIT);
	if (!ret)
		ret = fi_ep_bind(s->ep, &s->rxcq->fid, FI_RECV);
	if (!ret)
		ret = fi_enable(s->ep);
	return ret ? fail(s, "open", ret) : 0;
}

static int introduce(struct side *s)
{
	long ret;

	s->duel->blob_len[s->me] = sizeof(s->duel->blob[0]);
	ret = fi_getname(&s->ep->fid, s->duel->blob[s->me],
			 &s->duel->blob_len[s->me]);
	if (ret)
		return fail(s, "fi_getname", ret);
	duel_meet(s->duel, s->me, 1, idle, s);
	ret = fi_av_insert(s->av, s->duel->blob[!s->me], 1, &s->peer, 0, NULL);
	return ret == 1 ? 0 : fail(s, "fi_av_insert", -FI_EINVAL);
}

static void post_receives(struct side *s, unsigned n, size_t len)
{
	while (n-- && !s->duel->failed) {
		long ret;

		while ((ret = fi_recv(s->ep, s->memory, len, NULL,
				      FI_ADDR_UNSPEC, context(s))) ==
		       -FI_EAGAIN)
			poll_cq(s);
		if (ret)
			fail(s, "fi_recv", ret);
	}
}

static void send_small(struct side *s, size_t len)
{
	long ret;

	while ((ret = fi_inject(s->ep, s->memory, len, s->peer)) == -FI_EAGAIN)
		poll_cq(s);
	if (ret)
		fail(s, "fi_inject", ret);
}

static void play_latency(struct side *s)
{
	unsigned rounds = s->duel->rounds + DUEL_WARMUP;
	uint64_t start = 0;

	s->receives = 0;
	for (unsigned i = 0; i < rounds && !s->duel->failed; i++) {
		if (i == DUEL_WARMUP)
			start = wf_base_clock_ns();
		if (!s->me)
			send_small(s, DUEL_SMALL);
		while (s->receives <= i && !s->duel->failed)
			read_cq(s, s->rxcq, &s->receives);
		if (s->me)
			send_small(s, DUEL_SMALL);
		post_receives(s, 1, DUEL_LARGE);
	}
	if (!s->me)
		s->duel->latency_us = (double)(wf_base_clock_ns() - start) /
				      1e3 / 2 / s->duel->rounds;
}

/* One direction, then a message that everything has arrived. */
static void play_bandwidth(struct side *s)
{
	unsigned total = s->duel->larges, posted = 0;
	unsigned end = s->receives + (s->me ? total : 1), last = s->receives;
	uint64_t start = wf_base_clock_ns();

	s->sends = 0;
	while (!s->me && s->sends < total && !s->duel->failed) {
		while (posted < total && posted - s->sends < DUEL_WINDOW) {
			long ret = fi_send(s->ep, s->memory, DUEL_LARGE, NULL,
					   s->peer, context(s));

			if (ret == -FI_EAGAIN)
				break;
			if (ret) {
				fail(s, "fi_send", ret);
				break;
			}
			posted++;
		}
		poll_cq(s);
	}
	while (s->receives < end && !s->duel->failed) {
		poll_cq(s);
		post_receives(s, s->receives - last, DUEL_LARGE);
		last = s->receives;
	}
	if (s->me)
		send_small(s, 1);
	else
		s->duel->bandwidth = (double)total * DUEL_LARGE * 1e3 /
				     (double)(wf_base_clock_ns() - start);
}

static void play_rate(struct side *s)
{
	unsigned total = s->duel->rounds * 2 / RATE_WINDOW * RATE_WINDOW;
	unsigned end = s->receives + (s->me ? total : total / RATE_WINDOW);
	unsigned last = s->receives, acked = 0;
	uint64_t start = wf_base_clock_ns();

	for (unsigned i = 0; !s->me && i < total && !s->duel->failed; i++) {
		/* At most as many ahead as receives are posted. */
		while (i / RATE_WINDOW >
			       2 + s->receives + total / RATE_WINDOW - end &&
		       !s->duel->failed)
			poll_cq(s);
		send_small(s, DUEL_SMALL);
	}
	while (s->receives < end && !s->duel->failed) {
		poll_cq(s);
		post_receives(s, s->receives - last, DUEL_LARGE);
		acked += s->receives - last;
		last = s->receives;
		for (; s->me && acked >= RATE_WINDOW; acked -= RATE_WINDOW)
			send_small(s, 1);
	}
	if (!s->me)
		s->duel->rate = (double)total * 1e3 /
				(double)(wf_base_clock_ns() - start);
}

int duel_fabric(struct duel *duel, int me)
{
	struct side s = { .duel = duel, .me = me };

	s.memory = aligned_alloc(4096, DUEL_LARGE);
	s.contexts = calloc((size_t)4 * RECEIVES, sizeof(*s.contexts));
	if (!s.memory || !s.contexts || open_ep(&s) || introduce(&s))
		return 1;
	memset(s.memory, me, DUEL_LARGE);
	post_receives(&s, RECEIVES, DUEL_LARGE);
	duel_meet(duel, me, 2, idle, &s);
	play_latency(&s);
	duel_meet(duel, me, 3, idle, &s);
	play_bandwidth(&s);
	duel_meet(duel, me, 4, idle, &s);
	play_rate(&s);
	duel_meet(duel, me, 5, idle, &s);
	/* The process just exits, because rxd takes seconds to close. */
	return duel->failed;
}
