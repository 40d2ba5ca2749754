/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of paths that are narrower than the links at their ends. The kernel
 * cuts nothing up: packets fit, or are sent in parts that do.
 */
#include "nic/pair_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"

#define BASE_MSG (1200u - 64u)

/* Both ways. */
static void open_faulty(struct pair *p, const char *faults)
{
	static struct wf_nic_fault fault;
	struct wf_nic_attr attr = pair_attr(AF_INET);

	assert_int_equal(wf_nic_fault_parse(faults, &fault), 0);
	attr.fault = &fault;
	pair_open_attr(p, &attr, &attr);
}

static void send_one(struct pair *p, uint32_t len, uint32_t seed)
{
	struct wf_nic_sge sge = pair_sge(&p->a, 0, len);
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, seed);
	struct wf_nic_wc wc;

	fill(p->a.memory, len, seed);
	memset(p->b.memory, 0, 8192);
	pair_recv(&p->b, seed, 0, 8192);
	assert_int_equal(wf_nic_post_send(p->a.qp, &wr, &sge, 1), 0);
	wc = pair_wait(p, &p->b);
	assert_int_equal(wc.status, WF_NIC_OK);
	assert_int_equal(wc.len, len);
	assert_true(filled(p->b.memory, len, seed));
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
}

static void send_sizes(struct pair *p)
{
	const uint32_t sizes[] = { 1,	 64,   1000, 1135, 1136, 1137, 1300,
				   1408, 2048, 3000, 4097, 8191, 8192 };

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		send_one(p, sizes[i], i);
}

static void rdma(struct pair *p, uint32_t len)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, 1);
	struct wf_nic_sge sge = pair_sge(&p->a, 0, len);
	struct wf_nic_remote there = { .addr = (uintptr_t)p->b.memory,
				       .rkey = p->b.mr.rkey };

	fill(p->a.memory, len, 9);
	memset(p->b.memory, 0, len);
	assert_int_equal(wf_nic_post_write(p->a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	assert_true(filled(p->b.memory, len, 9));
	fill(p->b.memory, len, 10);
	assert_int_equal(wf_nic_post_read(p->a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	assert_true(filled(p->a.memory, len, 10));
}

static uint32_t path_of(const struct side *s)
{
	struct wf_nic_path path;

	assert_int_equal(wf_nic_ah_query(s->nic, s->ah, &path), 0);
	return path.max_msg;
}

static void test_nothing_is_cut_up(void **state)
{
	socklen_t len = sizeof(int);
	struct pair p;
	int how;

	(void)state;
	pair_open(&p);
	assert_int_equal(getsockopt(wf_udp_dev_of(p.a.nic)->sock.fd, IPPROTO_IP,
				    IP_MTU_DISCOVER, &how, &len),
			 0);
	assert_int_equal(how, IP_PMTUDISC_PROBE);
	pair_close(&p);
}

/* Review: where packets (or fragments) above some size vanish, requests waited
 * for ever while small pings passed. */
static void test_black_hole(void **state)
{
	struct pair p;

	(void)state;
	open_faulty(&p, "mtu=1280");
	send_one(&p, 100, 1);
	send_one(&p, 8192, 2);
	assert_int_equal(path_of(&p.a), BASE_MSG);
	send_sizes(&p);
	rdma(&p, 100000);
	pair_close(&p);
	/* The first of all messages is a large one, and then small ones keep
	 * the connection busy. */
	open_faulty(&p, "mtu=1280");
	for (uint64_t i = 0; i < 200; i++) {
		struct wf_nic_sge sge = pair_sge(&p.a, 0, i ? 64 : 4000);
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);

		pair_recv(&p.b, i, 0, 8192);
		assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
		for (int n = 0; n < 100; n++)
			pair_progress(&p);
	}
	for (int i = 0; i < 200; i++) {
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
		assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	}
	pair_close(&p);
}

/* Bug: the packets in flight were tried in turn, and the path was taken for
 * narrow when one of them had been tried often enough: the more packets, the
 * later. */
static void test_full_window(void **state)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct pair p;

	(void)state;
	open_faulty(&p, "mtu=1280");
	hello(&p);
	for (uint64_t i = 0; i < 20; i++) {
		struct wf_nic_sge sge = pair_sge(&p.a, 0, 4000);
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);

		pair_recv(&p.b, i, 0, 8192);
		assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	}
	while (path_of(&p.a) != BASE_MSG) {
		pair_progress(&p);
		assert_in_range(COUNTED(&p.a, probes), 0, 12);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
		assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	}
	pair_close(&p);
}

