/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of several threads on one NIC, with and without a thread of its
 * own: each has a queue pair and a completion queue and plays with one of the
 * other NIC, while others come and go. Runs under TSan.
 */
#include "nic/pair_test.h"

#include <pthread.h>
#include <sched.h>

enum { PLAYERS = 2, BALLS = 200 };

struct player {
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint8_t memory[64 * 64];
	uint16_t ah;
	uint16_t other;
	bool serves;
	pthread_t thread;
	unsigned sent, got;
};

static void player_open(struct player *p, struct wf_nic *nic,
			const struct wf_addr *to)
{
	struct wf_nic_qp_attr attr = { .sq_entries = 64,
				       .rq_entries = 64,
				       .qkey = PAIR_QKEY,
				       .rnr_retry = WF_NIC_RNR_FOREVER };

	p->nic = nic;
	assert_int_equal(wf_nic_cq_create(nic, 128, &p->cq), 0);
	attr.send_cq = p->cq;
	attr.recv_cq = p->cq;
	assert_int_equal(wf_nic_qp_create(nic, &attr, &p->qp), 0);
	assert_int_equal(wf_nic_mr_reg(nic, p->memory, sizeof(p->memory),
				       WF_NIC_LOCAL_WRITE, &p->mr),
			 0);
	assert_int_equal(wf_nic_ah_create_socket(nic, to, &p->ah), 0);
}

static void player_close(struct player *p)
{
	wf_nic_qp_destroy(p->qp);
	assert_int_equal(wf_nic_cq_destroy(p->cq), 0);
	assert_int_equal(wf_nic_mr_dereg(p->nic, p->mr.lkey), 0);
	assert_int_equal(wf_nic_ah_destroy(p->nic, p->ah), 0);
}

static void post_receive(struct player *p, uint64_t at)
{
	struct wf_nic_sge sge = { p->memory + at * 64, 64, p->mr.lkey };

	assert_int_equal(wf_nic_post_recv(p->qp, at, &sge, false), 0);
}

static _Atomic int finished;

static void *play(void *arg)
{
	struct player *p = arg;
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	unsigned posted = 0;

	for (uint64_t i = 0; i < 32; i++)
		post_receive(p, i);
	while (p->got < BALLS || p->sent < BALLS) {
		struct wf_nic_wr wr = { .qkey = PAIR_QKEY,
					.ah = p->ah,
					.qpn = p->other };
		struct wf_nic_wc wc;
		unsigned may = p->serves ? BALLS : p->got;

		if (posted < BALLS && posted <= may && posted - p->sent < 32 &&
		    !wf_nic_post_inline(p->qp, &wr, &posted, sizeof(posted)))
			posted++;
		wf_nic_progress(p->nic);
		if (!wf_nic_cq_poll(p->cq, &wc, 1)) {
			sched_yield();
			continue;
		}
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.qpn, wf_nic_qp_num(p->qp));
		if (wc.flags & WF_NIC_WC_RECV) {
			p->got++;
			post_receive(p, wc.wr_id);
		} else {
			p->sent++;
		}
		assert_true(wf_base_clock_ns() < end);
	}
	/* Others still wait for what this NIC has to acknowledge. */
	finished++;
	while (finished < 2 * PLAYERS) {
		wf_nic_progress(p->nic);
		sched_yield();
	}
	return NULL;
}

/* Things come and go on the same NIC meanwhile. */
static void *churn(void *arg)
{
	struct side *s = arg;
	struct wf_nic_qp_attr attr = { .sq_entries = 4,
				       .rq_entries = 4,
				       .send_cq = s->cq,
				       .recv_cq = s->cq };
	struct wf_nic_path path;

	for (int i = 0; i < 200; i++) {
		struct wf_nic_qp *qp;
		struct wf_nic_mr mr;

		assert_int_equal(wf_nic_qp_create(s->nic, &attr, &qp), 0);
		assert_int_equal(wf_nic_mr_reg(s->nic, s->memory, 64, 0, &mr),
				 0);
		assert_int_equal(wf_nic_ah_query(s->nic, s->ah, &path), 0);
		assert_int_equal(wf_nic_mr_dereg(s->nic, mr.lkey), 0);
		wf_nic_qp_destroy(qp);
	}
	return NULL;
}

static void play_all(bool thread)
{
	static struct player a[PLAYERS], b[PLAYERS];
	struct wf_nic_attr attr = pair_attr(AF_INET);
	pthread_t other;
	struct pair p;

	attr.locked = true;
	attr.thread = thread;
	pair_open_attr(&p, &attr, &attr);
	finished = 0;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	for (int i = 0; i < PLAYERS; i++) {
		player_open(&a[i], p.a.nic, wf_nic_socket(p.b.nic));
		player_open(&b[i], p.b.nic, wf_nic_socket(p.a.nic));
		a[i].other = wf_nic_qp_num(b[i].qp);
		b[i].other = wf_nic_qp_num(a[i].qp);
		a[i].serves = true;
	}
	for (int i = 0; i < PLAYERS; i++) {
		assert_int_equal(
			pthread_create(&a[i].thread, NULL, play, &a[i]), 0);
		assert_int_equal(
			pthread_create(&b[i].thread, NULL, play, &b[i]), 0);
	}
	assert_int_equal(pthread_create(&other, NULL, churn, &p.a), 0);
	pthread_join(other, NULL);
	for (int i = 0; i < PLAYERS; i++) {
		pthread_join(a[i].thread, NULL);
		pthread_join(b[i].thread, NULL);
		assert_int_equal(a[i].got, BALLS);
		assert_int_equal(b[i].got, BALLS);
	}
	for (int i = 0; i < PLAYERS; i++) {
		player_close(&a[i]);
		player_close(&b[i]);
	}
	pair_close(&p);
}

static void test_callers(void **state)
{
	(void)state;
	play_all(false);
}

static void test_own_thread(void **state)
{
	(void)state;
	play_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
