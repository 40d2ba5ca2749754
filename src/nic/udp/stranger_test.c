/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of those who sleep, and of strangers and liars: no wake-up is lost,
 * and what should not have been sent is counted and dropped.
 */
#include "nic/pair_test.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

/* -- sleep ------------------------------------------------------------------ */

static void sleep_for(struct side *s)
{
	struct pollfd fd = { .fd = wf_nic_wait_fd(s->nic), .events = POLLIN };
	uint64_t until, now;
	const int patience = PAIR_LOST * 1000;
	int ms = -1;

	if (wf_nic_wait_begin(s->nic, s->cq, &until))
		return;
	now = wf_base_clock_ns();
	if (until != UINT64_MAX)
		ms = until > now ? (int)((until - now) / WF_NS_PER_MS) + 1 : 0;
	/* A sleeper without a deadline must be woken. */
	if (ms < 0 || ms > patience)
		assert_int_equal(poll(&fd, 1, patience), 1);
	else
		assert_true(poll(&fd, 1, ms) >= 0);
	wf_nic_wait_end(s->nic);
}

static void ping_pong_asleep(bool thread)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_wr wr;
	struct wf_nic_wc wc;
	struct pair p;
	int turns = 0;

	attr.thread = thread;
	pair_open_attr(&p, &attr, &attr);
	for (uint64_t i = 0; i < 100; i++)
		pair_recv(&p.b, i, 0, 64);
	for (int i = 0; i < 50; i++) {
		bool sent = false, received = false;

		wr = pair_wr(&p.a, &p.b, 1);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		while (!sent || !received) {
			received |= wf_nic_cq_poll(p.b.cq, &wc, 1) == 1;
			sent |= wf_nic_cq_poll(p.a.cq, &wc, 1) == 1;
			if (!received)
				sleep_for(&p.b);
			else if (!sent)
				sleep_for(&p.a);
			wf_nic_progress(p.b.nic);
			wf_nic_progress(p.a.nic);
			turns++;
		}
	}
	print_message("%d turns for 50 messages\n", turns);
	pair_close(&p);
}

static void test_sleep(void **state)
{
	(void)state;
	ping_pong_asleep(true);
}

/* One thread sleeps until something happens, another posts: the sleeper has to
 * hear of it, or nobody would repeat what gets lost. */
static void *post_later(void *arg)
{
	struct pair *p = arg;
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, 1);

	usleep(20000);
	assert_int_equal(wf_nic_post_inline(p->a.qp, &wr, "x", 1), 0);
	return NULL;
}

static void test_post_wakes(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pollfd fd = { .events = POLLIN };
	pthread_t thread;
	uint64_t until;
	struct pair p;

	(void)state;
	attr.locked = true;
	pair_open_attr(&p, &attr, &attr);
	hello(&p);
	while (wf_nic_progress(p.a.nic))
		;
	fd.fd = wf_nic_wait_fd(p.a.nic);
	assert_int_equal(wf_nic_wait_begin(p.a.nic, p.a.cq, &until), 0);
	assert_int_equal(pthread_create(&thread, NULL, post_later, &p), 0);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	wf_nic_wait_end(p.a.nic);
	pthread_join(thread, NULL);
	/* Not for nothing: now there is a deadline. */
	if (!wf_nic_wait_begin(p.a.nic, p.a.cq, &until)) {
		assert_int_not_equal(until, UINT64_MAX);
		wf_nic_wait_end(p.a.nic);
	}
	pair_recv(&p.b, 1, 0, 64);
	assert_int_equal(pair_wait(&p, &p.b).len, 1);
	pair_close(&p);
}

/* A child that was forked closes its copy: the parent's connections stay. */
static void test_fork(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;
	int status;
	pid_t pid;

	(void)state;
	attr.thread = true;
	pair_open_attr(&p, &attr, &attr);
	hello(&p);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		wf_nic_close(p.a.nic);
		wf_nic_close(p.b.nic);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hello(&p);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.a, connects), 1);
	pair_close(&p);
}

/* -- strangers -------------------------------------------------------------- */

static int stranger_socket(struct wf_addr *me)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &attr.addr.sa, sizeof(attr.addr.in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(wf_base_addr_set(me, &name, len), 0);
	return fd;
}

