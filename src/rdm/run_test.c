/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of runs: injected messages that report nothing arrive once and in
 * order with all others, are limited as others are, and each that does not arrive
 * is reported.
 */
#include "rdm/net_test.h"

#include "nic/ops.h"
#include "nic/tcp/dev.h"
#include "rdm/pkt.h"
#include "rdm/run.h"
#include "rdm/tx.h"

static uint8_t bytes[4096], into[4096];

static struct net *begin(void)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net;

	net_tx_size = 200; /* not a number of whole runs */
	attr.device = "tcp";
	attr.medium_advised = true;
	attr.read_advised = true;
	net = net_open(&attr);
	net_greet(net);
	return net;
}

static void end(struct net *net)
{
	net_idle(net);
	net_close(net);
}

/* A message that is a part of a run, if it can be. */
static struct wf_tx quiet(size_t len, uint64_t tag)
{
	struct wf_tx req = req_send(bytes, len, tag);

	req.inject = true;
	req.wants_comp = false;
	req.context = NULL;
	return req;
}

static struct wf_rdm_peer *peer_of(struct net *net)
{
	return wf_rdm_peer_find(&net->nodes[0].ep, &net->nodes[1].addr);
}

/* Injects of all lengths and kinds, between sends that complete: one order. */
static void test_mixed(void **state)
{
	enum { COUNT = 1500 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	unsigned int loud = 0, most = 0;

	(void)state;
	fill(bytes, sizeof(bytes), 3);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = quiet(i * 13 % 700, i);

		if (i % 97 == 96) {
			req = req_send(bytes, i * 13 % 4096, i);
			loud++;
		}
		req.more = i % 32 != 31;
		req.has_data = i % 3 == 0;
		req.data = ~(uint64_t)i;
		net_submit(net, 0, 1, &req);
		if (peer_of(net)->run && peer_of(net)->run->run->run > most)
			most = peer_of(net)->run->run->run;
	}
	/* They have shared requests. */
	assert_true(most > 4);
	for (uint32_t i = 0; i < COUNT; i++) {
		size_t len = i % 97 == 96 ? i * 13 % 4096 : i * 13 % 700;
		struct got got;

		memset(into, 0xee, sizeof(into));
		/* Any tag: the oldest. */
		node_recv(to, true, i, &(struct iovec){ into, sizeof(into) }, 1,
			  into);
		got = await(net, &to->rxcq);
		assert_int_equal(got.err, 0);
		assert_int_equal(got.tag, i);
		assert_int_equal(got.len, len);
		assert_int_equal(got.data, i % 3 ? 0 : ~(uint64_t)i);
		assert_int_equal(got.src, 0);
		assert_true(filled(into, len, 3));
	}
	while (loud--)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	end(net);
}

/* Without tags they match receives in their order, as those with a vector do. */
static void test_untagged(void **state)
{
	enum { COUNT = 200 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = quiet(8, 0);

		memcpy(bytes, &i, 4);
		req.tagged = false;
		req.iov_count = 2;
		req.iov[0] = (struct iovec){ bytes, 3 };
		req.iov[1] = (struct iovec){ bytes + 3, 5 };
		req.more = i + 1 < COUNT;
		net_submit(net, 0, 1, &req);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t number;

		node_recv(to, false, 0, &(struct iovec){ into, 8 }, 1, into);
		assert_int_equal(await(net, &to->rxcq).len, 8);
		memcpy(&number, into, 4);
		assert_int_equal(number, i);
	}
	end(net);
}

/* Up to what can be injected: the bytes are the caller's again at once, whether
 * the message left or waits. With a receive, and without. */
