/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests under faults: whatever the socket does to packets, every message
 * arrives once and intact, every request completes once, and memory is bounded.
 */
#include "nic/pair_test.h"

#define MESSAGES 600u
#define WRITE_LEN 100000u

/* Small messages with their number, writes and reads in between. */
struct run {
	struct pair p;
	uint8_t seen[MESSAGES];
	uint8_t completed[2 * MESSAGES];
	unsigned received;
	unsigned done;
};

static void receive_one(struct run *r, const struct wf_nic_wc *wc)
{
	const uint8_t *at = r->p.b.memory + wc->wr_id * 1024;
	uint32_t number;

	assert_int_equal(wc->status, WF_NIC_OK);
	memcpy(&number, at, 4);
	assert_true(number < MESSAGES);
	assert_int_equal(wc->len, 4 + number % 900);
	assert_true(filled(at + 4, wc->len - 4, number));
	assert_int_equal(r->seen[number]++, 0);
	r->received++;
	pair_recv(&r->p.b, wc->wr_id, wc->wr_id * 1024, 1024);
}

static void poll_both(struct run *r)
{
	struct wf_nic_wc wc[16];
	int n;

	pair_progress(&r->p);
	n = wf_nic_cq_poll(r->p.b.cq, wc, 16);
	for (int i = 0; i < n; i++)
		receive_one(r, &wc[i]);
	n = wf_nic_cq_poll(r->p.a.cq, wc, 16);
	for (int i = 0; i < n; i++) {
		assert_int_equal(wc[i].status, WF_NIC_OK);
		assert_int_equal(r->completed[wc[i].wr_id]++, 0);
		r->done++;
	}
}

/* Every message has its own place until its completion. */
static void post_message(struct run *r, uint32_t number)
{
	size_t off = (size_t)(number % 128) * 1024;
	uint32_t len = 4 + number % 900;
	struct wf_nic_wr wr = pair_wr(&r->p.a, &r->p.b, number);
	struct wf_nic_sge sge = pair_sge(&r->p.a, off, len);

	while (number >= 128 && !r->completed[number - 128])
		poll_both(r);
	memcpy(r->p.a.memory + off, &number, 4);
	fill(r->p.a.memory + off + 4, len - 4, number);
	wr.flags = number % 3 ? WF_NIC_WR_MORE : 0;
	while (wf_nic_post_send(r->p.a.qp, &wr, &sge, 1))
		poll_both(r);
}

static void rdma(struct run *r, uint32_t number, bool read)
{
	size_t here = 1u << 20, there = 2u << 20;
	struct wf_nic_wr wr = pair_wr(&r->p.a, &r->p.b, MESSAGES + number);
	struct wf_nic_sge sge = pair_sge(&r->p.a, here, WRITE_LEN);
	struct wf_nic_remote remote = {
		.addr = (uintptr_t)r->p.b.memory + there, .rkey = r->p.b.mr.rkey
	};
	uint8_t *from = read ? r->p.b.memory + there : r->p.a.memory + here;
	uint8_t *to = read ? r->p.a.memory + here : r->p.b.memory + there;

	fill(from, WRITE_LEN, number);
	memset(to, 0, WRITE_LEN);
	assert_int_equal(
		read ? wf_nic_post_read(r->p.a.qp, &wr, &remote, &sge) :
		       wf_nic_post_write(r->p.a.qp, &wr, &remote, &sge),
		0);
	while (!r->completed[MESSAGES + number])
		poll_both(r);
	assert_true(filled(to, WRITE_LEN, number));
}

