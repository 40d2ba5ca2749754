/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of acknowledgements and refusals: none is lost, and no frame that
 * was refused is reported as delivered, whichever connection is late or breaks.
 */
#include "nic/pair_test.h"

#include <sys/socket.h>

#include "nic/tcp/dev.h"

static struct wf_tcp_peer *peer_of(struct side *s, struct side *other)
{
	return wf_tcp_peer_find(wf_tcp_dev_of(s->nic), wf_nic_addr(other->nic));
}

static void post(struct side *from, struct side *to, uint64_t id)
{
	struct wf_nic_wr wr = pair_wr(from, to, id);

	assert_int_equal(wf_nic_post_inline(from->qp, &wr, &id, sizeof(id)), 0);
}

static void turn(struct side *s, int passes)
{
	while (passes--)
		wf_nic_progress(s->nic);
}

static void post_rdma(struct side *from, struct side *to, uint64_t id,
		      bool reads, bool bad_key, uint32_t len)
{
	struct wf_nic_remote there = { (uintptr_t)to->memory + (3u << 20),
				       to->mr.rkey ^ (bad_key ? 0x10000 : 0) };
	struct wf_nic_sge sge = pair_sge(from, 0, len);
	struct wf_nic_wr wr = pair_wr(from, to, id);

	assert_int_equal(reads ? wf_nic_post_read(from->qp, &wr, &there, &sge) :
				 wf_nic_post_write(from->qp, &wr, &there, &sge),
			 0);
}

/* B refuses a request of A's. The refusal is late: A's connection for messages
 * waits for a receive. What B says meanwhile over the other connection must not
 * make A believe that the request was served. */
static void overtake(bool reads)
{
	struct wf_tcp_conn *conn;
	struct wf_nic_wc wc;
	struct pair p;

	pair_open(&p);
	hello(&p);
	/* Both channels are up. */
	post_rdma(&p.b, &p.a, 8, false, false, 65536);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	for (int i = 0; i < 200; i++)
		pair_progress(&p);
	post(&p.b, &p.a, 1);
	conn = peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL].conn;
	for (int i = 0; i < 4000 && !conn->carry; i++)
		wf_nic_progress(p.a.nic);
	assert_non_null(conn->carry);
	post_rdma(&p.a, &p.b, 7, reads, true, 1000);
	turn(&p.b, 60);
	post_rdma(&p.b, &p.a, 8, false, false, 65536);
	turn(&p.b, 60);
	/* As if all this had taken less than a millisecond. */
	for (int i = 0; i < 200; i++) {
		conn->carry_from = wf_base_clock_ns();
		wf_nic_progress(p.a.nic);
	}
	assert_non_null(conn->carry);
	assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 0);
	pair_recv(&p.a, 77, 0, 64);
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 77);
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, WF_NIC_REM_ADDR);
	assert_int_equal(COUNTED(&p.a, bad_field), 0);
	/* The refused frame is acknowledged in the end, and those after it. */
	pair_recv(&p.b, 5, 0, 64);
	post(&p.a, &p.b, 6);
	assert_int_equal(pair_wait(&p, &p.a).wr_id, 6);
	pair_close(&p);
}

static void test_overtake_write(void **state)
{
	(void)state;
	overtake(false);
}

static void test_overtake_read(void **state)
{
	(void)state;
	overtake(true);
}

/* Both sides refuse what the other asks for, again and again: the refusals do
 * not wait for each other. */
static void test_both_refuse(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	for (int i = 0; i < 100; i++) {
		post_rdma(&p.a, &p.b, 1, i % 2, true, i % 3 ? 100 : 65536);
		post_rdma(&p.b, &p.a, 1, i % 2, true, i % 5 ? 100 : 65536);
		if (i % 10)
			continue;
		for (int j = 0; j <= (i ? 9 : 0); j++) {
			assert_int_equal(pair_wait(&p, &p.a).status,
					 WF_NIC_REM_ADDR);
			assert_int_equal(pair_wait(&p, &p.b).status,
					 WF_NIC_REM_ADDR);
		}
	}
	pair_close(&p);
}

/* A refusal is lost with its connection. Before it leaves again, an earlier
 * frame is refused: that one must not be acknowledged before it is refused. */
