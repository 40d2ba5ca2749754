/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC in a duel: small messages by send and receive, large ones by
 * RDMA write, as the protocols above it move them.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/clock.h"
#include "duel.h"
#include "nic/open.h"

#define RECEIVES 512u
#define RATE_WINDOW 256u

struct blob {
	struct wf_addr addr;
	uint64_t memory;
	uint32_t rkey;
	uint16_t qpn;
};

struct side {
	struct duel *duel;
	int me;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint8_t *memory;
	struct blob peer;
	uint16_t ah;
	unsigned sends;
	unsigned receives;
};

static int fail(const char *what, int ret)
{
	fprintf(stderr, "weft: %s: %s\n", what, strerror(-ret));
	return 1;
}

static void idle(void *arg)
{
	struct side *s = arg;

	if (!wf_nic_progress(s->nic) && s->duel->yield)
		sched_yield();
}

static int open_nic(struct side *s, const struct wf_nic_attr *attr)
{
	struct wf_nic_qp_attr qp = { .sq_entries = RECEIVES,
				     .rq_entries = RECEIVES,
				     .rnr_retry = WF_NIC_RNR_FOREVER };
	int ret = wf_nic_open("udp", attr, &s->nic);

	if (!ret)
		ret = wf_nic_cq_create(s->nic, 2 * RECEIVES, &s->cq);
	qp.send_cq = s->cq;
	qp.recv_cq = s->cq;
	if (!ret)
		ret = wf_nic_qp_create(s->nic, &qp, &s->qp);
	s->memory = aligned_alloc(4096, DUEL_LARGE);
	if (!ret && !s->memory)
		ret = -ENOMEM;
	if (ret)
		return ret;
	memset(s->memory, s->me, DUEL_LARGE);
	return wf_nic_mr_reg(s->nic, s->memory, DUEL_LARGE,
			     WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ |
				     WF_NIC_REMOTE_WRITE,
			     &s->mr);
}

static int introduce(struct side *s)
{
	struct blob mine = { .addr = *wf_nic_socket(s->nic),
			     .memory = (uintptr_t)s->memory,
			     .rkey = s->mr.rkey,
			     .qpn = wf_nic_qp_num(s->qp) };

	memcpy(s->duel->blob[s->me], &mine, sizeof(mine));
	duel_meet(s->duel, s->me, 1, idle, s);
	memcpy(&s->peer, s->duel->blob[!s->me], sizeof(s->peer));
	return wf_nic_ah_create_socket(s->nic, &s->peer.addr, &s->ah);
}

static int poll_cq(struct side *s)
{
	struct wf_nic_wc wc[32];
	int n = wf_nic_cq_poll(s->cq, wc, 32);

	if (!n && !wf_nic_progress(s->nic) && s->duel->yield)
		sched_yield();
	for (int i = 0; i < n; i++) {
		if (wc[i].status) {
			fprintf(stderr, "weft: %s\n",
				wf_nic_status_str(wc[i].status));
			s->duel->failed = 1;
		}
		if (wc[i].flags & WF_NIC_WC_RECV)
			s->receives++;
		else
			s->sends++;
	}
	return n;
}

static void post_receives(struct side *s, unsigned n)
{
	struct wf_nic_sge sge = { s->memory, DUEL_SMALL, s->mr.lkey };

	while (n--)
		wf_nic_post_recv(s->qp, 0, &sge, n > 0);
}

static void send_small(struct side *s, bool more)
{
	struct wf_nic_wr wr = { .ah = s->ah,
				.qpn = s->peer.qpn,
				.flags = more ? WF_NIC_WR_MORE : 0 };
	struct wf_nic_sge sge = { s->memory, DUEL_SMALL, s->mr.lkey };

	while (wf_nic_post_send(s->qp, &wr, &sge, 1) && !s->duel->failed)
		poll_cq(s);
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
			send_small(s, false);
		while (s->receives <= i && !s->duel->failed)
			poll_cq(s);
		if (s->me)
			send_small(s, false);
		post_receives(s, 1);
	}
	if (!s->me)
		s->duel->latency_us = (double)(wf_base_clock_ns() - start) /
				      1e3 / 2 / s->duel->rounds;
}

static void play_bandwidth(struct side *s)
{
	struct wf_nic_remote there = { .addr = s->peer.memory,
				       .rkey = s->peer.rkey };
	struct wf_nic_sge sge = { s->memory, DUEL_LARGE, s->mr.lkey };
	struct wf_nic_wr wr = { .ah = s->ah, .qpn = s->peer.qpn };
	unsigned posted = 0, warm = DUEL_WINDOW * 2;
	unsigned total = s->duel->larges + warm;
	uint64_t start = 0;

	if (s->me)
		return;
	while (s->sends < RECEIVES && poll_cq(s))
		;
	s->sends = 0;
	while (s->sends < total && !s->duel->failed) {
		while (posted < total && posted - s->sends < DUEL_WINDOW &&
		       !wf_nic_post_write(s->qp, &wr, &there, &sge))
			posted++;
		if (poll_cq(s) && s->sends >= warm && !start) {
			start = wf_base_clock_ns();
			total = s->sends + s->duel->larges;
		}
	}
	s->duel->bandwidth = (double)s->duel->larges * DUEL_LARGE * 1e3 /
			     (double)(wf_base_clock_ns() - start);
}

static void play_rate(struct side *s)
{
	unsigned total = s->duel->rounds * 20, posted = 0, got = s->receives;
	uint64_t start = wf_base_clock_ns();

	if (s->me) {
		unsigned end = s->receives + total;

		while (s->receives < end && !s->duel->failed) {
			poll_cq(s);
			post_receives(s, s->receives - got);
			got = s->receives;
		}
		return;
	}
	s->sends = 0;
	while (s->sends < total && !s->duel->failed) {
		while (posted < total && posted - s->sends < RATE_WINDOW) {
			posted++;
			send_small(s, posted < total &&
					      posted - s->sends < RATE_WINDOW);
		}
		poll_cq(s);
	}
	s->duel->rate =
		(double)total * 1e3 / (double)(wf_base_clock_ns() - start);
}

static void drain(struct side *s)
{
	uint64_t end = wf_base_clock_ns() + 5 * WF_NS_PER_MS;

	while (wf_base_clock_ns() < end)
		poll_cq(s);
}

int duel_weft(struct duel *duel, int me)
{
	struct wf_nic_attr attr = { .fd = -1 };
	struct side s = { .duel = duel, .me = me };
	int ret;

	attr.addr.in.sin_family = AF_INET;
	inet_pton(AF_INET, duel->node[me], &attr.addr.in.sin_addr);
	ret = open_nic(&s, &attr);
	if (ret)
		return fail("open", ret);
	ret = introduce(&s);
	if (ret)
		return fail("introduce", ret);
	post_receives(&s, RECEIVES);
	duel_meet(duel, me, 2, idle, &s);
	play_latency(&s);
	drain(&s);
	duel_meet(duel, me, 3, idle, &s);
	play_bandwidth(&s);
	duel_meet(duel, me, 4, idle, &s);
	play_rate(&s);
	drain(&s);
	duel_meet(duel, me, 5, idle, &s);
	wf_nic_qp_destroy(s.qp);
	wf_nic_cq_destroy(s.cq);
	wf_nic_close(s.nic);
	free(s.memory);
	return duel->failed;
}
