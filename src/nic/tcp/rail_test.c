/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of several addresses: bulk goes by all of them, arrives once when
 * one breaks in the middle, and by the first where another leads nowhere.
 */
#include "nic/pair_test.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "nic/tcp/dev.h"

#define RAILS 2u
#define PIECE (64u << 10)
#define PIECES 32u
#define PLACE (2u << 20) /* of what is written, at the target */

static struct wf_tcp_peer *peer_of(struct side *s, struct side *other)
{
	return wf_tcp_peer_find(wf_tcp_dev_of(s->nic),
				wf_nic_socket(other->nic));
}

/* 127.0.0.2 and so on; @net is the second number. */
static struct wf_addr rail(unsigned int net, unsigned int n)
{
	struct wf_addr addr = { .in = { .sin_family = AF_INET } };

	addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (net << 16) + 1 + n);
	return addr;
}

static void open_rails(struct pair *p, unsigned int of_a, unsigned int of_b)
{
	struct wf_addr more[WF_NIC_ADDRS_MOST - 1];
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;

	for (unsigned int i = 0; i < WF_NIC_ADDRS_MOST - 1; i++)
		more[i] = rail(0, i);
	a.more = more;
	a.more_count = of_a;
	b.more = more;
	b.more_count = of_b;
	pair_open_attr(p, &a, &b);
	hello(p);
}

static void post_write(struct pair *p, uint32_t i)
{
	struct wf_nic_remote there = {
		.addr = (uintptr_t)p->b.memory + PLACE + i * PIECE,
		.rkey = p->b.mr.rkey,
	};
	struct wf_nic_sge sge = pair_sge(&p->a, i * PIECE, PIECE);
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, i);

	assert_int_equal(wf_nic_post_write(p->a.qp, &wr, &there, &sge), 0);
}

/* All pieces; each of the requests ends once, and well. */
static void write_all(struct pair *p, void (*meanwhile)(struct pair *p))
{
	bool done[PIECES] = { false };

	memset(p->b.memory + PLACE, 0, PIECES * PIECE);
	fill(p->a.memory, PIECES * PIECE, 5);
	for (uint32_t i = 0; i < PIECES; i++)
		post_write(p, i);
	if (meanwhile)
		meanwhile(p);
	for (uint32_t i = 0; i < PIECES; i++) {
		struct wf_nic_wc wc = pair_wait(p, &p->a);

		assert_int_equal(wc.status, WF_NIC_OK);
		assert_true(wc.wr_id < PIECES && !done[wc.wr_id]);
		done[wc.wr_id] = true;
	}
	assert_true(filled(p->b.memory + PLACE, PIECES * PIECE, 5));
}

static uint32_t sent_by(struct side *s, struct side *other, unsigned int rail)
{
	return peer_of(s, other)->chans[WF_TCP_BULK + rail].sent;
}

static void test_spread(void **state)
{
	struct wf_tcp_chan *chan;
	struct wf_addr from, to;
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	write_all(&p, NULL);
	for (unsigned int i = 0; i <= RAILS; i++)
		assert_true(sent_by(&p.a, &p.b, i) > 0);
	for (unsigned int i = 1; i <= RAILS; i++) {
		struct wf_addr want = rail(0, i - 1);

		chan = &peer_of(&p.a, &p.b)->chans[WF_TCP_BULK + i];
		assert_int_equal(chan->state, WF_TCP_UP);
		assert_false(chan->by_first);
		assert_int_equal(wf_tcp_sock_names(chan->conn->fd, &from, &to),
				 0);
		wf_base_addr_set_port(&from, 0);
		wf_base_addr_set_port(&to, 0);
		assert_true(wf_base_addr_equal(&from, &want));
		assert_true(wf_base_addr_equal(&to, &want));
	}
	/* Refused on a rail: told by SMALL, and what follows is acknowledged. */
	p.b.mr.rkey ^= 0x10000;
	for (uint32_t i = 0; i <= RAILS; i++)
		post_write(&p, i);
	for (uint32_t i = 0; i <= RAILS; i++)
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_REM_ADDR);
	p.b.mr.rkey ^= 0x10000;
	write_all(&p, NULL);
	assert_int_equal(COUNTED(&p.a, bad_field), 0);
	assert_int_equal(COUNTED(&p.b, bad_field), 0);
	pair_close(&p);
}

/* Reads come back by the rails, too. */
static void test_reads(void **state)
{
	struct wf_nic_remote there;
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	fill(p.b.memory, PIECES * PIECE, 6);
	for (uint32_t i = 0; i < PIECES; i++) {
		struct wf_nic_sge sge = pair_sge(&p.a, i * PIECE, PIECE);
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);

		there = (struct wf_nic_remote){
			.addr = (uintptr_t)p.b.memory + i * PIECE,
			.rkey = p.b.mr.rkey,
		};
		assert_int_equal(wf_nic_post_read(p.a.qp, &wr, &there, &sge),
				 0);
	}
	for (uint32_t i = 0; i < PIECES; i++)
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_true(filled(p.a.memory, PIECES * PIECE, 6));
	for (unsigned int i = 0; i <= RAILS; i++)
		assert_true(sent_by(&p.b, &p.a, i) > 0);
	pair_close(&p);
}

static void cut(struct side *s, struct side *other, unsigned int rail)
{
	struct wf_tcp_chan *chan =
		&peer_of(s, other)->chans[WF_TCP_BULK + rail];

	if (chan->conn)
		shutdown(chan->conn->fd, SHUT_RDWR);
}

static void cut_in_the_middle(struct pair *p)
{
	for (int i = 0; i < 40; i++) {
		cut(i % 2 ? &p->a : &p->b, i % 2 ? &p->b : &p->a,
		    1 + (unsigned)i % RAILS);
		pair_progress(p);
		pair_progress(p);
	}
}