static void test_refused_again(void **state)
{
	struct wf_tcp_chan *a, *b;
	uint8_t bytes[4096];
	struct wf_nic_wc wc;
	struct pair p;
	uint64_t end;

	(void)state;
	pair_open(&p);
	hello(&p);
	for (int i = 0; i < 200; i++)
		pair_progress(&p);
	a = &peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL];
	b = &peer_of(&p.b, &p.a)->chans[WF_TCP_SMALL];
	p.a.qp->rnr_retry = 100; /* milliseconds over there */
	post(&p.a, &p.b, 5);
	post_rdma(&p.a, &p.b, 9, false, true, 100);
	end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	while (wf_base_list_empty(&b->flight)) {
		wf_nic_progress(p.b.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	/* The refusal of 9 is on its way, and is lost. */
	usleep(1000);
	while (recv(a->conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	shutdown(b->conn->fd, SHUT_RDWR);
	while (!wf_base_list_empty(&b->held)) {
		wf_nic_progress(p.b.nic);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 2; i++) {
		wc = pair_wait(&p, &p.a);
		assert_int_equal(wc.wr_id, i ? 9 : 5);
		assert_int_equal(wc.status, i ? WF_NIC_REM_ADDR : WF_NIC_RNR);
	}
	assert_int_equal(COUNTED(&p.a, bad_field), 0);
	pair_close(&p);
}

#define LARGE 16000u
#define LARGE_MOST 60
#define WORDS 5u

/* A's socket is full in the middle of a frame. False: it is full between two,
 * and another size of its buffer may do. */
static bool fill_socket(struct pair *p, struct wf_tcp_chan *chan, int size)
{
	struct wf_nic_sge sge = pair_sge(&p->a, 0, LARGE);

	assert_int_equal(setsockopt(chan->conn->fd, SOL_SOCKET, SO_SNDBUF,
				    &size, sizeof(size)),
			 0);
	for (unsigned int i = 0; i < LARGE_MOST && !chan->conn->full; i++) {
		struct wf_nic_wr wr = pair_wr(&p->a, &p->b, 500 + i);

		assert_int_equal(wf_nic_post_send(p->a.qp, &wr, &sge, 1), 0);
		/* The kernel may find room for a while. */
		for (int j = 0; j < 20; j++) {
			usleep(chan->conn->full ? 1000 : 100);
			wf_nic_progress(p->a.nic);
		}
	}
	return chan->conn->full && chan->conn->part;
}

static bool acks_while_full(int size)
{
	struct wf_tcp_chan *chan;
	unsigned int done = 0;
	struct wf_nic_wc wc;
	struct pair p;

	pair_open(&p);
	hello(&p);
	for (int i = 0; i < 200; i++)
		pair_progress(&p);
	for (unsigned int i = 0; i < LARGE_MOST; i++)
		pair_recv(&p.b, 100 + i, (2u << 20) + i * 17000u, 16960);
	for (unsigned int i = 0; i < WORDS; i++)
		pair_recv(&p.a, 100 + i, (2u << 20) + i * 64u, 64);
	chan = &peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL];
	if (!fill_socket(&p, chan, size)) {
		pair_close(&p);
		return false;
	}
	/* B talks and does not read: each of its messages is to be
	 * acknowledged. */
	for (unsigned int i = 0; i < WORDS; i++) {
		post(&p.b, &p.a, 900 + i);
		usleep(1000);
		turn(&p.a, 400);
	}
	assert_int_equal(chan->conn->note_len, sizeof(chan->conn->note));
	assert_int_not_equal(chan->taken, chan->told);
	while (done < WORDS) {
		wc = pair_wait(&p, &p.b);
		assert_int_equal(wc.status, WF_NIC_OK);
		done += !(wc.flags & WF_NIC_WC_RECV);
	}
	pair_close(&p);
	return true;
}

/* Acknowledgements that find no room are not forgotten. */
static void test_acks_while_full(void **state)
{
	bool found = false;

	(void)state;
	for (int size = 16000; size < 90000 && !found; size += 7000)
		found = acks_while_full(size);
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overtake_write),
		cmocka_unit_test(test_overtake_read),
		cmocka_unit_test(test_both_refuse),
		cmocka_unit_test(test_refused_again),
		cmocka_unit_test(test_acks_while_full),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