/* And on one that loses, doubles and reorders: every message once. */
static void test_bad_parts(void **state)
{
	struct pair p;

	(void)state;
	open_faulty(&p, "mtu=1280,loss=10%,reorder=20%,dup=10%,seed=5");
	for (int i = 0; i < 3; i++)
		send_sizes(&p);
	rdma(&p, 300000);
	pair_close(&p);
}

/* A path that was only bad for a while becomes wide again, after a probe. */
static void test_wide_again(void **state)
{
	struct wf_udp_dev *dev;
	struct pair p;
	uint32_t wide;
	uint64_t end;

	(void)state;
	open_faulty(&p, "mtu=1280");
	send_one(&p, 100, 1);
	wide = path_of(&p.a);
	send_one(&p, 8192, 2);
	assert_true(path_of(&p.a) < wide);
	wf_udp_dev_of(p.a.nic)->sock.fault->rates.mtu = 0;
	dev = wf_udp_dev_of(p.a.nic);
	dev->engine.peers[0]->out.size_at = dev->now;
	wf_udp_peer_arm(&dev->engine, dev->engine.peers[0]);
	end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	while (path_of(&p.a) < wide) {
		pair_progress(&p);
		assert_true(wf_base_clock_ns() < end);
	}
	send_sizes(&p);
	pair_close(&p);
}

/* @from is open; it reaches @to through @host of this host. */
static void reach(struct side *from, const struct side *to, uint32_t host)
{
	struct wf_addr addr = *wf_nic_socket(to->nic);

	addr.in.sin_addr.s_addr = htonl(host);
	assert_int_equal(wf_nic_ah_create_socket(from->nic, &addr, &from->ah),
			 0);
}

/* Probes go out until one is answered; @between runs before each. */
static void widen(struct pair *p, uint32_t wide, struct pair *between)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_udp_dev *dev = wf_udp_dev_of(p->a.nic);

	dev->sock.fault->rates.mtu = 0;
	while (path_of(&p->a) < wide) {
		if (between)
			hello(between);
		for (uint32_t i = 0; i < dev->engine.peer_count; i++) {
			struct wf_udp_peer *peer = dev->engine.peers[i];

			if (peer->out.size_at == WF_UDP_NEVER)
				continue;
			peer->out.size_at = dev->now;
			wf_udp_peer_arm(&dev->engine, peer);
		}
		pair_progress(p);
		assert_true(wf_base_clock_ns() < end);
	}
}

/* Bugs: an endpoint that is bound to any address sent its probes from whichever
 * address its last packet had left from, and answered probes from the one that
 * it had connected from itself. The other side drops both, because it does not
 * know these addresses, and the path stays narrow. */
static void test_any_address(void **state)
{
	struct wf_nic_attr here = pair_attr(AF_INET), any = here;
	static struct wf_nic_fault fault = { .seed = 1, .mtu = 1280 };
	struct pair p, back, third;
	uint32_t wide;

	(void)state;
	here.fault = &fault;
	any.fault = &fault;
	any.addr.in.sin_addr.s_addr = htonl(INADDR_ANY);
	for (int probed = 0; probed < 2; probed++) {
		memset(&p, 0, sizeof(p));
		memset(&third, 0, sizeof(third));
		side_open(&p.a, &any);
		side_open(&p.b, &here);
		side_open(&third.a, &here);
		reach(&p.a, &p.b, INADDR_LOOPBACK);
		reach(&p.b, &p.a, INADDR_LOOPBACK + 1);
		reach(&third.a, &p.a, INADDR_LOOPBACK + 2);
		third.b = p.a;
		back = (struct pair){ .a = p.b, .b = p.a };
		if (probed) {
			hello(&p);
			hello(&back);
			wide = path_of(&back.a);
			send_one(&back, 8192, 2);
			assert_true(path_of(&back.a) < wide);
			widen(&back, wide, NULL);
		} else {
			hello(&back);
			hello(&p);
			wide = path_of(&p.a);
			send_one(&p, 8192, 2);
			assert_true(path_of(&p.a) < wide);
			widen(&p, wide, &third);
		}
		side_close(&third.a);
		pair_close(&p);
	}
}

