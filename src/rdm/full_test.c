/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what happens when there is none to be had: room for
 * completions, packets, memory. Everything waits, nothing is lost.
 */
#include "rdm/script_test.h"

#include <poll.h>

#include "rdm/control.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

#define BYTES (256u << 10)
#define KEY 7

static uint8_t from[BYTES], into[BYTES];

/* -- memory ----------------------------------------------------------------- */

static uint32_t mallocs, fail_every;

/* A sanitizer's own must stay; clang does not say by a macro that there is one. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#else
#define OWN_MALLOC 1
void *__libc_malloc(size_t size);
void *malloc(size_t size);

void *malloc(size_t size)
{
	if (fail_every && (++mallocs * 2654435761u >> 16) % fail_every == 0) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}
#endif

/* The receiver alone: else the network that is made rough here loses what it
 * has no copy of. */
static void turn_without(struct net *net, uint32_t every)
{
	wf_core_progress(&net->nodes[0].core);
	fail_every = every;
	wf_core_progress(&net->nodes[1].core);
	fail_every = 0;
}

/* Every few allocations of the receiver fail. */
static void test_no_memory(void **state)
{
	static const size_t lens[] = { 10, 3000, 30000, 100000, 0, 70000 };
	const struct wf_nic_fault fault = { .seed = 3, .reorder = 20000 };

	(void)state;
	mallocs = 0;
	if (!OWN_MALLOC)
		skip();
	for (unsigned int every = 2; every < 6; every++) {
		struct wf_rdm_ep_attr attr = net_attr();
		struct node *b;
		struct net *net;

		attr.reads = every & 1;
		attr.runt_size = every == 3 ? 5000 : 0;
		attr.fault = &fault;
		net = net_open(&attr);
		b = &net->nodes[1];
		net_greet(net);
		for (int i = 0; i < 60; i++) {
			struct wf_tx req = req_send(from, lens[i % 6], 5);

			req.delivery = i & 1;
			req.has_data = true;
			req.data = (uint64_t)i;
			net_submit(net, 0, 1, &req);
		}
		for (int i = 0; i < 300; i++)
			turn_without(net, every);
		for (int i = 0; i < 60; i++) {
			uint64_t end =
				wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
			struct got got;

			node_recv_buf(b, 5, into, BYTES);
			while (!pop(&b->rxcq, &got)) {
				turn_without(net, every);
				assert_true(wf_base_clock_ns() < end);
			}
			assert_int_equal(got.err, 0);
			assert_int_equal(got.data, i);
			assert_int_equal(got.len, lens[i % 6]);
		}
		for (int i = 0; i < 60; i++)
			assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
		assert_int_equal(stat_of(b, WF_RDM_STAT_bad_packets), 0);
		net_idle(net);
		net_close(net);
	}
}

/* -- completions ------------------------------------------------------------ */

/* Bug: an operation that waited for room in a queue that nobody read kept the
 * endpoint awake. It sleeps, unless the device has something, and is woken to
 * try again. */
static void sleep_once(struct node *n)
{
	struct pollfd p = {
		.fd = n->core.host.loop.epoll_fd,
		.events = POLLIN,
	};
	int rounds = 0;

	do {
		assert_true(++rounds < 10000);
		wf_core_progress(&n->core);
	} while (!wf_core_sleep(&n->core));
	assert_false(wf_base_list_empty(&n->ep.stalled));
	assert_int_equal(poll(&p, 1, 60000), 1);
	wf_core_progress(&n->core);
}

/* Nobody reads completions: messages wait where they are, in their order. */
static void test_unread(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net;
	struct node *b;
	unsigned int count, most;

	(void)state;
	net_tx_size = 8192;
	net = net_open(&attr);
	b = &net->nodes[1];
	net_greet(net);
	most = b->rxcq.high + 3000;
	req.has_data = true;
	for (unsigned int i = 0; i < most; i++)
		node_recv_buf(b, 5, into, 8);
	for (unsigned int i = 0; i < most; i++) {
		req.data = i;
		net_submit(net, 0, 1, &req);
		if (i % 64 == 0)
			net_progress(net);
		while (wf_op_compq_count(&net->nodes[0].txq))
			await(net, &net->nodes[0].txq);
	}
	AWAIT(net, !wf_base_list_empty(&b->ep.stalled));
	net_turn(net, 100);
	count = wf_op_compq_count(&b->rxcq);
	assert_in_range(count, 1, most - 1);
	sleep_once(b);
	for (unsigned int i = 0; i < most; i++) {
		struct got got = await(net, &b->rxcq);

		assert_int_equal(got.err, 0);
		assert_int_equal(got.data, i);
		while (wf_op_compq_count(&net->nodes[0].txq))
			await(net, &net->nodes[0].txq);
	}
	AWAIT(net, !net->nodes[0].ep.tx_pool.in_use);
	net_close(net);
}

