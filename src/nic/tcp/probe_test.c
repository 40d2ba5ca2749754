/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of probes: a peer that says nothing is asked, for a while, each probe
 * is answered over the same connection, and nobody is woken for nothing.
 * tests/nic_loss.c has the losses.
 */
#include "nic/pair_test.h"

#include "nic/tcp/dev.h"

#define PROBES 8u
#define UNSENT 32 /* writes: more than sockets hold */
#define UNSENT_BYTES (1u << 20)

static struct wf_tcp_peer *peer_of(struct side *s, struct side *other)
{
	return wf_tcp_peer_find(wf_tcp_dev_of(s->nic),
				wf_nic_socket(other->nic));
}

/* As if the other were on another host. */
static void part(struct pair *p)
{
	hello(p);
	peer_of(&p->a, &p->b)->is_near = false;
	peer_of(&p->b, &p->a)->is_near = false;
}

static void post(struct pair *p, uint64_t id)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, id);

	pair_recv(&p->b, id, 0, 64);
	assert_int_equal(wf_nic_post_inline(p->a.qp, &wr, &id, sizeof(id)), 0);
}

static void progress_for(struct side *s, uint64_t ns)
{
	uint64_t end = wf_base_clock_ns() + ns;

	while (wf_base_clock_ns() < end)
		wf_nic_progress(s->nic);
}

static void take(struct pair *p)
{
	assert_int_equal(pair_wait(p, &p->b).status, WF_NIC_OK);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
}

/* B does not run: A asks some times, and no more. When B runs, nothing has come
 * twice, and A expects nothing any more. */
static void test_silent(void **state)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_nic_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p);
	part(&p);
	post(&p, 7);
	while (COUNTED(&p.a, probes) < PROBES) {
		wf_nic_progress(p.a.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	progress_for(&p.a, 300 * WF_NS_PER_MS);
	assert_int_equal(COUNTED(&p.a, probes), PROBES);
	take(&p);
	progress_for(&p.b, WF_NS_PER_MS);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	assert_int_equal(COUNTED(&p.a, retransmits), 0);
	assert_int_equal(wf_tcp_probe_next(wf_tcp_dev_of(p.a.nic)),
			 WF_TCP_NEVER);
	pair_close(&p);
}

/* B does not read, and the kernel keeps what A has written. Bug: looks at that
 * counted as probes, and there were none left when all had been sent. Nobody looks
 * for ever. */
static void test_unsent(void **state)
{
	uint64_t end = wf_base_clock_ns() + 10 * WF_NS_PER_S;
	struct wf_nic_remote there;
	struct wf_tcp_chan *chan;
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;
	uint64_t asked;

	(void)state;
	pair_open(&p);
	part(&p);
	chan = &peer_of(&p.a, &p.b)->chans[WF_TCP_BULK];
	wr = pair_wr(&p.a, &p.b, 5);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					.rkey = p.b.mr.rkey };
	sge = pair_sge(&p.a, 0, UNSENT_BYTES);
	/* It connects. */
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	/* That may have taken long enough for one. */
	asked = COUNTED(&p.a, probes);
	for (int i = 0; i < UNSENT; i++)
		assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge),
				 0);
	while (!chan->looks) {
		wf_nic_progress(p.a.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	while (wf_tcp_dev_of(p.a.nic)->probes.count) {
		wf_nic_progress(p.a.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	assert_int_equal(chan->probes, 0);
	assert_int_equal(COUNTED(&p.a, probes), asked);
	for (int i = 0; i < UNSENT; i++)
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	pair_close(&p);
}

/* A peer that has nothing in flight is not asked, and nobody wakes up for
 * it. */
static void test_idle(void **state)
{
	struct wf_tcp_dev *dev;
	struct pair p;

	(void)state;
	pair_open(&p);
	part(&p);
	dev = wf_tcp_dev_of(p.a.nic);
	for (uint64_t i = 0; i < 20; i++) {
		post(&p, i);
		take(&p);
	}
	assert_int_equal(wf_tcp_probe_next(dev), WF_TCP_NEVER);
	assert_int_equal(dev->probes.count, 0);
	/* Something is: then a sleeper has to wake up. */
	post(&p, 30);
	assert_true(wf_tcp_probe_next(dev) <=
		    wf_base_clock_ns() + WF_TCP_PROBE_AFTER);
	take(&p);
	pair_close(&p);
}

/* Nothing is lost within a host. */
static void test_near(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	post(&p, 7);
	progress_for(&p.a, 20 * WF_NS_PER_MS);
	assert_int_equal(COUNTED(&p.a, probes), 0);
	take(&p);
	pair_close(&p);
}

static void ask(struct pair *p, unsigned index)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_tcp_chan *chan = &peer_of(&p->a, &p->b)->chans[index];
	struct wf_tcp_chan *other = &peer_of(&p->b, &p->a)->chans[index];
	uint64_t before = COUNTED(&p->a, acks_received);
	uint64_t came = chan->conn->came_at;

	/* Acknowledgements are under way no more. */
	for (int i = 0; i < 10; i++) {
		pair_progress(p);
		before = COUNTED(&p->a, acks_received);
		came = chan->conn->came_at;
		progress_for(&p->a, WF_NS_PER_MS);
	}
	wf_tcp_ack_ask(wf_tcp_dev_of(p->a.nic), chan);
	while (COUNTED(&p->a, acks_received) == before) {
		pair_progress(p);
		assert_true(wf_base_clock_ns() < end);
	}
	/* Over the connection that was asked, once. */
	assert_true(chan->conn->came_at > came);
	assert_false(other->answers);
	for (int i = 0; i < 1000; i++)
		pair_progress(p);
	assert_int_equal(COUNTED(&p->a, acks_received), before + 1);
}

static void test_answer(void **state)
{
	struct wf_nic_remote there;
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	wr = pair_wr(&p.a, &p.b, 5);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					.rkey = p.b.mr.rkey };
	sge = pair_sge(&p.a, 0, 256 << 10);
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	ask(&p, WF_TCP_SMALL);
	ask(&p, WF_TCP_BULK);
	ask(&p, WF_TCP_SMALL);
	pair_close(&p);
}

/* A peer that asks often gets one answer to all questions that are read at
 * once: a stranger cannot make us write more than he does. */
static void test_flood(void **state)
{
	uint64_t sent, end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_tcp_chan *chan;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	chan = &peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL];
	for (int i = 0; i < 1000; i++)
		pair_progress(&p);
	sent = COUNTED(&p.b, acks_sent);
	for (int i = 0; i < 200; i++)
		wf_tcp_ack_ask(wf_tcp_dev_of(p.a.nic), chan);
	assert_int_equal(COUNTED(&p.a, probes), 200);
	while (COUNTED(&p.b, acks_sent) == sent) {
		wf_nic_progress(p.b.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 1000; i++)
		pair_progress(&p);
	assert_true(COUNTED(&p.b, acks_sent) - sent < 10);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent), cmocka_unit_test(test_idle),
		cmocka_unit_test(test_near),   cmocka_unit_test(test_answer),
		cmocka_unit_test(test_flood),  cmocka_unit_test(test_unsent),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
