/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the heap of timers against a plain list of times, and of what
 * the NIC does with it: peers whose timers are not due are left alone.
 */
#include "nic/pair_test.h"

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"

#define COUNT 1000u

static uint64_t least(const struct wf_nic_timer *timer)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < COUNT; i++) {
		if (timer[i].due < due)
			due = timer[i].due;
	}
	return due;
}

static void test_model(void **state)
{
	static struct wf_nic_timer timer[COUNT];
	struct wf_nic_timers timers = { .count = 0 };
	uint64_t now = 1000;

	(void)state;
	srand(3);
	assert_int_equal(wf_nic_timers_room(&timers, COUNT), 0);
	assert_true(wf_nic_timers_next(&timers) == UINT64_MAX);
	for (unsigned i = 0; i < COUNT; i++)
		wf_nic_timer_init(&timer[i]);
	for (int i = 0; i < 20000; i++) {
		struct wf_nic_timer *t = &timer[(unsigned)rand() % COUNT];

		switch (rand() % 8) {
		case 0:
			wf_nic_timers_set(&timers, t, UINT64_MAX);
			break;
		case 1:
			wf_nic_timers_drop(&timers, t);
			t->due = UINT64_MAX;
			break;
		case 2:
			now += (unsigned)rand() % 50;
			while ((t = wf_nic_timers_take(&timers, now))) {
				assert_true(t->due <= now);
				assert_true(t->due == least(timer));
				wf_nic_timer_init(t);
			}
			assert_true(least(timer) > now);
			break;
		default:
			wf_nic_timers_set(&timers, t,
					  now + (unsigned)rand() % 5000);
			break;
		}
		if (i % 64 == 0)
			assert_true(wf_nic_timers_next(&timers) ==
				    least(timer));
	}
	wf_nic_timers_fini(&timers);
}

/* Review: any due timer walked all armed peers. Of 500, one is due. */
static void test_others_are_left_alone(void **state)
{
	enum { PEERS = 500 };
	struct wf_udp_peer *mark;
	struct wf_udp_dev *dev;
	struct pair p;
	uint16_t ah;

	(void)state;
	pair_open(&p);
	dev = wf_udp_dev_of(p.a.nic);
	for (unsigned i = 0; i < PEERS; i++) {
		struct wf_addr addr = *wf_nic_socket(p.b.nic);

		wf_base_addr_set_port(&addr, (uint16_t)(1024 + i));
		assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &addr, &ah),
				 0);
		assert_int_equal(wf_nic_ah_destroy(p.a.nic, ah), 0);
	}
	for (uint32_t i = 0; i < dev->engine.peer_count; i++) {
		dev->engine.peers[i]->reap_at =
			wf_base_clock_ns() + 60 * WF_NS_PER_S;
		wf_udp_peer_arm(&dev->engine, dev->engine.peers[i]);
	}
	wf_nic_progress(p.a.nic);
	mark = dev->engine.peers[PEERS / 2];
	mark->reap_at = 1;
	wf_udp_peer_arm(&dev->engine, mark);
	assert_ptr_equal(dev->engine.timers.heap[0], &mark->timer);
	assert_int_equal(wf_nic_timers_next(&dev->engine.timers), 1);
	wf_nic_progress(p.a.nic);
	assert_int_equal(COUNTED(&p.a, peers), PEERS);
	assert_true(wf_nic_timers_next(&dev->engine.timers) > dev->now);
	pair_close(&p);
}

/* Review: the receive window was shared among all connections that were open,
 * and not among those that send. */
static void test_window_is_for_senders(void **state)
{
	struct wf_udp_peer *crowd[64];
	struct wf_udp_dev *dev;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_udp_dev_of(p.b.nic);
	for (unsigned i = 0; i < 64; i++) {
		struct wf_addr addr = *wf_nic_socket(p.a.nic);

		wf_base_addr_set_port(&addr, (uint16_t)(1024 + i));
		crowd[i] = wf_udp_peer_get(&dev->engine, &addr, true);
		assert_non_null(crowd[i]);
		wf_udp_in_open(&dev->engine, crowd[i], i + 1, false);
	}
	/* Two looks apart: a peer that sent before then is no sender any
	 * more. */
	for (int i = 0; i < 4; i++) {
		usleep(150000);
		pair_recv(&p.b, 1, 0, 64);
		wr = pair_wr(&p.a, &p.b, 1);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		assert_int_equal(pair_wait(&p, &p.b).len, 1);
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	}
	assert_int_equal(wf_udp_hello_rwnd(&dev->engine), dev->sock.rcvbuf / 2);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_others_are_left_alone),
		cmocka_unit_test(test_window_is_for_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