/* -- packets ---------------------------------------------------------------- */

static void share(struct node *n)
{
	struct iovec iov = { into, BYTES };

	assert_int_equal(wf_op_regs_add(&n->regs, KEY,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					&iov, 1),
			 0);
}

/* More answers at once than there are packets for them. */
static void test_many_reads(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = net_open(&attr);
	static uint8_t to[20][BYTES];

	(void)state;
	share(&net->nodes[1]);
	fill(into, BYTES, 5);
	for (int i = 0; i < 20; i++) {
		struct wf_tx req = req_of(WF_TX_READ, to[i], BYTES);

		req.remote->seg_count = 1;
		req.remote->segs[0] =
			(struct wf_remote_seg){ (uintptr_t)into, BYTES, KEY };
		net_submit(net, 0, 1, &req);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	for (int i = 0; i < 20; i++)
		assert_true(filled(to[i], BYTES, 5));
	net_idle(net);
	net_close(net);
}

/* A grant for an answer that could not be begun yet. */
static void test_grant_before_answer(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct script *s = script_open(&attr);
	struct node *n = script_node(s);
	void *held[1024];
	int count = 0;
	struct wf_wire_packet cts = { .type = WF_WIRE_CTS,
				      .flags = WF_WIRE_FOR_READ,
				      .recv_id = 77,
				      .recv_length = 5000 };
	struct wf_wire_packet rtr = { .type = WF_WIRE_LONGCTS_RTR,
				      .recv_id = 77,
				      .msg_length = 20000,
				      .recv_length = 5000,
				      .rma_iov_count = 1,
				      .rma_iov = { { (uintptr_t)into, 20000,
						     KEY } } };
	uint64_t have = 0;

	(void)state;
	script_greet(s);
	share(n);
	fill(into, BYTES, 5);
	while ((held[count] = wf_base_pool_get(&n->ep.large_pkts)))
		count++;
	script_send(s, rtr, NULL, 0);
	SCRIPT_AWAIT(s, n->ep.names.count);
	for (uint32_t i = 0; i < n->ep.names.room; i++) {
		struct wf_rdm_named *named = n->ep.names.entries[i];

		if (named)
			cts.send_id = named->id;
	}
	script_send(s, cts, NULL, 0);
	SCRIPT_AWAIT(s, script_bad(s));
	while (count > 0)
		wf_base_pool_put(&n->ep.large_pkts, held[--count]);
	while (have < 20000) {
		struct wf_wire_packet got = script_next(s);

		assert_memory_equal(got.data, into + got.seg_offset,
				    got.data_len);
		have += got.data_len;
		if (have % 5000 == 0 && have < 20000)
			script_send(s, cts, NULL, 0);
	}
	script_idle(s);
	script_close(s);
}

/* Copies of bytes in pieces, of which there are not enough at once. */
static void test_many_copies(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = net_open(&attr);
	struct wf_tx req = req_send(from, 60000, 5);

	(void)state;
	fill(from, 60000, 8);
	req.iov_count = 4;
	for (size_t i = 0; i < 4; i++)
		req.iov[i] = (struct iovec){ from + 15000 * i, 15000 };
	net->nodes[0].ep.large_pkts.limit = 3;
	for (int i = 0; i < 4; i++) {
		node_recv_buf(&net->nodes[1], 5, into + 60000 * i, 60000);
		net_submit(net, 0, 1, &req);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
		assert_true(filled(into + 60000 * i, 60000, 8));
	}
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_many_reads),
		cmocka_unit_test(test_grant_before_answer),
		cmocka_unit_test(test_many_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