/* In between there is a size that most networks have. */
static void test_ethernet_between(void **state)
{
	struct wf_udp_dev *dev;
	struct pair p;
	uint64_t end;

	(void)state;
	open_faulty(&p, "mtu=1500");
	send_one(&p, 8192, 2);
	dev = wf_udp_dev_of(p.a.nic);
	end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	while (path_of(&p.a) != 1500 - 28 - 64) {
		pair_progress(&p);
		if (dev->engine.peers[0]->out.size_at != WF_UDP_NEVER)
			dev->engine.peers[0]->out.size_at = dev->now;
		assert_true(wf_base_clock_ns() < end);
	}
	send_sizes(&p);
	pair_close(&p);
}

/* All parts are here, and no receive: refused as a whole, and given as a whole
 * later. */
static void test_parts_wait(void **state)
{
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;
	uint64_t end;

	(void)state;
	open_faulty(&p, "mtu=1280");
	send_one(&p, 8192, 2);
	wr = pair_wr(&p.a, &p.b, 7);
	sge = pair_sge(&p.a, 0, 8192);
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	while (!COUNTED(&p.a, rnr_received))
		pair_progress(&p);
	memset(p.b.memory, 0, 8192);
	pair_recv(&p.b, 7, 0, 8192);
	assert_int_equal(pair_wait(&p, &p.b).len, 8192);
	assert_memory_equal(p.b.memory, p.a.memory, 8192);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	/* And if the sender is gone in the midst of it. */
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	wf_nic_progress(p.b.nic);
	side_close(&p.a);
	end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	while (wf_udp_dev_of(p.b.nic)->engine.wholes) {
		wf_nic_progress(p.b.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	side_close(&p.b);
}

/* Bug: parts of packets whose sender has died, or never sends the rest, filled the
 * room of all for ever, and packets of others that come in parts were refused. */
static void test_parts_of_the_dead(void **state)
{
	static struct wf_udp_peer dead[4];
	const struct wf_udp_part part = { .off = 0, .total = 8192 };
	struct wf_udp_data head = { .len = 128 };
	uint8_t payload[128] = { 0 };
	const uint8_t *bytes;
	struct wf_udp_dev *dev;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_udp_dev_of(p.b.nic);
	for (int i = 0; i < 4; i++) {
		wf_base_list_init(&dead[i].wholes);
		while (!wf_udp_part_take(&dev->engine, &dead[i], &head, &part,
					 payload, &bytes))
			head.seq++;
	}
	/* Their senders may yet send the rest; later they had the time to. */
	assert_int_equal(wf_udp_part_take(&dev->engine, dev->engine.peers[0],
					  &head, &part, payload, &bytes),
			 -1);
	dev->engine.now += 10 * WF_NS_PER_S;
	assert_int_equal(wf_udp_part_take(&dev->engine, dev->engine.peers[0],
					  &head, &part, payload, &bytes),
			 0);
	for (int i = 0; i < 4; i++)
		wf_udp_part_drop_all(&dev->engine, &dead[i]);
	assert_int_equal(dev->engine.wholes, 1);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_cut_up),
		cmocka_unit_test(test_black_hole),
		cmocka_unit_test(test_full_window),
		cmocka_unit_test(test_bad_parts),
		cmocka_unit_test(test_wide_again),
		cmocka_unit_test(test_any_address),
		cmocka_unit_test(test_ethernet_between),
		cmocka_unit_test(test_parts_wait),
		cmocka_unit_test(test_parts_of_the_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
