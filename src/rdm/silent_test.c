/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an address from which nothing ever comes, as behind a firewall
 * that drops UDP: a socket that swallows all packets. (Bug: the endpoint waited
 * without an error or a line in the log.) Node 2 has a socket and is not open.
 */
#include <poll.h>

#include "rdm/net_test.h"

#include <stdio.h>

#include "base/log.h"
#include "rdm/silent.h"

#define NOBODY 2
#define WARN_MS 100
#define CONNECT_MS 400

static uint8_t from[100000], into[100];
static char line[512];
static int lines;

static void note(enum wf_log_level level, const char *func, int at,
		 const char *text)
{
	(void)func;
	(void)at;
	if (level != WF_LOG_TELL || !strstr(text, "no answer"))
		return;
	lines++;
	snprintf(line, sizeof(line), "%s", text);
}

static struct net *begin(uint64_t connect_ms)
{
	struct wf_rdm_ep_attr attr = net_attr();

	lines = 0;
	wf_base_log_set_sink(note);
	attr.connect_timeout_ms = connect_ms;
	attr.dead_timeout_s = 1; /* the peer is on this host */
	attr.warn_ms = WARN_MS;
	return net_open(&attr);
}

static void check_line(const struct net *net)
{
	char text[WF_ADDR_STR_LEN];

	assert_int_equal(lines, 1);
	assert_non_null(strstr(line, wf_base_addr_str(&net->nodes[NOBODY].addr,
						      text, sizeof(text))));
	assert_non_null(strstr(line, wf_base_addr_str(&net->nodes[0].addr, text,
						      sizeof(text))));
	assert_non_null(strstr(line, "by packets"));
	assert_non_null(strstr(line, "interface lo"));
	assert_non_null(strstr(line, "firewall"));
	assert_non_null(strstr(line, "FI_WEFT_IFACE"));
	assert_non_null(strstr(line, "FI_WEFT_SHM"));
}

/* One line, a gauge, an error for each operation; traffic with others
 * continues; the next operation has the full time again, and the gauge shows
 * it. */
static void test_silence_reported(void **state)
{
	static const size_t lens[] = { 8, 20000, 100000 };
	struct net *net = begin(CONNECT_MS);
	struct wf_tx req;
	struct got got;

	(void)state;
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < 3; i++) {
			req = req_send(from, lens[i], 5);
			net_submit(net, 0, NOBODY, &req);
		}
		AWAIT(net, stat_of(&net->nodes[0], WF_RDM_STAT_unanswered));
		assert_int_equal(wf_op_compq_count(&net->nodes[0].txq), 0);
		check_line(net);
		net_greet(net);
		for (int i = 0; i < 3; i++) {
			got = await(net, &net->nodes[0].txq);
			assert_int_equal(got.err, FI_EHOSTUNREACH);
		}
		AWAIT(net, !stat_of(&net->nodes[0], WF_RDM_STAT_unanswered));
	}
	net_idle(net);
	net_close(net);
}

/* Bug: if the connect time-out is shorter than the time after which a line is
 * written, each failure wrote one. */
static void test_silence_reported_once(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net;

	(void)state;
	lines = 0;
	wf_base_log_set_sink(note);
	attr.connect_timeout_ms = 600;
	attr.dead_timeout_s = 1;
	attr.warn_ms = 1500;
	net = net_open(&attr);
	for (int i = 0; i < 2; i++) {
		net_submit(net, 0, NOBODY, &req);
		assert_int_equal(await(net, &net->nodes[0].txq).err,
				 FI_EHOSTUNREACH);
		assert_int_equal(lines, 1);
	}
	/* Once it has answered, the next silence is another. */
	node_open(&net->nodes[NOBODY], &attr);
	assert_int_equal(wf_rdm_ep_wake(&net->nodes[NOBODY].ep), 0);
	net_submit(net, 0, NOBODY, &req);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	AWAIT(net,
	      !wf_rdm_peer_find(&net->nodes[0].ep, &net->nodes[NOBODY].addr)
		       ->warned);
	net_close(net);
}

/* Bug: an injected message to a peer that never answered was lost, and only the
 * next one told of it. It has no completion, but its failure has. */
static void test_injected(void **state)
{
	struct net *net = begin(CONNECT_MS);
	struct wf_tx req = req_send(from, 8, 5);

	(void)state;
	req.inject = true;
	req.wants_comp = false;
	net_submit(net, 0, NOBODY, &req);
	AWAIT(net, lines == 1);
	check_line(net);
	assert_int_equal(await(net, &net->nodes[0].txq).err, FI_EHOSTUNREACH);
	net_idle(net);
	net_close(net);
}

/* An endpoint that sleeps wakes up in time for both. */
static void test_asleep(void **state)
{
	struct net *net = begin(CONNECT_MS);
	struct wf_tx req = req_send(from, 8, 5);
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct node *n = &net->nodes[0];
	struct pollfd p = { n->core.host.loop.epoll_fd, POLLIN, 0 };
	int sleeps = 0;

	(void)state;
	net_submit(net, 0, NOBODY, &req);
	while (!wf_op_compq_count(&n->txq)) {
		assert_true(wf_base_clock_ns() < end);
		wf_core_progress(&n->core);
		if (!wf_op_compq_count(&n->txq) && wf_core_sleep(&n->core)) {
			/* Nobody but the timer wakes it. */
			assert_int_equal(poll(&p, 1, NET_LOST * 1000), 1);
			sleeps++;
		}
	}
	assert_int_equal(lines, 1);
	assert_in_range(sleeps, 2, 200);
	assert_int_equal(await(net, &n->txq).err, FI_EHOSTUNREACH);
	net_close(net);
}

/* It answers late, and nothing is lost. */
static void test_late(void **state)
{
	struct net *net = begin(60000);
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);

	(void)state;
	net_submit(net, 0, NOBODY, &req);
	AWAIT(net, lines == 1);
	node_open(&net->nodes[NOBODY], &attr);
	assert_int_equal(wf_rdm_ep_wake(&net->nodes[NOBODY].ep), 0);
	node_recv_buf(&net->nodes[NOBODY], 5, into, 8);
	assert_int_equal(await(net, &net->nodes[NOBODY].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	AWAIT(net, !stat_of(&net->nodes[0], WF_RDM_STAT_unanswered));
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence_reported),
		cmocka_unit_test(test_silence_reported_once),
		cmocka_unit_test(test_injected),
		cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
