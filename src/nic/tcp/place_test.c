/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of messages whose payload goes where the user says: at once, late,
 * not at all, while a thread works for the user, over a connection that breaks.
 */
#include "nic/pair_test.h"

#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "nic/tcp/dev.h"

#define HEADER 20u
#define AT (1u << 20) /* of places, in the memory of a side */

static struct wf_tcp_conn *conn_of(struct side *s, struct side *other)
{
	struct wf_tcp_peer *peer = wf_tcp_peer_find(wf_tcp_dev_of(s->nic),
						    wf_nic_socket(other->nic));

	return peer->chans[WF_TCP_SMALL].conn;
}

/* A message of @len bytes behind a header that tells @seed. */
static void send_long(struct pair *p, uint32_t seed, uint32_t len)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, seed);
	struct wf_nic_sge sge[2] = { pair_sge(&p->a, 64 * seed, HEADER),
				     pair_sge(&p->a, AT, len) };

	memset(sge[0].addr, (int)seed, HEADER);
	fill(sge[1].addr, len, seed);
	assert_int_equal(wf_nic_post_send(p->a.qp, &wr, sge, 2), 0);
}

static void send_short(struct pair *p, uint64_t id)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, id);

	assert_int_equal(wf_nic_post_inline(p->a.qp, &wr, &id, sizeof(id)), 0);
}

/* B is asked where the message @seed goes. */
static uint32_t asked(struct pair *p, uint32_t seed, uint32_t len)
{
	struct wf_nic_wc wc = pair_wait(p, &p->b);

	assert_int_equal(wc.status, WF_NIC_OK);
	assert_true(wc.flags & WF_NIC_WC_ASKS);
	assert_int_equal(wc.len, HEADER);
	assert_int_equal(wc.more, len);
	assert_int_equal(p->b.memory[wc.wr_id * 1024], seed);
	return wc.imm;
}

static void came_short(struct pair *p, uint64_t id)
{
	struct wf_nic_wc wc = pair_wait(p, &p->b);

	assert_int_equal(wc.status, WF_NIC_OK);
	assert_false(wc.flags & WF_NIC_WC_ASKS);
	assert_memory_equal(p->b.memory + wc.wr_id * 1024, &id, sizeof(id));
}

static void post_receives(struct pair *p, unsigned int count)
{
	for (unsigned int i = 1; i <= count; i++)
		pair_recv(&p->b, i, i * 1024, 1024);
}

static void open_placed(struct pair *p, unsigned int receives)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	attr.places = true;
	pair_device = "tcp";
	pair_open_attr(p, &attr, &attr);
	hello(p);
	post_receives(p, receives);
}

static struct wf_nic_placed wait_told(struct pair *p)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_nic_placed placed;

	while (!wf_nic_placed(p->b.nic, &placed, 1)) {
		pair_progress(p);
		assert_true(wf_base_clock_ns() < end);
	}
	return placed;
}

static void *wait_placed(struct pair *p)
{
	struct wf_nic_placed placed = wait_told(p);

	assert_false(placed.failed);
	return placed.arg;
}

static void sent(struct pair *p, int count)
{
	while (count--)
		assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
}

/* All lengths from the first that no receive holds, with others before and behind
 * them, into places of any alignment. */
static void test_placed(void **state)
{
	const uint32_t least = 16384 + 576 + 1 - HEADER;
	const uint32_t lens[] = { least, least + 63, 40000,
				  65536, 131073,     (256u << 10) };
	struct pair p;

	(void)state;
	open_placed(&p, 0);
	for (uint32_t i = 0; i < 6; i++) {
		uint8_t *at = p.b.memory + AT + i;
		uint32_t number;

		post_receives(&p, 4);
		send_short(&p, 100);
		send_long(&p, i + 1, lens[i]);
		send_short(&p, 101);
		came_short(&p, 100);
		number = asked(&p, i + 1, lens[i]);
		memset(at - 1, 0xee, lens[i] + 2);
		assert_int_equal(wf_nic_place(p.b.nic, number, at, &p), 0);
		assert_ptr_equal(wait_placed(&p), &p);
		assert_true(filled(at, lens[i], i + 1));
		assert_int_equal(at[-1], 0xee);
		assert_int_equal(at[lens[i]], 0xee);
		came_short(&p, 101);
		/* Answered once. */
		assert_int_equal(wf_nic_place(p.b.nic, number, at, &p),
				 -ESTALE);
		sent(&p, 3);
	}
	pair_close(&p);
}