static void test_long(void **state)
{
	enum { COUNT = 600 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		size_t len = i * 61 % (WF_RDM_RUN_MAX + 1);
		struct wf_tx req = quiet(len, i);
		struct got got;

		memset(into, 0xee, sizeof(into));
		if (i % 2)
			node_recv_buf(to, i, into, sizeof(into));
		fill(bytes, len, i);
		req.has_data = i % 3 == 0;
		req.data = i;
		net_submit(net, 0, 1, &req);
		memset(bytes, 0xdd, sizeof(bytes));
		/* One more waits behind it, or makes it leave. */
		fill(bytes, len, i + 1);
		req.tag = COUNT + i;
		req.more = i % 4 == 0;
		net_submit(net, 0, 1, &req);
		memset(bytes, 0xdd, sizeof(bytes));
		wf_rdm_ep_ring(&net->nodes[0].ep);
		if (!(i % 2))
			node_recv_buf(to, i, into, sizeof(into));
		got = await(net, &to->rxcq);
		assert_int_equal(got.tag, i);
		assert_int_equal(got.len, len);
		assert_int_equal(got.data, i % 3 ? 0 : i);
		assert_true(filled(into, len, i));
		node_recv_buf(to, COUNT + i, into, sizeof(into));
		got = await(net, &to->rxcq);
		assert_int_equal(got.tag, COUNT + i);
		assert_true(filled(into, len, i + 1));
	}
	end(net);
}

/* As many as operations may be under way, and then no more. */
static void test_limit(void **state)
{
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	struct wf_tx req = quiet(16, 9), other = req_send(bytes, 16, 9);
	unsigned int count = 0;
	int err;

	(void)state;
	req.more = true;
	while (!(err = wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req)))
		assert_true(++count <= net_tx_size);
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(count, net_tx_size);
	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &other),
			 -EAGAIN);
	assert_true(net->nodes[0].ep.outstanding < net_tx_size / 4);
	for (unsigned int i = 0; i < count; i++) {
		node_recv_buf(to, 9, into, 16);
		assert_int_equal(await(net, &to->rxcq).err, 0);
	}
	end(net);
}

/* The peer goes while some are on their way: each is there, or is reported, and
 * those that are reported are the last. */
static void test_lost(void **state)
{
	enum { COUNT = 200 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	uint32_t failed = 0, first = 0;
	uint64_t taken;
	struct got got;

	(void)state;
	/* Nobody takes messages in the place of the nodes, uncounted. */
	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = quiet(16, i);

		req.has_data = true;
		req.data = 7 * i;
		/* Some are sent, others stay here. */
		req.more = i >= 50;
		assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				 0);
	}
	for (int i = 0; i < 20; i++)
		wf_core_progress(&to->core);
	taken = stat_of(to, WF_RDM_STAT_received);
	node_close(to);
	AWAIT(net, !net->nodes[0].ep.outstanding);
	while (pop(&net->nodes[0].txq, &got)) {
		if (!failed++)
			first = (uint32_t)got.tag;
		assert_int_not_equal(got.err, 0);
		assert_int_equal(got.tag, first + failed - 1);
		assert_int_equal(got.data, 7 * got.tag);
		assert_int_equal(got.flags, FI_SEND | FI_TAGGED);
		assert_null(got.context);
	}
	/* On a busy machine all may have left and arrived before. */
	assert_true(!failed || first + failed == COUNT);
	/* The greeting was one. */
	assert_true(COUNT - failed <= taken);
	end(net);
}

/* Closed with a run that has not left: it is there nevertheless. */
static void test_closed(void **state)
{
	enum { COUNT = 100 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = quiet(16, i);

		req.more = true;
		node_recv_buf(to, i, into, 16);
		net_submit(net, 0, 1, &req);
	}
	assert_true(net->nodes[0].ep.outstanding);
	for (int i = 0; i < 1000 && wf_rdm_ep_drain(&net->nodes[0].ep); i++)
		wf_core_progress(&to->core);
	node_close(&net->nodes[0]);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct got got = await(net, &to->rxcq);

		assert_int_equal(got.err, 0);
		assert_int_equal(got.tag, i);
	}
	net_close(net);
}

/* A receiver without room for completions takes the rest of a run later. */
static void test_no_room(void **state)
{
	enum { COUNT = 250 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	uint32_t high = to->rxcq.high;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = quiet(8, i);

		node_recv_buf(to, i, into, 8);
		req.more = i + 1 < COUNT;
		net_submit(net, 0, 1, &req);
	}
	to->rxcq.high = 32;
	for (uint32_t i = 0; i < COUNT; i++) {
		struct got got = await(net, &to->rxcq);

		assert_int_equal(got.err, 0);
		assert_int_equal(got.tag, i);
	}
	to->rxcq.high = high;
	end(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),	cmocka_unit_test(test_untagged),
		cmocka_unit_test(test_long),	cmocka_unit_test(test_limit),
		cmocka_unit_test(test_lost),	cmocka_unit_test(test_closed),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
