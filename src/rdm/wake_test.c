/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an endpoint that opens its device when the first packet comes,
 * and has no memory for it: the sender of that packet is not told anything, and
 * loses nothing.
 */
#include "rdm/net_test.h"

#include <poll.h>

#define AWAY (100 * WF_NS_PER_MS) /* longer than the attendant waits */

/* In the place of aligned_alloc() (src/meson.build). Those that are left before
 * one fails; negative: none does. The sender goes on while memory is asked
 * for. */
static int allocations = -1;
static struct node *sender;
static bool none;	/* all fail, at once */
static unsigned denied; /* so many did */

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	uint64_t end = wf_base_clock_ns() + AWAY;

	if (none) {
		denied++;
		return NULL;
	}
	if (allocations < 0 || allocations--)
		return __real_aligned_alloc(align, size);
	while (wf_base_clock_ns() < end)
		wf_core_progress(&sender->core);
	return NULL;
}

/* Bug: the device had accepted the connection, and closed it again: the message
 * was lost. */
static void test_no_memory(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	uint64_t from = 7, into = 0;
	struct wf_tx req = req_send(&from, sizeof(from), 5);
	struct node *late;
	struct net *net;
	int failed = 0;

	(void)state;
	attr.connect_timeout_ms = 30000;
	attr.dead_timeout_s = 30;
	net = net_open(&attr);
	sender = &net->nodes[0];
	late = &net->nodes[2];
	node_open(late, &attr);
	req.inject = true;
	req.wants_comp = false;
	net_submit(net, 0, 2, &req);
	for (allocations = 0; wf_rdm_ep_wake(&late->ep); allocations = failed)
		failed++;
	allocations = -1;
	assert_true(failed > 2);
	node_recv_buf(late, 5, &into, sizeof(into));
	assert_int_equal(await(net, &late->rxcq).err, 0);
	assert_int_equal(into, from);
	assert_int_equal(stat_of(sender, WF_RDM_STAT_peers_lost), 0);
	net_close(net);
}

static bool is_readable(const struct node *n)
{
	struct pollfd fd = { .fd = n->core.host.loop.epoll_fd,
			     .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* Bug: while the device could not be opened, it was tried at each look at the
 * socket, every half millisecond, and a sleeper was woken at once. */
static void test_tries_less_often(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	uint64_t from = 7, into = 0, begin, end;
	struct wf_tx req = req_send(&from, sizeof(from), 5);
	struct node *late;
	struct net *net;

	(void)state;
	attr.connect_timeout_ms = 30000;
	attr.dead_timeout_s = 30;
	net = net_open(&attr);
	sender = &net->nodes[0];
	late = &net->nodes[2];
	node_open(late, &attr);
	net_submit(net, 0, 2, &req);
	none = true;
	begin = wf_base_clock_ns();
	end = begin + 200 * WF_NS_PER_MS;
	while (wf_base_clock_ns() < end || !late->ep.deaf) {
		wf_core_progress(&sender->core);
		wf_core_progress(&late->core);
		assert_true(wf_base_clock_ns() < begin + 60 * WF_NS_PER_S);
	}
	/* 5, 10, 20, 40 ms and so on, then every 250 ms. */
	assert_in_range(denied, 1,
			7 + (wf_base_clock_ns() - begin) /
					(250 * WF_NS_PER_MS));
	/* It sleeps meanwhile, until the next try. */
	late->ep.wake_at = wf_base_clock_ns() + 20 * WF_NS_PER_S;
	assert_true(wf_core_sleep(&late->core));
	assert_false(is_readable(late));
	late->ep.wake_at = 0;
	none = false;
	node_recv_buf(late, 5, &into, sizeof(into));
	assert_int_equal(await(net, &late->rxcq).err, 0);
	assert_int_equal(into, from);
	assert_int_equal(stat_of(sender, WF_RDM_STAT_peers_lost), 0);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_tries_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