/* The user takes its time: the bytes behind the message come meanwhile. */
static void test_late(void **state)
{
	uint8_t *at;
	uint32_t numbers[3];
	struct pair p;

	(void)state;
	open_placed(&p, 8);
	at = p.b.memory + AT;
	for (uint32_t i = 0; i < 3; i++) {
		send_long(&p, i + 1, 50000 + i);
		/* It lies where the next one is written to. */
		numbers[i] = asked(&p, i + 1, 50000 + i);
		send_short(&p, i);
		came_short(&p, i);
		sent(&p, 2);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(wf_nic_place(p.b.nic, numbers[i], at, at), 0);
		assert_true(wf_nic_has_placed(p.b.nic));
		assert_ptr_equal(wait_placed(&p), at);
		assert_true(filled(at, 50000 + i, i + 1));
	}
	assert_false(wf_nic_has_placed(p.b.nic));
	assert_int_equal(wf_tcp_dev_of(p.b.nic)->kept_bytes, 0);
	pair_close(&p);
}

/* Nobody is there to answer while a thread works for the user. */
static void test_attended(void **state)
{
	struct wf_tcp_dev *dev;
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 4);
	dev = wf_tcp_dev_of(p.b.nic);
	at = p.b.memory + AT;
	send_long(&p, 1, 200000);
	send_short(&p, 7);
	/* The sender's part is over before the user of B looks. */
	for (int done = 0; done < 2;) {
		struct wf_nic_wc wc;

		wf_nic_progress(p.a.nic);
		wf_tcp_pass_attend(&dev->attend, true);
		done += wf_nic_cq_poll(p.a.cq, &wc, 1);
	}
	assert_int_equal(wf_nic_place(p.b.nic, asked(&p, 1, 200000), at, &dev),
			 0);
	assert_ptr_equal(wait_placed(&p), &dev);
	assert_true(filled(at, 200000, 1));
	came_short(&p, 7);
	pair_close(&p);
}

static void test_unwanted(void **state)
{
	struct pair p;

	(void)state;
	open_placed(&p, 4);
	send_long(&p, 1, 100000);
	send_short(&p, 7);
	assert_int_equal(wf_nic_place(p.b.nic, asked(&p, 1, 100000), NULL, &p),
			 0);
	came_short(&p, 7);
	sent(&p, 2);
	assert_false(wf_nic_has_placed(p.b.nic));
	pair_close(&p);
}

/* Some of a long message is in place, and the rest has not left. */
static uint32_t begin_slow(struct pair *p, uint8_t *at)
{
	int room = 4096;
	uint32_t number;

	assert_int_equal(setsockopt(conn_of(&p->a, &p->b)->fd, SOL_SOCKET,
				    SO_SNDBUF, &room, sizeof(room)),
			 0);
	memset(at, 0xee, 256u << 10);
	send_long(p, 1, 256u << 10);
	number = asked(p, 1, 256u << 10);
	assert_int_equal(wf_nic_place(p->b.nic, number, at, at), 0);
	for (int i = 0; i < 100000 && at[4096] == 0xee; i++)
		wf_nic_progress(p->b.nic);
	assert_true(filled(at, 4096, 1));
	assert_int_equal(at[(256u << 10) - 1], 0xee);
	return number;
}

/* Bug: a payload that was kept had the mark of a stranger if its memory had been
 * a stranger's before, and its connection could be taken for one that keeps
 * memory from others. */
static void test_kept(void **state)
{
	const struct wf_tcp_held *held;
	struct wf_tcp_dev *dev;
	uint32_t number;
	struct pair p;

	(void)state;
	open_placed(&p, 4);
	dev = wf_tcp_dev_of(p.b.nic);
	/* malloc() returns memory that is full of ones. */
	mallopt(M_PERTURB, 0xfe);
	send_long(&p, 1, 50000);
	number = asked(&p, 1, 50000);
	send_short(&p, 7);
	came_short(&p, 7);
	mallopt(M_PERTURB, 0);
	held = dev->places[wf_queue_ids_index(&dev->place_ids, number)].held;
	assert_non_null(held);
	assert_false(held->stranger);
	assert_in_range(held->from, 1, dev->now);
	wf_nic_unplace(p.b.nic, number);
	pair_close(&p);
}