static void test_broken(void **state)
{
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	write_all(&p, NULL);
	for (int i = 0; i < 8; i++)
		write_all(&p, cut_in_the_middle);
	write_all(&p, NULL);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
	pair_close(&p);
}

/* Nobody listens where the peer's second address leads. */
static void lead_astray(struct pair *p)
{
	struct wf_tcp_peer *peer = peer_of(&p->a, &p->b);

	for (unsigned int i = 0; i < RAILS; i++) {
		assert_null(peer->chans[WF_TCP_BULK + 1 + i].conn);
		peer->rail_addrs[i] = rail(7, i);
		wf_base_addr_set_port(&peer->rail_addrs[i], 1);
	}
}

static void test_astray(void **state)
{
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	lead_astray(&p);
	write_all(&p, NULL);
	for (unsigned int i = 1; i <= RAILS; i++) {
		assert_true(
			peer_of(&p.a, &p.b)->chans[WF_TCP_BULK + i].by_first);
		assert_true(sent_by(&p.a, &p.b, i) > 0);
	}
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	pair_close(&p);
}

/* As many as both sides have. */
static void test_uneven(void **state)
{
	struct pair p;

	(void)state;
	open_rails(&p, 3, 1);
	write_all(&p, NULL);
	assert_int_equal(peer_of(&p.a, &p.b)->rails, 1);
	assert_int_equal(peer_of(&p.b, &p.a)->rails, 1);
	assert_true(sent_by(&p.a, &p.b, 1) > 0);
	assert_int_equal(sent_by(&p.a, &p.b, 2), 0);
	pair_close(&p);
	open_rails(&p, 0, 3);
	write_all(&p, NULL);
	assert_int_equal(peer_of(&p.a, &p.b)->rails, 0);
	pair_close(&p);
}

/* A stranger that does not know the lives of both sides does not come in by a
 * rail. */
static void test_stranger(void **state)
{
	struct wf_tcp_hello words = { .magic = WF_TCP_HELLO_MAGIC,
				      .version = WF_TCP_VERSION,
				      .word = WF_TCP_HELLO,
				      .channel = WF_TCP_BULK + 1,
				      .number = 100,
				      .port = 9 };
	struct wf_tcp_dev *dev;
	struct wf_tcp_peer *peer;
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	dev = wf_tcp_dev_of(p.b.nic);
	peer = peer_of(&p.b, &p.a);
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		char byte;

		words.life = i == 0 ? peer->life : peer->life + 1;
		words.known = i == 1 ? peer->our_life : peer->our_life + 1;
		assert_true(fd >= 0);
		assert_int_equal(connect(fd, &dev->rail_addrs[0].sa,
					 sizeof(struct sockaddr_in)),
				 0);
		assert_int_equal(send(fd, &words, sizeof(words), 0),
				 sizeof(words));
		while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
			pair_progress(&p);
		/* It was closed without a word. */
		assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
		close(fd);
	}
	assert_null(peer->chans[WF_TCP_BULK + 1].conn);
	write_all(&p, NULL);
	pair_close(&p);
}

static struct wf_tcp_hello tell_rails(const char *first, const char *second)
{
	struct wf_tcp_hello words = { .channel = WF_TCP_SMALL, .rails = 2 };
	const char *texts[] = { first, second };

	for (int i = 0; i < 2; i++) {
		bool is_6 = strchr(texts[i], ':');

		words.rail[i].family = is_6 ? 6 : 4;
		words.rail[i].port = 7;
		assert_int_equal(inet_pton(is_6 ? AF_INET6 : AF_INET, texts[i],
					   words.rail[i].addr),
				 1);
	}
	return words;
}

/* An address of another family leaves what is known as it is; a link-local one is
 * on the link of ours. */
static void test_learn(void **state)
{
	struct wf_tcp_dev *dev = calloc(1, sizeof(*dev));
	struct wf_tcp_peer *peer = calloc(1, sizeof(*peer));
	struct wf_tcp_hello words = tell_rails("127.0.0.2", "fe80::1");
	struct wf_addr first;

	(void)state;
	assert_non_null(dev);
	assert_non_null(peer);
	dev->rails = 2;
	dev->rail_addrs[0] = rail(0, 0);
	dev->rail_addrs[1].in6.sin6_family = AF_INET6;
	dev->rail_addrs[1].in6.sin6_scope_id = 5;
	wf_tcp_rail_learn(dev, peer, &words);
	assert_int_equal(peer->rails, 2);
	assert_int_equal(peer->rail_addrs[1].in6.sin6_scope_id, 5);
	first = peer->rail_addrs[0];
	words = tell_rails("fe80::2", "fe80::3");
	wf_tcp_rail_learn(dev, peer, &words);
	assert_int_equal(peer->rails, 2);
	assert_memory_equal(&peer->rail_addrs[0], &first, sizeof(first));
	free(peer);
	free(dev);
}

/* A set that could not be watched as a whole is tried again from the first
 * on. */
static void test_watch(void **state)
{
	struct wf_tcp_dev *dev;
	struct pair p;

	(void)state;
	open_rails(&p, RAILS, RAILS);
	dev = wf_tcp_dev_of(p.a.nic);
	assert_int_equal(wf_tcp_sock_unwatch(dev, dev->rail_fds[0]), 0);
	assert_int_equal(wf_tcp_rail_watch(dev), -EEXIST);
	assert_int_equal(wf_tcp_sock_unwatch(dev, dev->rail_fds[1]), 0);
	assert_int_equal(wf_tcp_rail_watch(dev), 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread), cmocka_unit_test(test_reads),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_astray),
		cmocka_unit_test(test_uneven), cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_learn),  cmocka_unit_test(test_watch),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
