/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of congestion control with a model of a link: a rate, a delay, a
 * queue that drops its tail, and losses that have nothing to do with it.
 */
#include "nic/udp/engine/cc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

#define SEG 1500u
#define FLOWS 2

struct link {
	uint64_t rate;	/* bytes per second */
	uint64_t delay; /* round trip without a queue */
	uint64_t queue; /* bytes */
	double loss;	/* per packet */
};

/* One round of a flow at a time is enough: its packets of a round meet the
 * queue that all flows together have made. */
struct flow {
	struct wf_udp_cc cc;
	uint64_t sent_no;
	uint64_t delivered;
};

static double dice(void)
{
	return (double)rand() / RAND_MAX;
}

/* Losses of a round come after its acks, as an ack of later packets tells of
 * them. */
static void run_round(struct link *link, struct flow *flows, int n,
		      uint64_t *now)
{
	uint64_t bdp = link->rate * link->delay / WF_NS_PER_S, all = 0;
	uint64_t standing, rtt;

	for (int i = 0; i < n; i++)
		all += flows[i].cc.cwnd;
	standing = all > bdp ? all - bdp : 0;
	if (standing > link->queue)
		standing = link->queue;
	rtt = link->delay + standing * WF_NS_PER_S / link->rate;
	*now += rtt;
	for (int i = 0; i < n; i++) {
		struct flow *f = &flows[i];
		uint64_t packets = f->cc.cwnd / SEG;
		double over = all > bdp + link->queue ?
				      (double)(all - bdp - link->queue) /
					      (double)all :
				      0;

		for (uint64_t k = 0; k < packets; k++) {
			uint64_t no = ++f->sent_no;

			if (dice() < over || dice() < link->loss) {
				wf_udp_cc_lost(&f->cc, no,
					       f->sent_no + packets - k - 1);
				continue;
			}
			wf_udp_cc_rtt(&f->cc, rtt, *now);
			wf_udp_cc_acked(&f->cc, SEG, no, no, true);
			f->delivered += SEG;
		}
	}
}

static double share(struct link *link, struct flow *flows, int n, int rounds)
{
	uint64_t now = WF_NS_PER_S, start, sum = 0;

	srand(1);
	for (int i = 0; i < rounds / 4; i++)
		run_round(link, flows, n, &now);
	start = now;
	for (int i = 0; i < n; i++)
		flows[i].delivered = 0;
	for (int i = 0; i < rounds; i++)
		run_round(link, flows, n, &now);
	for (int i = 0; i < n; i++)
		sum += flows[i].delivered;
	return (double)sum * WF_NS_PER_S / (double)(now - start) /
	       (double)link->rate;
}

static void test_fills_a_link(void **state)
{
	struct link link = { .rate = 12500000, /* 100 Mbit/s */
			     .delay = 10 * WF_NS_PER_MS,
			     .queue = 125000 };
	struct flow flow = { .sent_no = 0 };

	(void)state;
	wf_udp_cc_init(&flow.cc, SEG);
	assert_true(share(&link, &flow, 1, 2000) > 0.85);
	assert_true(flow.cc.cuts > 0);
}

static double compete(struct link *link, uint64_t first, uint64_t second,
		      uint64_t rtt)
{
	struct flow flows[FLOWS] = { { .sent_no = 0 }, { .sent_no = 0 } };
	double part;

	for (int i = 0; i < FLOWS; i++) {
		wf_udp_cc_init(&flows[i].cc, SEG);
		wf_udp_cc_rtt(&flows[i].cc, rtt, 0);
	}
	flows[0].cc.cwnd = first * SEG;
	flows[1].cc.cwnd = second * SEG;
	flows[0].cc.ssthresh = flows[0].cc.cwnd;
	assert_true(share(link, flows, FLOWS, 8000) > 0.85);
	part = (double)flows[0].delivered /
	       (double)(flows[0].delivered + flows[1].delivered);
	print_message("share of the first: %.2f\n", part);
	return part;
}

/* Two of them share, whoever was first. */
static void test_is_fair(void **state)
{
	struct link link = { .rate = 12500000,
			     .delay = 10 * WF_NS_PER_MS,
			     .queue = 125000 };
	double part;

	(void)state;
	part = compete(&link, 150, 10, link.delay);
	assert_true(part > 0.4 && part < 0.6);
	/* Even if neither has ever seen the path without a queue. */
	part = compete(&link, 150, 10, 2 * link.delay);
	assert_true(part > 0.4 && part < 0.6);
}