/* Memory that was taken back is not touched any more. */
static void test_taken_back(void **state)
{
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 4);
	at = p.b.memory + AT;
	wf_nic_unplace(p.b.nic, begin_slow(&p, at));
	memset(at, 0xdd, 256u << 10);
	send_short(&p, 7);
	came_short(&p, 7);
	sent(&p, 2);
	for (uint32_t i = 0; i < 256u << 10; i++)
		assert_int_equal(at[i], 0xdd);
	assert_false(wf_nic_has_placed(p.b.nic));
	pair_close(&p);
}

/* Over the next connection it comes from its beginning, and asks again. */
static void test_broken(void **state)
{
	uint32_t number;
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 4);
	at = p.b.memory + AT;
	number = begin_slow(&p, at);
	shutdown(conn_of(&p.a, &p.b)->fd, SHUT_RDWR);
	send_short(&p, 7);
	memset(at, 0xdd, 256u << 10);
	assert_int_equal(
		wf_nic_place(p.b.nic, asked(&p, 1, 256u << 10), at, &p), 0);
	assert_int_equal(wf_nic_place(p.b.nic, number, at, &p), -ESTALE);
	wf_nic_unplace(p.b.nic, number);
	assert_ptr_equal(wait_placed(&p), &p);
	assert_true(filled(at, 256u << 10, 1));
	came_short(&p, 7);
	sent(&p, 2);
	pair_close(&p);
}

/* Queue pairs that go away in the middle of it. */
static void test_flushed(void **state)
{
	struct pair p;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint8_t *at;

		open_placed(&p, 0);
		at = p.b.memory + AT;
		post_receives(&p, 4);
		if (i == 0) {
			begin_slow(&p, at);
		} else {
			send_long(&p, 1, 90000);
			asked(&p, 1, 90000);
		}
		/* One that waits, and one that is kept. */
		for (int end = i == 2; end; end = 0) {
			send_short(&p, 7);
			came_short(&p, 7);
		}
		wf_nic_qp_destroy(p.b.qp);
		p.b.qp = NULL;
		memset(at, 0xcc, 256u << 10);
		for (int j = 0; j < 1000; j++)
			pair_progress(&p);
		for (uint32_t j = 0; j < 256u << 10; j++)
			assert_int_equal(at[j], 0xcc);
		assert_int_equal(wf_tcp_dev_of(p.b.nic)->kept_bytes, 0);
		pair_close(&p);
	}
}

/* Bug: a message that asks overtook another which waited for a receive. Its user
 * takes it for one that makes no sense. */
static void test_turn(void **state)
{
	struct wf_nic_qp_attr attr = { .sq_entries = 4,
				       .rq_entries = 4,
				       .qkey = PAIR_QKEY };
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_nic_qp *first, *second;
	const struct wf_list *held;
	struct wf_nic_wc wc;
	struct pair p;

	(void)state;
	open_placed(&p, 0);
	first = p.b.qp;
	post_receives(&p, 2);
	attr.send_cq = p.b.cq;
	attr.recv_cq = p.b.cq;
	assert_int_equal(wf_nic_qp_create(p.b.nic, &attr, &p.b.qp), 0);
	send_short(&p, 7);
	second = p.b.qp;
	p.b.qp = first;
	send_long(&p, 1, 50000);
	p.b.qp = second;
	held = &wf_tcp_dev_of(p.b.nic)->all_held;
	while (wf_base_list_empty(held) || held->next->next == held) {
		pair_progress(&p);
		assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 10; i++)
		pair_progress(&p);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	pair_recv(&p.b, 3, 3 * 1024, 1024);
	came_short(&p, 7);
	assert_int_equal(
		wf_nic_place(p.b.nic, asked(&p, 1, 50000), p.b.memory + AT, &p),
		0);
	assert_ptr_equal(wait_placed(&p), &p);
	assert_true(filled(p.b.memory + AT, 50000, 1));
	wf_nic_qp_destroy(p.b.qp);
	p.b.qp = first;
	pair_close(&p);
}

