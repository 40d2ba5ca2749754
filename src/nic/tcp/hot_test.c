/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of connections that talk so much that epoll is not asked for them:
 * they are read by every pass, and an endpoint that is about to sleep has them
 * reported again.
 */
#include "nic/pair_test.h"

#include <poll.h>
#include <sys/socket.h>

#include "nic/tcp/dev.h"

#define LEN 64u
#define LONG 16384u
#define MANY 100u

static struct wf_tcp_dev *dev_of(const struct side *s)
{
	return wf_tcp_dev_of(s->nic);
}

static struct wf_tcp_conn *conn_of(const struct side *s,
				   const struct side *other)
{
	return wf_tcp_peer_find(dev_of(s), wf_nic_socket(other->nic))
		->chans[WF_TCP_SMALL]
		.conn;
}

static void post(struct side *from, struct side *to, uint32_t len)
{
	const struct wf_nic_wr wr = pair_wr(from, to, 5);
	const struct wf_nic_sge sge = pair_sge(from, 0, len);

	assert_int_equal(wf_nic_post_send(from->qp, &wr, &sge, 1), 0);
}

/* A message each way. */
static void talk(struct pair *p)
{
	pair_recv(&p->a, 1, LEN, LEN);
	pair_recv(&p->b, 1, LEN, LEN);
	post(&p->a, &p->b, LEN);
	assert_int_equal(pair_wait(p, &p->b).status, WF_NIC_OK);
	post(&p->b, &p->a, LEN);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	assert_int_equal(pair_wait(p, &p->b).status, WF_NIC_OK);
}

static bool is_apart(struct side *s, struct side *other)
{
	bool apart;

	/* An attendant may change it at any time. */
	wf_base_lock_take(&s->nic->lock);
	apart = conn_of(s, other)->apart;
	assert_int_equal(dev_of(s)->apart_count, apart);
	wf_base_lock_drop(&s->nic->lock);
	return apart;
}

/* Until epoll is not asked for the connection at @s. If the processor is away for a
 * while, it is asked again. */
static void talk_apart(struct pair *p, struct side *s, struct side *other)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	while (!is_apart(s, other)) {
		talk(p);
		assert_true(wf_base_clock_ns() < end);
	}
}

static void open_apart(struct pair *p, bool attend)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;

	b.attend = attend;
	pair_open_attr(p, &a, &b);
	hello(p);
	talk_apart(p, &p->b, &p->a);
}

/* A look at all connections reads it, too. */
static void test_is_read(void **state)
{
	struct pair p;

	(void)state;
	open_apart(&p, false);
	for (int i = 0; i < 50; i++) {
		struct wf_tcp_conn *conn = conn_of(&p.b, &p.a);
		struct pollfd fd = { .fd = conn->fd, .events = POLLIN };
		struct wf_nic_wc wc;

		pair_recv(&p.b, 1, LEN, LEN);
		post(&p.a, &p.b, LEN);
		assert_int_equal(poll(&fd, 1, PAIR_LOST * 1000), 1);
		dev_of(&p.b)->looked_at = 0;
		wf_nic_progress(p.b.nic);
		assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 1);
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
		talk_apart(&p, &p.b, &p.a);
	}
	pair_close(&p);
}

static int sleeps_for(struct side *s, int ms)
{
	struct pollfd fd = { .fd = wf_nic_wait_fd(s->nic), .events = POLLIN };

	return poll(&fd, 1, ms);
}

static void test_sleeper(void **state)
{
	struct wf_nic_wc wc;
	uint64_t deadline;
	struct pair p;

	(void)state;
	open_apart(&p, false);
	pair_recv(&p.b, 1, LEN, LEN);
	assert_int_equal(wf_nic_wait_begin(p.b.nic, p.b.cq, &deadline), 0);
	assert_false(conn_of(&p.b, &p.a)->apart);
	assert_int_equal(dev_of(&p.b)->apart_count, 0);
	post(&p.a, &p.b, LEN);
	assert_int_equal(sleeps_for(&p.b, PAIR_LOST * 1000), 1);
	wf_nic_wait_end(p.b.nic);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	/* One that came before the sleep began. */
	talk_apart(&p, &p.b, &p.a);
	pair_recv(&p.b, 1, LEN, LEN);
	post(&p.a, &p.b, LEN);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	assert_int_equal(wf_nic_wait_begin(p.b.nic, p.b.cq, &deadline), 0);
	assert_int_equal(sleeps_for(&p.b, PAIR_LOST * 1000), 1);
	wf_nic_wait_end(p.b.nic);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	pair_close(&p);
}

/* The owner does not call any more: its attendant sleeps at the same descriptor. */
static void test_attendant(void **state)
{
	struct pair p;

	(void)state;
	open_apart(&p, true);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
		struct wf_nic_wc wc;

		pair_recv(&p.b, 1, LEN, LEN);
		usleep(i * 5000);
		post(&p.a, &p.b, LEN);
		while (!wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			wf_nic_progress(p.a.nic);
			assert_true(wf_base_clock_ns() < end);
		}
		assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
		talk_apart(&p, &p.b, &p.a);
	}
	pair_close(&p);
}

/* Epoll tells when there is room again. */
static void test_no_room(void **state)
{
	int bytes = 4096;
	unsigned done = 0;
	struct pair p;

	(void)state;
	open_apart(&p, false);
	talk_apart(&p, &p.a, &p.b);
	assert_int_equal(setsockopt(conn_of(&p.a, &p.b)->fd, SOL_SOCKET,
				    SO_SNDBUF, &bytes, sizeof(bytes)),
			 0);
	for (unsigned i = 0; i < MANY; i++)
		post(&p.a, &p.b, LONG);
	assert_true(conn_of(&p.a, &p.b)->full);
	assert_false(conn_of(&p.a, &p.b)->apart);
	for (unsigned i = 0; i < MANY; i++)
		pair_recv(&p.b, 1, LEN, LONG);
	for (; done < MANY; done++)
		assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	for (done = 0; done < MANY; done++)
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	pair_close(&p);
}

/* Nobody sleeps for long while it cannot be watched. */
static void test_cannot_watch(void **state)
{
	struct wf_tcp_dev *dev;
	uint64_t deadline;
	struct pair p;
	int fd;

	(void)state;
	open_apart(&p, false);
	dev = dev_of(&p.b);
	fd = dev->poll_fd;
	dev->poll_fd = -1;
	assert_int_equal(wf_nic_wait_begin(p.b.nic, NULL, &deadline), 0);
	assert_true(conn_of(&p.b, &p.a)->apart);
	assert_true(deadline <= wf_base_clock_ns() + WF_NS_PER_MS);
	wf_nic_wait_end(p.b.nic);
	dev->poll_fd = fd;
	talk(&p);
	pair_close(&p);
}

static void test_breaks(void **state)
{
	struct pair p;

	(void)state;
	open_apart(&p, false);
	shutdown(conn_of(&p.b, &p.a)->fd, SHUT_RDWR);
	talk(&p);
	talk_apart(&p, &p.b, &p.a);
	shutdown(conn_of(&p.a, &p.b)->fd, SHUT_RDWR);
	talk(&p);
	talk_apart(&p, &p.b, &p.a);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_read),
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_attendant),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_cannot_watch),
		cmocka_unit_test(test_breaks),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