/* At random loss p the window is what Reno's is, about sqrt(1.5 / p) packets:
 * more would be unfair to others, less would be slower than TCP. */
static void test_loss_as_reno(void **state)
{
	struct link link = { .rate = 1250000000, /* 10 Gbit/s */
			     .delay = 100 * WF_NS_PER_US,
			     .queue = 500000,
			     .loss = 0.01 };
	struct flow flow = { .sent_no = 0 };
	double got, reno = 12.2 * SEG / 100e-6 / 1250000000;

	(void)state;
	wf_udp_cc_init(&flow.cc, SEG);
	got = share(&link, &flow, 1, 4000);
	print_message("at 1 %% loss: %.2f of the link\n", got);
	assert_true(got > 0.6 * reno && got < 1.6 * reno);
}

/* -- a shared bottleneck, packet by packet ---------------------------------- */

/* Review: on a shallow buffer a loss never cut the window, and a Reno flow on
 * the same link starved at 1 to 7 %. Two senders with all their acks clocked by
 * one drop-tail queue: the first runs cc.c, the second is Reno by the book. */

#define RING 16384u

struct packet {
	uint64_t arrives; /* its ack, or the ack that tells of its loss */
	uint64_t rtt;
	uint64_t no;
	bool lost;
};

struct sender {
	struct wf_udp_cc cc; /* of ours */
	double cwnd;	     /* of Reno, in packets */
	double ssthresh;
	uint64_t recover;
	uint64_t sent_no;
	uint64_t in_flight; /* packets */
	uint64_t delivered;
	uint64_t lost;
	struct packet ring[RING]; /* what is under way, in order of arrival */
	unsigned head;
	unsigned count;
	bool reno;
};

static uint64_t window_of(const struct sender *s)
{
	uint64_t most = s->reno ? (uint64_t)s->cwnd : s->cc.cwnd / SEG;

	return most < RING ? most : RING;
}

static void reno_told(struct sender *s, const struct packet *p)
{
	if (p->lost && p->no > s->recover) {
		s->cwnd = s->cwnd / 2 < 2 ? 2 : s->cwnd / 2;
		s->ssthresh = s->cwnd;
		s->recover = s->sent_no;
	} else if (!p->lost && p->no > s->recover) {
		s->cwnd += s->cwnd < s->ssthresh ? 1 : 1 / s->cwnd;
	}
}

static void told(struct sender *s, uint64_t now)
{
	const struct packet *p = &s->ring[s->head % RING];

	s->head++;
	s->count--;
	s->in_flight--;
	if (p->lost)
		s->lost++;
	else
		s->delivered++;
	if (s->reno) {
		reno_told(s, p);
	} else if (p->lost) {
		wf_udp_cc_lost(&s->cc, p->no, s->sent_no);
	} else {
		wf_udp_cc_rtt(&s->cc, p->rtt, now);
		wf_udp_cc_acked(&s->cc, SEG, p->no, s->sent_no, true);
	}
}

/* One packet meets the queue: it waits for those before it or is dropped.
 * @free_at: when the link has sent all that stands in the queue. */
static void send_one(const struct link *link, struct sender *s, uint64_t now,
		     uint64_t *free_at)
{
	uint64_t slot = SEG * WF_NS_PER_S / link->rate;
	uint64_t wait = *free_at > now ? *free_at - now : 0;
	uint64_t most = link->queue * WF_NS_PER_S / link->rate;
	struct packet *p = &s->ring[(s->head + s->count) % RING];

	p->no = ++s->sent_no;
	p->lost = wait + slot > most;
	if (!p->lost)
		*free_at = now + wait + slot;
	/* A loss is told of by the ack of what was sent just after it. */
	p->rtt = link->delay + wait + slot;
	p->arrives = now + p->rtt;
	s->count++;
	s->in_flight++;
}

