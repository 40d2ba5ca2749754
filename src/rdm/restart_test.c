/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of a process that is killed and comes back at its address: the
 * messages of the new process arrive, whatever the other side still sends to
 * the old one.
 */
#include "rdm/net_test.h"

#define MANY 60
#define LONGEST 200000u
#define TAG 5
#define OTHER_TAG 6
#define KEY 7
#define WRITTEN 100u /* one packet */

static uint8_t from[LONGEST], into[MANY][LONGEST];

static const size_t lens[] = { 8, 1000, 20000, LONGEST, 0, 3000 };

static size_t len_of(int i)
{
	return lens[i % (int)(sizeof(lens) / sizeof(lens[0]))];
}

static int bind_to(const struct wf_addr *addr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &addr->sa, wf_base_addr_len(addr)), 0);
	return fd;
}

/* Its socket is gone before it can say goodbye. */
static void kill_node(struct node *n)
{
	struct wf_addr elsewhere;
	int fd = net_bind(&elsewhere, "udp");

	assert_int_equal(dup2(fd, n->fd), n->fd);
	close(fd);
	node_close(n);
	close(n->fd);
	n->fd = -1;
}

static void revive(struct node *n, const struct wf_rdm_ep_attr *attr)
{
	n->fd = bind_to(&n->addr);
	node_open(n, attr);
	assert_int_equal(wf_rdm_ep_wake(&n->ep), 0);
}

/* All first messages of the new process complete and arrive, in order.
 * @flood: node 1 sends to it all the while, and may be told that it is gone. */
static void send_first(struct net *net, bool flood)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct node *a = &net->nodes[0], *b = &net->nodes[1];
	struct wf_tx other = req_send(from, 8, OTHER_TAG);
	int sent = 0, came = 0;
	struct got got;

	for (int i = 0; i < MANY; i++) {
		struct wf_tx req = req_send(from, len_of(i), TAG);

		node_recv_buf(b, TAG, into[i], LONGEST);
		req.has_data = true;
		req.data = (uint64_t)i;
		assert_int_equal(wf_rdm_ep_submit(&a->ep, 1, &req), 0);
	}
	while (sent < MANY || came < MANY) {
		if (flood) {
			struct wf_tx copy = other;

			wf_rdm_ep_submit(&b->ep, 0, &copy);
		}
		net_progress(net);
		while (pop(&a->txq, &got)) {
			assert_int_equal(got.err, 0);
			sent++;
		}
		while (pop(&b->rxcq, &got)) {
			assert_int_equal(got.err, 0);
			assert_int_equal(got.len, len_of((int)got.data));
			assert_true(filled(into[got.data], got.len, 3));
			came++;
		}
		while (pop(&b->txq, &got))
			;
		assert_true(wf_base_clock_ns() < end);
	}
}

static void restart(bool flood, bool killed)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, OTHER_TAG);
	struct net *net;

	net_tx_size = 1024;
	fill(from, LONGEST, 3);
	for (int round = 0; round < 5; round++) {
		net = net_open(&attr);
		net_greet(net);
		for (int i = 0; i < 100 && flood; i++)
			net_submit(net, 1, 0, &req);
		if (killed)
			kill_node(&net->nodes[0]);
		else
			node_close(&net->nodes[0]);
		if (!killed)
			close(net->nodes[0].fd);
		revive(&net->nodes[0], &attr);
		send_first(net, flood);
		net_close(net);
	}
}

/* Bug: the answer of the other side went over its connection to the process
 * that was killed. The new process refused it (RESET), which also closed the
 * connection over which its own messages came: they were lost. */
static void test_killed(void **state)
{
	(void)state;
	restart(false, true);
}

static void test_killed_while_sent_to(void **state)
{
	(void)state;
	restart(true, true);
}

static void test_closed(void **state)
{
	(void)state;
	restart(false, false);
}

static void test_closed_while_sent_to(void **state)
{
	(void)state;
	restart(true, false);
}

/* -- answers to the process before ------------------------------------------ */

static struct wf_tx req_write(uint8_t *bytes)
{
	struct wf_tx req = req_of(WF_TX_WRITE, bytes, WRITTEN);

	req.remote->seg_count = 1;
	req.remote->segs[0] =
		(struct wf_remote_seg){ (uintptr_t)into[0], WRITTEN, KEY };
	return req;
}

