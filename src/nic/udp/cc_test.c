/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of congestion control with a model of a link: a rate, a delay, a
 * queue that drops its tail, and losses that have nothing to do with it.
 */
#include "nic/udp/cc.h"

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

/* One round of a flow at a time is enough: what it sends in a round meets the
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
				wf_udp_cc_lost(&f->cc, SEG, no,
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

/* Random loss on a link that is not full does not slow it to Reno's crawl. */
static void test_bears_loss(void **state)
{
	struct link link = { .rate = 1250000000, /* 10 Gbit/s */
			     .delay = 100 * WF_NS_PER_US,
			     .queue = 500000,
			     .loss = 0.01 };
	struct flow flow = { .sent_no = 0 };
	double got;

	(void)state;
	wf_udp_cc_init(&flow.cc, SEG);
	got = share(&link, &flow, 1, 4000);
	print_message("at 1 %% loss: %.2f of the link\n", got);
	assert_true(got > 0.5);
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
		cmocka_unit_test(test_bears_loss),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_pacing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