/* A peer that does not answer questions is not asked. */
static void test_off(void **state)
{
	struct wf_nic_wr wr;
	struct wf_nic_sge sge[2];
	struct pair p;

	(void)state;
	pair_device = "tcp";
	pair_open(&p);
	assert_int_equal(wf_nic_caps(p.a.nic)->max_placed, 0);
	wr = pair_wr(&p.a, &p.b, 1);
	sge[0] = pair_sge(&p.a, 0, HEADER);
	sge[1] = pair_sge(&p.a, 64, 20000);
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr, sge, 2), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_LOCAL_LEN);
	pair_close(&p);
}

/* A message that asks, to a NIC whose user gives no answers, is refused, and
 * nothing is kept of it. */
static void test_refused(void **state)
{
	struct wf_nic_attr from = pair_attr(AF_INET), to = from;
	struct pair p;

	(void)state;
	from.places = true;
	pair_device = "tcp";
	pair_open_attr(&p, &from, &to);
	hello(&p);
	post_receives(&p, 2);
	send_long(&p, 1, 50000);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_REM_LEN);
	assert_int_equal(wf_tcp_dev_of(p.b.nic)->filling, 0);
	send_short(&p, 7);
	came_short(&p, 7);
	pair_close(&p);
}

static void attend(struct pair *p)
{
	wf_nic_progress(p->a.nic);
	wf_tcp_pass_attend(&wf_tcp_dev_of(p->b.nic)->attend, true);
}

static void await_deaf(struct pair *p, void (*turn)(struct pair *p))
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_tcp_dev *dev = wf_tcp_dev_of(p->b.nic);
	struct pollfd wakes = { .fd = dev->poll_fd, .events = POLLIN };

	while (wf_base_list_empty(&dev->deaf)) {
		turn(p);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 10; i++) {
		usleep(500);
		turn(p);
	}
	assert_int_equal(dev->filling, 0);
	assert_int_equal(dev->kept_bytes, 0);
	assert_int_equal(poll(&wakes, 1, 0), 0);
	assert_false(wf_tcp_in_is_blind(dev));
}

/* Bug: only complete messages were counted, so each of many peers could have us
 * keep a long one. Where all is taken up they wait in their sockets and wake
 * nobody, unless they have a receive and a place. */
static void test_full(void **state)
{
	const uint64_t all = 256u << 20;
	struct wf_tcp_dev *dev;
	uint32_t number;
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 8);
	dev = wf_tcp_dev_of(p.b.nic);
	at = p.b.memory + AT;
	/* The user of B computes, then is back and does not answer. */
	dev->held_bytes += all;
	send_long(&p, 1, 200000);
	await_deaf(&p, attend);
	number = asked(&p, 1, 200000);
	await_deaf(&p, pair_progress);
	assert_int_equal(wf_nic_place(p.b.nic, number, at, &p), 0);
	assert_ptr_equal(wait_placed(&p), &p);
	assert_true(filled(at, 200000, 1));
	sent(&p, 1);
	send_short(&p, 7);
	came_short(&p, 7);
	sent(&p, 1);
	assert_true(wf_base_list_empty(&dev->deaf));
	/* There is room again while he computes. */
	send_long(&p, 2, 200000);
	await_deaf(&p, attend);
	dev->held_bytes -= all;
	for (struct wf_nic_wc wc; !wf_nic_cq_poll(p.a.cq, &wc, 1);)
		attend(&p);
	number = asked(&p, 2, 200000);
	assert_int_equal(wf_nic_place(p.b.nic, number, at, &p), 0);
	assert_ptr_equal(wait_placed(&p), &p);
	assert_true(filled(at, 200000, 2));
	assert_true(wf_base_list_empty(&dev->deaf));
	pair_close(&p);
}

#define SAFE (192u << 10) /* more than is read before a place is known */
#define WHOLE (256u << 10)

/* Bug: memory that the kernel cannot write was a reason to connect again, for
 * ever. */