static void send_sealed(int fd, const struct side *to, void *packet, size_t len)
{
	struct wf_udp_common *common = packet;
	const struct wf_addr *addr = wf_nic_socket(to->nic);

	common->crc = wf_udp_sum_head(packet, len);
	assert_int_equal(
		sendto(fd, packet, len, 0, &addr->sa, sizeof(addr->in)), len);
	wf_nic_progress(to->nic);
	wf_nic_progress(to->nic);
}

static void test_strangers(void **state)
{
	struct wf_udp_hello open = { .common = { .magic = WF_UDP_MAGIC,
						 .type = WF_UDP_OPEN,
						 .kind = WF_UDP_VERSION },
				     .src_cid = 5 };
	struct wf_udp_data data = { .common = { .magic = WF_UDP_MAGIC,
						.type = WF_UDP_DATA } };
	struct wf_udp_peer *peer;
	struct wf_addr me;
	struct wf_nic_wc wc;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p);
	hello(&p);
	pair_recv(&p.b, 2, 0, 64);
	fd = stranger_socket(&me);
	/* Without a cookie nothing is kept. */
	send_sealed(fd, &p.b, &open, sizeof(open));
	assert_int_equal(COUNTED(&p.b, bad_cookie), 1);
	assert_int_equal(COUNTED(&p.b, peers), 1);
	open.common.type = WF_UDP_INIT;
	send_sealed(fd, &p.b, &open, sizeof(open));
	assert_int_equal(COUNTED(&p.b, peers), 1);
	/* A guessed id. */
	data.common.dst_cid = 0x123456789abc0000;
	send_sealed(fd, &p.b, &data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, bad_cid), 1);
	assert_int_equal(COUNTED(&p.b, resets_sent), 1);
	/* The right id from elsewhere: as if it had been overheard. */
	peer = wf_udp_dev_of(p.b.nic)->engine.peers[0];
	data.common.dst_cid = peer->in.cid;
	send_sealed(fd, &p.b, &data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, bad_addr), 1);
	/* Damage, lengths, other protocols. */
	data.common.magic = 1;
	send_sealed(fd, &p.b, &data, sizeof(data));
	data.common.magic = WF_UDP_MAGIC;
	data.common.type = WF_UDP_TYPES;
	send_sealed(fd, &p.b, &data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, bad_magic), 2);
	data.common.type = WF_UDP_DATA;
	data.len = 1;
	send_sealed(fd, &p.b, &data, sizeof(data));
	data.len = 0;
	send_sealed(fd, &p.b, &data, 17);
	assert_int_equal(COUNTED(&p.b, bad_short), 2);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	close(fd);
	pair_close(&p);
}

/* A handshake by hand, up to an OPEN that is good. */
static struct wf_udp_hello knock(int fd, struct side *to, uint64_t cid)
{
	struct wf_udp_hello hello = { .common = { .magic = WF_UDP_MAGIC,
						  .type = WF_UDP_INIT,
						  .kind = WF_UDP_VERSION },
				      .src_cid = cid };
	struct wf_udp_hello answer;

	send_sealed(fd, to, &hello, sizeof(hello));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.common.type, WF_UDP_COOKIE);
	hello.common.type = WF_UDP_OPEN;
	hello.cookie = answer.cookie;
	hello.epoch = answer.epoch;
	send_sealed(fd, to, &hello, sizeof(hello));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.common.type, WF_UDP_ACCEPT);
	return hello;
}

/* An OPEN that was recorded, or comes late, does not take the place of the
 * connection that came after it. */
static void test_replayed_open(void **state)
{
	struct wf_udp_hello first, second;
	struct wf_udp_peer *peer;
	struct wf_addr me;
	struct pair p;
	uint64_t cid;
	int fd;

	(void)state;
	pair_open(&p);
	fd = stranger_socket(&me);
	first = knock(fd, &p.b, 0x1111);
	second = knock(fd, &p.b, 0x2222);
	peer = wf_udp_peer_find(&wf_udp_dev_of(p.b.nic)->engine, &me);
	assert_non_null(peer);
	cid = peer->in.cid;
	send_sealed(fd, &p.b, &first, sizeof(first));
	assert_int_equal(COUNTED(&p.b, bad_cookie), 1);
	assert_int_equal(peer->in.remote_cid, 0x2222);
	/* The present one may ask again: our answer was lost. */
	send_sealed(fd, &p.b, &second, sizeof(second));
	assert_int_equal(peer->in.cid, cid);
	assert_int_equal(COUNTED(&p.b, accepts), 2);
	close(fd);
	pair_close(&p);
}