static void survive(const char *faults, bool small_mtu)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_fault fault;
	struct run *r = calloc(1, sizeof(*r));
	const struct wf_nic_counters *c;
	unsigned expected = MESSAGES;

	assert_non_null(r);
	assert_int_equal(wf_nic_fault_parse(faults, &fault), 0);
	attr.fault = &fault;
	attr.mtu = small_mtu ? 1500 : 0;
	pair_open_attr(&r->p, &attr, &attr);
	for (uint64_t i = 0; i < 200; i++)
		pair_recv(&r->p.b, i, i * 1024, 1024);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		post_message(r, i);
		if (i % 150 == 75) {
			rdma(r, i, i % 300 == 75);
			expected++;
		}
	}
	wf_nic_qp_ring(r->p.a.qp);
	while (r->done < expected || r->received < MESSAGES)
		poll_both(r);
	/* Whatever still comes changes nothing. */
	for (int i = 0; i < 3000; i++)
		poll_both(r);
	assert_int_equal(r->done, expected);
	assert_int_equal(r->received, MESSAGES);
	c = wf_nic_counters(r->p.a.nic);
	/* Found out by what came later, not by waiting. */
	if (fault.loss >= 50000)
		assert_true(wf_nic_counter(&c->losses) > 0);
	print_message("%s: %llu packets, %llu again, %llu probes\n", faults,
		      (unsigned long long)wf_nic_counter(&c->tx_packets),
		      (unsigned long long)wf_nic_counter(&c->retransmits),
		      (unsigned long long)wf_nic_counter(&c->probes));
	pair_close(&r->p);
	free(r);
}

static void test_loss(void **state)
{
	(void)state;
	survive("loss=0.1%", true);
	survive("loss=1%", true);
	survive("loss=5%,seed=2", true);
	survive("loss=10%,seed=3", true);
	survive("loss=30%,seed=4", false);
}

static void test_reorder(void **state)
{
	(void)state;
	survive("reorder=25%,seed=5", true);
	survive("reorder=100%,jitter=300us,seed=6", false);
}

static void test_duplicates(void **state)
{
	(void)state;
	survive("dup=25%,seed=7", true);
	survive("dup=100%,reorder=50%,seed=8", false);
}

static void test_damage(void **state)
{
	(void)state;
	survive("corrupt=2%,seed=9", true);
	survive("corrupt=10%,seed=10", false);
}

static void test_all_at_once(void **state)
{
	(void)state;
	survive("loss=5%,dup=5%,reorder=25%,corrupt=1%,delay=1ms,jitter=1ms",
		true);
}

static void test_delay(void **state)
{
	(void)state;
	survive("delay=50ms,seed=11", true);
}

/* The hardest for completions: the same with a thread of its own and a sleeping
 * user. */
static void test_thread_under_loss(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_fault fault;
	unsigned received = 0, done = 0, posted = 0;
	struct pair p;

	(void)state;
	assert_int_equal(wf_nic_fault_parse("loss=3%,reorder=10%", &fault), 0);
	attr.fault = &fault;
	attr.thread = true;
	pair_open_attr(&p, &attr, &attr);
	for (uint64_t i = 0; i < 200; i++)
		pair_recv(&p.b, i, i * 64, 64);
	while (received < 2000 || done < 2000) {
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, posted);
		struct wf_nic_wc wc;

		if (posted < 2000 &&
		    !wf_nic_post_inline(p.a.qp, &wr, &posted, 4))
			posted++;
		if (wf_nic_cq_poll(p.b.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			pair_recv(&p.b, wc.wr_id, wc.wr_id * 64, 64);
			received++;
		}
		if (wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			done++;
		}
	}
	pair_close(&p);
}

static void test_parse(void **state)
{
	struct wf_nic_fault f;

	(void)state;
	assert_int_equal(
		wf_nic_fault_parse("loss=1.5%,dup=20ppm,reorder=25%,"
				   "corrupt=100%,delay=50ms,jitter=10us,"
				   "seed=0x10",
				   &f),
		0);
	assert_int_equal(f.loss, 15000);
	assert_int_equal(f.duplicate, 20);
	assert_int_equal(f.reorder, 250000);
	assert_int_equal(f.corrupt, 1000000);
	assert_int_equal(f.delay_us, 50000);
	assert_int_equal(f.jitter_us, 10);
	assert_int_equal(f.seed, 16);
	assert_int_equal(wf_nic_fault_parse("loss=101%", &f), -EINVAL);
	assert_int_equal(wf_nic_fault_parse("loss=1", &f), -EINVAL);
	assert_int_equal(wf_nic_fault_parse("delay=1%", &f), -EINVAL);
	assert_int_equal(wf_nic_fault_parse("lose=1%", &f), -EINVAL);
	assert_int_equal(wf_nic_fault_parse("seed=x", &f), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_thread_under_loss),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