/* Whether the device of @n has handed over all that was posted to @peer. */
static bool is_delivered(struct node *n, const struct wf_rdm_peer *peer)
{
	struct wf_nic_path path;

	wf_nic_progress(n->ep.nic);
	assert_int_equal(wf_nic_ah_query(n->ep.nic, peer->ah, &path), 0);
	return path.up && !path.queued;
}

/* Bug: a target answered a write of a process that had been killed since. It had
 * no connection to that process, opened one, and reached the process that came
 * after it. There the first write had the same number: it was reported as done
 * although the target had not seen it, and a read after it found the bytes of
 * the write before. */
static void test_late_answer(void **state)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct wf_rdm_ep_attr attr = net_attr();
	struct iovec iov = { into[0], WRITTEN };
	struct wf_rdm_peer *peer;
	struct node *a, *b;
	struct net *net;
	struct wf_tx req;

	(void)state;
	attr.connect_timeout_ms = 5000;
	attr.dead_timeout_s = 5;
	net = net_open(&attr);
	a = &net->nodes[0];
	b = &net->nodes[1];
	assert_int_equal(
		wf_op_regs_add(&b->regs, KEY, FI_REMOTE_WRITE, 0, &iov, 1), 0);
	fill(from, WRITTEN, 3);
	memset(into[0], 0, WRITTEN);
	/* The device of the target has it, the target computes. */
	req = req_write(from);
	net_submit(net, 0, 1, &req);
	while (a->ep.outstanding) {
		wf_core_progress(&a->core);
		wf_nic_progress(b->ep.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	assert_false(filled(into[0], WRITTEN, 3));
	kill_node(a);
	revive(a, &attr);
	/* The answer is on its way to the process that is there. */
	while (!filled(into[0], WRITTEN, 3)) {
		wf_core_progress(&b->core);
		assert_true(wf_base_clock_ns() < end);
	}
	peer = wf_rdm_peer_find(&b->ep, &a->addr);
	fill(from, WRITTEN, 4);
	req = req_write(from);
	assert_int_equal(wf_rdm_ep_submit(&a->ep, 1, &req), 0);
	while (!is_delivered(b, peer)) {
		wf_core_progress(&a->core);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 100; i++)
		wf_core_progress(&a->core);
	assert_true(filled(into[0], WRITTEN, 3));
	assert_int_equal(wf_op_compq_count(&a->txq), 0);
	assert_int_equal(await(net, &a->txq).err, 0);
	assert_true(filled(into[0], WRITTEN, 4));
	net_close(net);
}

/* Bug: the target had sent to a process of which it heard nothing, and its
 * device had lost the connection to it before it heard the first packet of the
 * process that came after. It took the loss for one of answers to the new
 * process, whose operations failed. */
static void test_never_heard(void **state)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct wf_tx req = req_send(from, 8, OTHER_TAG);
	struct wf_rdm_ep_attr attr = net_attr();
	struct node *a, *b;
	struct net *net;

	(void)state;
	net = net_open(&attr);
	a = &net->nodes[0];
	b = &net->nodes[1];
	fill(from, LONGEST, 3);
	net_submit(net, 1, 0, &req);
	assert_int_equal(wf_rdm_ep_wake(&a->ep), 0);
	do {
		wf_core_progress(&b->core);
		wf_nic_progress(a->ep.nic);
		assert_true(wf_base_clock_ns() < end);
	} while (b->ep.outstanding);
	assert_false(wf_rdm_peer_find(&b->ep, &a->addr)->life.theirs);
	kill_node(a);
	revive(a, &attr);
	/* The target computes, its device takes the first packets. */
	req = req_send(from, LONGEST, TAG);
	node_recv_buf(b, TAG, into[0], LONGEST);
	net_submit(net, 0, 1, &req);
	do {
		wf_core_progress(&a->core);
		wf_nic_progress(b->ep.nic);
		assert_true(wf_base_clock_ns() < end);
	} while (a->ep.outstanding);
	assert_int_equal(await(net, &a->txq).err, 0);
	assert_int_equal(await(net, &b->rxcq).err, 0);
	assert_true(filled(into[0], LONGEST, 3));
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_while_sent_to),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_closed_while_sent_to),
		cmocka_unit_test(test_late_answer),
		cmocka_unit_test(test_never_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