static void test_unwritable(void **state)
{
	struct wf_nic_placed placed;
	struct wf_nic_remote remote;
	struct wf_tcp_conn *conn;
	struct wf_nic_sge sge;
	struct wf_nic_mr mr[2];
	struct wf_nic_wr wr;
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 8);
	at = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + SAFE, WHOLE - SAFE, PROT_READ), 0);
	conn = conn_of(&p.b, &p.a);
	send_long(&p, 1, WHOLE);
	assert_int_equal(
		wf_nic_place(p.b.nic, asked(&p, 1, WHOLE), at, &placed), 0);
	placed = wait_told(&p);
	assert_true(placed.failed);
	assert_ptr_equal(placed.arg, &placed);
	send_short(&p, 7);
	came_short(&p, 7);
	sent(&p, 2);
	assert_ptr_equal(conn_of(&p.b, &p.a), conn);
	/* Written to, and read into. */
	assert_int_equal(
		wf_nic_mr_reg(p.b.nic, at, WHOLE, WF_NIC_REMOTE_WRITE, &mr[0]),
		0);
	assert_int_equal(
		wf_nic_mr_reg(p.a.nic, at, WHOLE, WF_NIC_LOCAL_WRITE, &mr[1]),
		0);
	wr = pair_wr(&p.a, &p.b, 2);
	sge = pair_sge(&p.a, AT, WHOLE);
	remote = (struct wf_nic_remote){ .addr = (uintptr_t)at,
					 .rkey = mr[0].rkey };
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &remote, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_REM_ADDR);
	remote = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					 .rkey = p.b.mr.rkey };
	sge = (struct wf_nic_sge){ at, WHOLE, mr[1].lkey };
	assert_int_equal(wf_nic_post_read(p.a.qp, &wr, &remote, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_BAD_LKEY);
	send_short(&p, 8);
	came_short(&p, 8);
	pair_close(&p);
	munmap(at, WHOLE);
}

static void send_from(struct pair *p, const struct wf_nic_mr *mr, uint8_t *at,
		      uint32_t len)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, len);
	struct wf_nic_sge sge = { at, len, mr->lkey };

	assert_int_equal(wf_nic_post_send(p->a.qp, &wr, &sge, 1), 0);
}

/* Bug: the same with memory that the kernel cannot read. The messages before
 * and behind it arrive. */
static void test_unreadable(void **state)
{
	enum { LEN = 8192, BAD = 3, COUNT = 7 };
	const size_t all = WHOLE + LEN;
	struct wf_nic_remote remote;
	struct wf_tcp_conn *conn;
	struct wf_nic_sge sge;
	struct wf_nic_mr mr;
	struct wf_nic_wr wr;
	uint8_t *at;
	struct pair p;

	(void)state;
	open_placed(&p, 0);
	at = mmap(NULL, all, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(wf_nic_mr_reg(p.a.nic, at, all,
				       WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ,
				       &mr),
			 0);
	assert_int_equal(mprotect(at + SAFE, all - SAFE, PROT_NONE), 0);
	conn = conn_of(&p.b, &p.a);
	for (unsigned int i = 0; i < COUNT; i++) {
		pair_recv(&p.b, i, (size_t)i * LEN, LEN);
		send_from(&p, &mr, i == BAD ? at + WHOLE : at, LEN - i);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		struct wf_nic_wc wc = pair_wait(&p, &p.a);

		assert_int_equal(wc.status, wc.wr_id == LEN - BAD ?
						    WF_NIC_BAD_LKEY :
						    WF_NIC_OK);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		if (i != BAD)
			assert_int_equal(pair_wait(&p, &p.b).len, LEN - i);
	}
	assert_ptr_equal(conn_of(&p.b, &p.a), conn);
	/* The beginning of it may have left, or it is read by a peer. */
	post_receives(&p, 2);
	wr = pair_wr(&p.b, &p.a, 1);
	remote = (struct wf_nic_remote){ .addr = (uintptr_t)at,
					 .rkey = mr.rkey };
	sge = pair_sge(&p.b, AT, WHOLE);
	assert_int_equal(wf_nic_post_read(p.b.qp, &wr, &remote, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_REM_ADDR);
	send_from(&p, &mr, at + SAFE - LEN / 2, LEN);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_BAD_LKEY);
	send_short(&p, 8);
	came_short(&p, 8);
	pair_close(&p);
	munmap(at, all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placed),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_attended),
		cmocka_unit_test(test_unwanted),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_flushed),
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