/* Strangers do not take the places of those whom the user wants to reach. */
static void test_crowd(void **state)
{
	enum { PLACES = 4 };
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_addr me, to;
	struct pair p;
	uint16_t ah;

	(void)state;
	attr.max_peers = PLACES;
	pair_open_attr(&p, &attr, &attr);
	for (int i = 0; i < PLACES + 2; i++) {
		struct wf_udp_hello init = {
			.common = { .magic = WF_UDP_MAGIC,
				    .type = WF_UDP_INIT,
				    .kind = WF_UDP_VERSION },
			.src_cid = 7
		};
		struct wf_udp_hello answer;
		int fd = stranger_socket(&me);

		if (i < PLACES) {
			knock(fd, &p.b, 7);
		} else {
			send_sealed(fd, &p.b, &init, sizeof(init));
			recv(fd, &answer, sizeof(answer), 0);
			init.common.type = WF_UDP_OPEN;
			init.cookie = answer.cookie;
			init.epoch = answer.epoch;
			send_sealed(fd, &p.b, &init, sizeof(init));
		}
		close(fd);
	}
	assert_int_equal(COUNTED(&p.b, peers), PLACES + 1);
	to = me;
	for (int i = 0; i < PLACES - 1; i++) {
		wf_base_addr_set_port(&to, (uint16_t)(1 + i));
		assert_int_equal(wf_nic_ah_create_socket(p.b.nic, &to, &ah), 0);
	}
	wf_base_addr_set_port(&to, 99);
	assert_int_equal(wf_nic_ah_create_socket(p.b.nic, &to, &ah), -ENOSPC);
	pair_close(&p);
}

/* Whoever has the id and the address still cannot do harm: sequence numbers far
 * away, keys that do not exist, operations that do not exist. */
static void test_forged(void **state)
{
	struct wf_udp_data data = { .common = { .magic = WF_UDP_MAGIC,
						.type = WF_UDP_DATA,
						.kind = WF_UDP_WRITE } };
	struct wf_udp_ack ack = { .common = { .magic = WF_UDP_MAGIC,
					      .type = WF_UDP_ACK } };
	struct wf_udp_dev *dev;
	struct wf_udp_peer *peer;
	uint64_t duplicates;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_udp_dev_of(p.b.nic);
	peer = dev->engine.peers[0];
	data.common.dst_cid = peer->in.cid;
	data.qkey = PAIR_QKEY;
	data.dst_qpn = wf_nic_qp_num(p.b.qp);
	data.seq = peer->in.base + WF_UDP_WINDOW;
	data.common.crc = wf_udp_sum_head(&data, sizeof(data));
	wf_udp_engine_receive(&dev->engine, dev->now, &peer->addr, &peer->addr,
			      (uint8_t *)&data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, beyond_window), 1);
	data.seq = peer->in.base - 1;
	data.common.crc = wf_udp_sum_head(&data, sizeof(data));
	/* On a busy machine the hello may have been sent twice. */
	duplicates = COUNTED(&p.b, duplicates);
	wf_udp_engine_receive(&dev->engine, dev->now, &peer->addr, &peer->addr,
			      (uint8_t *)&data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, duplicates), duplicates + 1);
	data.seq = peer->in.base;
	data.common.kind = WF_UDP_DATA_OPS;
	data.common.crc = wf_udp_sum_head(&data, sizeof(data));
	wf_udp_engine_receive(&dev->engine, dev->now, &peer->addr, &peer->addr,
			      (uint8_t *)&data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, bad_field), 1);
	/* An ack of what was never sent. */
	dev = wf_udp_dev_of(p.a.nic);
	peer = dev->engine.peers[0];
	ack.common.dst_cid = peer->out.cid;
	ack.base = peer->out.next + 1;
	ack.common.crc = wf_udp_sum_head(&ack, sizeof(ack));
	wf_udp_engine_receive(&dev->engine, dev->now, &peer->addr, &peer->addr,
			      (uint8_t *)&ack, sizeof(ack));
	assert_int_equal(COUNTED(&p.a, bad_field), 1);
	/* A flood of guesses is not answered by a flood of resets. */
	dev = wf_udp_dev_of(p.b.nic);
	data.common.dst_cid ^= 0x1230000;
	data.common.crc = wf_udp_sum_head(&data, sizeof(data));
	for (int i = 0; i < 1000; i++)
		wf_udp_engine_receive(
			&dev->engine, dev->now, wf_nic_socket(p.a.nic),
			wf_nic_socket(p.a.nic), (uint8_t *)&data, sizeof(data));
	assert_int_equal(COUNTED(&p.b, bad_cid), 1000);
	assert_true(COUNTED(&p.b, resets_sent) <= 64);
	/* The refusal of what was forged finds nobody who sent it. */
	for (int i = 0; i < 100; i++)
		pair_progress(&p);
	hello(&p);
	pair_close(&p);
}

