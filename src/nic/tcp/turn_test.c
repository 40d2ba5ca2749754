/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of turns: how much of a long payload one pass moves before the other
 * connections have their turn.
 */
#include "nic/pair_test.h"

#include <sys/socket.h>

#include "nic/tcp/dev.h"

enum { WRITES = 32, MOST = 2u << 20 };

static void post_write(struct pair *p, uint64_t id)
{
	struct wf_nic_remote there = {
		.addr = (uintptr_t)p->b.memory,
		.rkey = p->b.mr.rkey,
	};
	struct wf_nic_sge sge = pair_sge(&p->a, 0, PAIR_MEMORY);
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, id);

	assert_int_equal(wf_nic_post_write(p->a.qp, &wr, &there, &sge), 0);
}

/* The kernel takes much at a time, if it may. */
static void make_room(struct pair *p)
{
	const struct wf_tcp_peer *peer = wf_tcp_peer_find(
		wf_tcp_dev_of(p->a.nic), wf_nic_socket(p->b.nic));
	int room = 2 * PAIR_MEMORY;

	(void)setsockopt(peer->chans[WF_TCP_BULK].conn->fd, SOL_SOCKET,
			 SO_SNDBUFFORCE, &room, sizeof(room));
}

/* Bug: a call that sent a long write went on for as long as the other side read,
 * and one pass read all that the kernel had. */
static void test_long_write(void **state)
{
	uint64_t limit = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	unsigned int posted = 1, ended = 0;
	struct wf_nic_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	fill(p.a.memory, PAIR_MEMORY, 5);
	post_write(&p, 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	ended++;
	make_room(&p);
	while (ended < WRITES) {
		uint64_t sent = COUNTED(&p.a, tx_bytes), got;

		if (posted < WRITES && posted < ended + 4)
			post_write(&p, posted++);
		assert_true(COUNTED(&p.a, tx_bytes) - sent <= MOST);
		for (int i = 0; i < 8; i++) {
			sent = COUNTED(&p.a, tx_bytes);
			wf_nic_progress(p.a.nic);
			assert_true(COUNTED(&p.a, tx_bytes) - sent <= MOST);
		}
		got = COUNTED(&p.b, rx_bytes);
		wf_nic_progress(p.b.nic);
		assert_true(COUNTED(&p.b, rx_bytes) - got <= MOST);
		while (wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			ended++;
		}
		assert_true(wf_base_clock_ns() < limit);
	}
	assert_true(filled(p.b.memory, PAIR_MEMORY, 5));
	pair_close(&p);
}

/* Requests that wait on both connections leave in this order. */
static void test_short_first(void **state)
{
	const struct wf_tcp_chan *first;
	const struct wf_tcp_dev *dev;
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;
	bool waits;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_tcp_dev_of(p.a.nic);
	post_write(&p, 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	make_room(&p);
	post_write(&p, 1);
	/* A call has taken a part of it, unless the kernel has no room for that. */
	waits = !wf_base_list_empty(&dev->active);
	pair_recv(&p.b, 2, 0, 64);
	wr = pair_wr(&p.a, &p.b, 2);
	wr.flags = WF_NIC_WR_MORE;
	sge = pair_sge(&p.a, 0, 5);
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	first = wf_container_of(dev->active.next, struct wf_tcp_chan,
				active_link);
	assert_true(!waits || first->index == WF_TCP_SMALL);
	wf_nic_qp_ring(p.a.qp);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_first),
		cmocka_unit_test(test_long_write),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