/* The share of the first sender in the second half of @seconds. */
static double share_against_reno(const struct link *link, uint64_t until)
{
	struct sender *s = calloc(2, sizeof(*s));
	uint64_t now = 0, free_at = 0;
	double part, used;
	bool half = false;

	assert_non_null(s);
	wf_udp_cc_init(&s[0].cc, SEG);
	s[1].reno = true;
	s[1].cwnd = 10;
	s[1].ssthresh = 1e9;
	while (now < until) {
		/* In turn: neither is always first at the queue. */
		for (bool sent = true; sent;) {
			sent = false;
			for (int i = 0; i < 2; i++) {
				if (s[i].in_flight >= window_of(&s[i]))
					continue;
				send_one(link, &s[i], now, &free_at);
				sent = true;
			}
		}
		now = UINT64_MAX;
		for (int i = 0; i < 2; i++) {
			if (s[i].count &&
			    s[i].ring[s[i].head % RING].arrives < now)
				now = s[i].ring[s[i].head % RING].arrives;
		}
		for (int i = 0; i < 2; i++) {
			while (s[i].count &&
			       s[i].ring[s[i].head % RING].arrives <= now)
				told(&s[i], now);
		}
		if (!half && now > until / 2) {
			half = true;
			s[0].delivered = s[1].delivered = 0;
			s[0].lost = s[1].lost = 0;
		}
	}
	used = (double)(s[0].delivered + s[1].delivered) * SEG /
	       ((double)link->rate * (double)(until / 2) / WF_NS_PER_S);
	part = (double)s[0].delivered /
	       (double)(s[0].delivered + s[1].delivered);
	print_message("beside Reno: %.2f of %.2f, %.3f %% lost, %u cuts\n",
		      part, used,
		      100.0 * (double)s[0].lost /
			      (double)(s[0].lost + s[0].delivered),
		      (unsigned)s[0].cc.cuts);
	assert_true(used > 0.7);
	assert_true(s[0].cc.cuts > 0);
	free(s);
	return part;
}

static void test_shallow_buffers(void **state)
{
	const struct {
		struct link link;
		uint64_t until;
	} cases[] = {
		{ { .rate = 125000000, /* 1 Gbit/s */
		    .delay = 200 * WF_NS_PER_US,
		    .queue = 64u << 10 },
		  4 * WF_NS_PER_S },
		{ { .rate = 1250000000, /* 10 Gbit/s */
		    .delay = 50 * WF_NS_PER_US,
		    .queue = 512u << 10 },
		  2 * WF_NS_PER_S },
		{ { .rate = 12500000, /* 100 Mbit/s, a deep queue */
		    .delay = 10 * WF_NS_PER_MS,
		    .queue = 250u << 10 },
		  60 * WF_NS_PER_S },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double part =
			share_against_reno(&cases[i].link, cases[i].until);

		assert_true(part > 0.35 && part < 0.65);
	}
}

static void test_round_trips(void **state)
{
	struct wf_udp_cc cc;

	(void)state;
	wf_udp_cc_init(&cc, SEG);
	assert_true(wf_udp_cc_timeout(&cc) >= WF_NS_PER_MS);
	for (int i = 0; i < 100; i++)
		wf_udp_cc_rtt(&cc, 50000 + (uint64_t)(i % 2) * 1000, i);
	assert_true(cc.srtt > 49000 && cc.srtt < 52000);
	assert_true(cc.min_rtt == 50000);
	/* Never below what timers and schedulers can do. */
	assert_true(wf_udp_cc_timeout(&cc) == 500 * WF_NS_PER_US);
	/* A path that became longer is believed after a while. */
	wf_udp_cc_rtt(&cc, 80000, 60 * WF_NS_PER_S);
	wf_udp_cc_rtt(&cc, 80000, 75 * WF_NS_PER_S);
	assert_true(cc.min_rtt == 80000);
}

static void test_pacing(void **state)
{
	struct wf_udp_cc cc;
	uint64_t now = WF_NS_PER_S, sent = 0;

	(void)state;
	wf_udp_cc_init(&cc, SEG);
	wf_udp_cc_rtt(&cc, 50 * WF_NS_PER_MS, now);
	cc.ssthresh = cc.cwnd;
	cc.cwnd = 100 * SEG;
	/* One round trip: 1.25 windows, and what may be made up for. */
	for (uint64_t end = now + cc.srtt; now < end; now += 10000) {
		while (wf_udp_cc_pace(&cc, now) <= now) {
			wf_udp_cc_sent(&cc, SEG, now);
			sent += SEG;
		}
	}
	assert_true(sent > 115 * SEG && sent < 140 * SEG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fills_a_link),
		cmocka_unit_test(test_is_fair),
		cmocka_unit_test(test_loss_as_reno),
		cmocka_unit_test(test_shallow_buffers),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_pacing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