struct answer {
	struct wf_udp_data head;
	uint8_t payload[100];
};

static void give_answer(struct side *to, struct wf_udp_peer *peer,
			struct answer *answer)
{
	struct wf_udp_common *common = &answer->head.common;

	common->magic = WF_UDP_MAGIC;
	common->type = WF_UDP_DATA;
	common->kind = WF_UDP_READ_DATA;
	common->dst_cid = peer->in.cid;
	answer->head.len = sizeof(answer->payload);
	answer->head.seq = peer->in.base;
	memset(answer->payload, 0xee, sizeof(answer->payload));
	common->crc = wf_udp_sum_head(common, sizeof(answer->head));
	wf_udp_engine_receive(&wf_udp_dev_of(to->nic)->engine,
			      wf_udp_dev_of(to->nic)->now, &peer->addr,
			      &peer->addr, (uint8_t *)answer,
			      sizeof(answer->head) + sizeof(answer->payload));
}

/* Answers to a read: of somebody who was not asked, and of one who was, with
 * more than that. Neither writes a byte. */
static void test_forged_answers(void **state)
{
	struct answer answer = { .head = { .addr = 0 } };
	struct wf_udp_peer *stranger, *peer;
	struct wf_nic_remote from;
	struct wf_nic_sge sge;
	struct wf_udp_dev *dev;
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct wf_addr me;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_udp_dev_of(p.a.nic);
	fd = stranger_socket(&me);
	knock(fd, &p.a, 0x77);
	stranger = wf_udp_peer_find(&dev->engine, &me);
	peer = wf_udp_peer_find(&dev->engine, wf_nic_socket(p.b.nic));
	assert_true(stranger && peer && stranger != peer);
	for (int i = 0; i < 3; i++) {
		sge = pair_sge(&p.a, 0, 100);
		from = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					       .rkey = p.b.mr.rkey };
		wr = pair_wr(&p.a, &p.b, 1);
		assert_int_equal(wf_nic_post_read(p.a.qp, &wr, &from, &sge), 0);
		assert_false(wf_base_list_empty(&peer->reads));
		answer.head.key =
			((struct wf_udp_request *)wf_container_of(
				 peer->reads.next, struct wf_udp_op, link))
				->read_id;
		/* From a connection that has nothing to do with it. */
		give_answer(&p.a, stranger, &answer);
		assert_int_equal(COUNTED(&p.a, bad_field), 1 + 2 * i);
		assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 0);
		/* From the right one, beyond the end of what was asked for. */
		if (!peer->in.open)
			wf_udp_in_open(&dev->engine, peer, 0x88, false);
		answer.head.addr = i == 0 ? 1 : i == 1 ? 101 : UINT64_MAX - 50;
		give_answer(&p.a, peer, &answer);
		assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 1);
		assert_int_equal(wc.status, WF_NIC_BAD_STATUS);
		for (int b = 0; b < 300; b++)
			assert_int_not_equal(p.a.memory[b], 0xee);
		answer.head.addr = 0;
	}
	close(fd);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_post_wakes),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_replayed_open),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_forged_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
