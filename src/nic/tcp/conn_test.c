/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of connections: both sides connect at once, connections break in
 * the middle of anything, peers leave and come again, nobody is there.
 */
#include "nic/pair_test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nic/tcp/dev.h"

static struct wf_tcp_peer *peer_of(struct side *s, struct side *other)
{
	return wf_tcp_peer_find(wf_tcp_dev_of(s->nic),
				wf_nic_socket(other->nic));
}

static unsigned count_conns(struct side *s)
{
	struct wf_list *head = &wf_tcp_dev_of(s->nic)->conns, *pos, *tmp;
	unsigned count = 0;

	wf_list_for_each (pos, tmp, head)
		count++;
	return count;
}

static void post(struct side *from, struct side *to, uint64_t id)
{
	struct wf_nic_wr wr = pair_wr(from, to, id);

	assert_int_equal(wf_nic_post_inline(from->qp, &wr, &id, sizeof(id)), 0);
}

/* Both sides have something to say before they know each other. */
static void test_both_connect(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		struct wf_nic_wc wc;
		struct pair p;

		pair_open(&p);
		pair_recv(&p.a, 1, 0, 64);
		pair_recv(&p.b, 1, 0, 64);
		/* Neither side reads before both have connected. */
		post(&p.a, &p.b, 2);
		post(&p.b, &p.a, 2);
		for (int i = 0; i < 4; i++) {
			wc = pair_wait(&p, i % 2 ? &p.a : &p.b);
			assert_int_equal(wc.status, WF_NIC_OK);
		}
		assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 0);
		assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
		/* One of the two is left. */
		for (int i = 0; i < 2000 && (count_conns(&p.a) > 1 ||
					     count_conns(&p.b) > 1);
		     i++)
			pair_progress(&p);
		assert_int_equal(count_conns(&p.a), 1);
		assert_int_equal(count_conns(&p.b), 1);
		assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
		assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
		pair_close(&p);
	}
}

/* Bug: a process that began again at its old port found it in use (EADDRINUSE)
 * if the kernel had given that port to a connection meanwhile. */
static void test_port_of_connection(void **state)
{
	struct wf_addr from, to;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p);
	pair_recv(&p.b, 1, 0, 64);
	post(&p.a, &p.b, 2);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	fd = peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL].conn->fd;
	assert_int_equal(wf_tcp_sock_names(fd, &to, &from), 0);
	fd = wf_tcp_sock_listen(&from);
	assert_true(fd >= 0);
	close(fd);
	pair_close(&p);
}

/* Tests which congestion control connections of a user without privileges begin
 * with. */
static int control_is_near(void)
{
	struct wf_addr addr = { .in = { .sin_family = AF_INET } };
	static struct wf_tcp_dev dev;
	char name[16] = "";
	socklen_t len = sizeof(name) - 1;
	int fd;

	if (!geteuid() && setresuid(65534, 65534, 65534))
		return 77;
	fd = wf_tcp_sock_listen(&addr);
	wf_tcp_sock_begin(&dev, fd);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		return 77;
	return strcmp(name, "cubic") && strcmp(name, "reno");
}

/* Bug: where the system's congestion control is bbr, and cubic is the
 * administrator's only, connections of other users paced within a host. */
static void test_control_of_user(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(control_is_near());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Tests the decision about each pair of hellos, whichever comes first. */
static void test_verdicts(void **state)
{
	struct wf_tcp_peer peer = { .life = 7, .our_life = 8 };
	struct wf_tcp_conn conn = { .mine = true, .number = 5 };
	struct wf_tcp_chan chan = { .peer = &peer, .conn = &conn };
	struct wf_tcp_hello hello = { .word = WF_TCP_HELLO,
				      .life = 7,
				      .number = 3 };

	(void)state;
	/* Ours waits for its answer: one side yields, the other does not. */
	chan.state = WF_TCP_GREET;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_LEAVE);
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, false),
			 WF_TCP_TAKE);
	/* Nobody has seen ours yet. */
	chan.state = WF_TCP_CONNECT;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	chan.state = WF_TCP_GREET;
	/* Who insists is not left, and does not leave for what was said before
	 * that. Bug: both sides gave up their connection for the other's, again
	 * and again, when the processor was shared by so many that hellos were
	 * read a second late. */
	hello.insists = 1;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	chan.insists = true;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_LEAVE);
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, false),
			 WF_TCP_TAKE);
	hello.insists = 0;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, false),
			 WF_TCP_LEAVE);
	chan.insists = false;
	/* Ours was welcomed: the hello was sent before that, unless it names
	 * it as over. */
	chan.state = WF_TCP_UP;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, false),
			 WF_TCP_LEAVE);
	hello.insists = 1;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, false),
			 WF_TCP_LEAVE);
	hello.insists = 0;
	hello.replaces = 5;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	/* Theirs was welcomed: a later one replaces it, an earlier one does
	 * not. */
	conn.mine = false;
	chan.welcome = 3;
	hello.replaces = 0;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_REFUSE);
	hello.number = 4;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	/* Said before the other side welcomed ours, which has ended since: its
	 * numbers of frames are out of date. */
	chan.welcomed = 6;
	hello.number = 5;
	hello.known = 8;
	chan.conn = NULL;
	hello.replaces = 5;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_REFUSE);
	hello.replaces = 6;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	hello.known = 0;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_REFUSE);
	chan.conn = &conn;
	/* Another process. */
	hello.life = 9;
	hello.number = 1;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true), WF_TCP_TAKE);
	hello.word = WF_TCP_WELCOME;
	assert_int_equal(wf_tcp_hello_decide(&chan, &hello, true),
			 WF_TCP_REFUSE);
}

static void cut_all(struct side *s)
{
	struct wf_list *head = &wf_tcp_dev_of(s->nic)->conns, *pos, *tmp;

	wf_list_for_each (pos, tmp, head)
		shutdown(wf_container_of(pos, struct wf_tcp_conn, link)->fd,
			 SHUT_RDWR);
}

#define MESSAGES 400u
#define AT_ONCE 64u

/* Connections are cut at any moment, from either side, in both directions:
 * every message comes once, every request ends well. */
static void test_cuts(void **state)
{
	struct side *sides[2];
	uint32_t sent[2] = { 0 }, done[2] = { 0 }, got[2] = { 0 };
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	static bool seen[2][MESSAGES];
	uint32_t seed = 1, most;
	struct pair p;

	(void)state;
	memset(seen, 0, sizeof(seen));
	pair_open(&p);
	sides[0] = &p.a;
	sides[1] = &p.b;
	most = wf_nic_caps(p.a.nic)->max_msg;
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < AT_ONCE; i++)
			pair_recv(sides[s], 1000 + i,
				  (2u << 20) + (size_t)i * most, most);
	}
	while (done[0] < MESSAGES || done[1] < MESSAGES || got[0] < MESSAGES ||
	       got[1] < MESSAGES) {
		assert_true(wf_base_clock_ns() < end);
		for (int s = 0; s < 2; s++) {
			struct side *from = sides[s];
			struct wf_nic_wc wc;

			if (sent[s] < MESSAGES && sent[s] - done[s] < AT_ONCE) {
				struct wf_nic_wr wr =
					pair_wr(from, sides[!s], sent[s]);
				struct wf_nic_sge sge = pair_sge(
					from,
					(sent[s] % AT_ONCE) * (size_t)most,
					sent[s] % 3 ? 100 : most);

				memcpy(sge.addr, &sent[s], sizeof(sent[s]));
				assert_int_equal(wf_nic_post_send(from->qp, &wr,
								  &sge, 1),
						 0);
				sent[s]++;
			}
			wf_nic_progress(from->nic);
			while (wf_nic_cq_poll(from->cq, &wc, 1)) {
				size_t at = wc.wr_id - 1000;
				uint32_t id;

				assert_int_equal(wc.status, WF_NIC_OK);
				if (!(wc.flags & WF_NIC_WC_RECV)) {
					done[s]++;
					continue;
				}
				at = (2u << 20) + at * most;
				memcpy(&id, from->memory + at, sizeof(id));
				assert_true(id < MESSAGES);
				assert_false(seen[s][id]);
				seen[s][id] = true;
				got[s]++;
				pair_recv(from, wc.wr_id, at, most);
			}
		}
		seed = seed * 1664525u + 1013904223u;
		if (seed >> 24 == 0)
			cut_all(sides[seed >> 23 & 1]);
	}
	assert_true(COUNTED(&p.a, connects) + COUNTED(&p.a, accepts) > 2);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
	pair_close(&p);
}

/* The same for reads and writes of a megabyte. */
static void test_cut_rdma(void **state)
{
	const uint32_t len = 1u << 20;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	for (uint32_t i = 0; i < 40; i++) {
		struct wf_nic_remote there = { .addr = (uintptr_t)p.b.memory,
					       .rkey = p.b.mr.rkey };
		struct wf_nic_sge sge = pair_sge(&p.a, 0, len);
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);
		bool reads = i % 2;

		fill(reads ? p.b.memory : p.a.memory, len, i);
		if (reads)
			assert_int_equal(
				wf_nic_post_read(p.a.qp, &wr, &there, &sge), 0);
		else
			assert_int_equal(
				wf_nic_post_write(p.a.qp, &wr, &there, &sge),
				0);
		for (uint32_t j = 0; j < i; j++)
			pair_progress(&p);
		cut_all(i % 4 < 2 ? &p.a : &p.b);
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
		assert_true(filled(reads ? p.a.memory : p.b.memory, len, i));
	}
	pair_close(&p);
}

/* A process takes the place of another: a request for the old one ends with an
 * error, and the new one is reached. */
static void test_restart(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_path path;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	attr.addr = *wf_nic_socket(p.b.nic);
	side_close(&p.b);
	memset(&p.b, 0, sizeof(p.b));
	side_open(&p.b, &attr);
	assert_int_equal(wf_nic_ah_create_socket(
				 p.b.nic, wf_nic_socket(p.a.nic), &p.b.ah),
			 0);
	/* It said goodbye. */
	while (!COUNTED(&p.a, peer_deaths))
		pair_progress(&p);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_int_equal(path.resets, 1);
	assert_false(path.up);
	/* Until its user has taken note, nothing reaches the new one. */
	assert_true(path.lost);
	assert_false(path.replaced);
	post(&p.a, &p.b, 9);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_ABORT);
	pair_recv(&p.a, 1, 0, 64);
	post(&p.b, &p.a, 3);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_true(path.replaced);
	assert_int_equal(wf_nic_ah_renew(p.a.nic, p.a.ah), 0);
	hello(&p);
	pair_close(&p);
}

/* Bug: the hello of a process that had died was read after its place had been
 * taken by one that was known already, whose life then ended. */
static void test_late_hello(void **state)
{
	struct wf_tcp_hello last = { .magic = WF_TCP_HELLO_MAGIC,
				     .version = WF_TCP_VERSION,
				     .word = WF_TCP_HELLO,
				     .life = 1,
				     .number = 1 };
	const struct wf_addr *to;
	struct pair p;
	int fd;

	(void)state;
	pair_open(&p);
	hello(&p);
	to = wf_nic_socket(p.a.nic);
	last.port = wf_base_addr_port(wf_nic_socket(p.b.nic));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &to->sa, wf_base_addr_len(to)), 0);
	assert_int_equal(send(fd, &last, sizeof(last), 0), sizeof(last));
	close(fd);
	for (int i = 0; i < 1000; i++)
		pair_progress(&p);
	hello(&p);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
	pair_close(&p);
}

/* Bug: one side had begun to count anew, and the other took it for the same
 * life. Each refused what the other said it had received, for ever. */
static void test_counts_anew(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	wf_tcp_peer_end_life(wf_tcp_dev_of(p.a.nic), peer_of(&p.a, &p.b),
			     WF_NIC_ABORT, false);
	post(&p.b, &p.a, 3);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_ABORT);
	assert_int_equal(wf_nic_ah_renew(p.a.nic, p.a.ah), 0);
	assert_int_equal(wf_nic_ah_renew(p.b.nic, p.b.ah), 0);
	hello(&p);
	pair_close(&p);
}

/* One that dies says nothing: its port is closed. Requests that wait for it
 * end. */
static void test_death(void **state)
{
	struct wf_tcp_dev *dev;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_tcp_dev_of(p.b.nic);
	/* Nobody posts a receive: it waits over there. */
	post(&p.a, &p.b, 5);
	for (int i = 0; i < 100; i++)
		pair_progress(&p);
	close(dev->listen_fd);
	dev->listen_fd = -1;
	cut_all(&p.b);
	while (!COUNTED(&p.a, peer_deaths))
		wf_nic_progress(p.a.nic);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_UNREACH);
	pair_close(&p);
}

/* Nobody listens: tried until the time is over. Somebody might yet come. */
static void test_nobody(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	uint64_t begin = wf_base_clock_ns();
	struct wf_addr nowhere;
	struct wf_nic_path path;
	struct pair p;

	(void)state;
	attr.connect_ns = 300 * WF_NS_PER_MS;
	pair_open_attr(&p, &attr, &attr);
	nowhere = *wf_nic_socket(p.b.nic);
	side_close(&p.b);
	memset(&p.b, 0, sizeof(p.b));
	assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &nowhere, &p.a.ah),
			 0);
	p.b.qp = p.a.qp;
	post(&p.a, &p.b, 5);
	for (int i = 0; i < 1000; i++)
		wf_nic_progress(p.a.nic);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_true(path.asking_ns > 0);
	p.b.nic = p.a.nic;
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_UNREACH);
	assert_true(wf_base_clock_ns() - begin >= attr.connect_ns);
	p.b.nic = NULL;
	side_close(&p.a);
}

/* A process is stopped (SIGSTOP) while it connects, for longer than it has time
 * for that: the time-out is not over when it goes on. */
static void test_stopped(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;

	(void)state;
	attr.connect_ns = 300 * WF_NS_PER_MS;
	attr.dead_ns = attr.connect_ns;
	pair_open_attr(&p, &attr, &attr);
	pair_recv(&p.b, 1, 0, 64);
	post(&p.a, &p.b, 2);
	for (int i = 0; i < 100; i++)
		wf_nic_progress(p.a.nic);
	/* With a key, it has said something, but no hello. */
	assert_int_equal(peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL].state,
			 pair_key ? WF_TCP_CONNECT : WF_TCP_GREET);
	usleep(600000);
	for (int i = 0; i < 100; i++)
		wf_nic_progress(p.a.nic);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	pair_close(&p);
}

/* Many messages for a side that posts no receives: they wait, in memory that
 * has a limit, and what the other side sends is acknowledged all the same. */
static void test_slow_reader(void **state)
{
	struct wf_tcp_dev *dev;
	struct wf_nic_wc wc;
	unsigned sent = 0, got = 0;
	struct pair p;
	uint32_t most;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_tcp_dev_of(p.b.nic);
	most = wf_nic_caps(p.a.nic)->max_msg;
	for (; sent < 200; sent++) {
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, sent);
		struct wf_nic_sge sge = pair_sge(&p.a, 0, most);

		assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	}
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 100; j++)
			pair_progress(&p);
		usleep(1000);
	}
	assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 0);
	assert_true(dev->held_bytes > 0);
	assert_true(dev->held_bytes < 3u << 20);
	/* B's own message and its acknowledgement come past all that. */
	pair_recv(&p.a, 1, 1u << 20, 64);
	post(&p.b, &p.a, 7);
	assert_int_equal(pair_wait(&p, &p.a).len, 8);
	assert_int_equal(pair_wait(&p, &p.b).wr_id, 7);
	while (got < sent) {
		pair_recv(&p.b, 1, 0, most);
		assert_int_equal(pair_wait(&p, &p.b).len, most);
		got++;
		while (wf_nic_cq_poll(p.a.cq, &wc, 1))
			assert_int_equal(wc.status, WF_NIC_OK);
	}
	assert_int_equal(dev->held_bytes, 0);
	pair_close(&p);
}

/* Connections that are not used are closed, and opened again when they are. */
static void test_idle(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	wf_tcp_dev_of(p.a.nic)->idle_ns = 50 * WF_NS_PER_MS;
	hello(&p);
	while (count_conns(&p.a) || count_conns(&p.b))
		pair_progress(&p);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
	hello(&p);
	assert_int_equal(COUNTED(&p.b, accepts), 2);
	assert_non_null(peer_of(&p.b, &p.a));
	pair_close(&p);
}

/* One side has no handle for the other and no connection to it, for long: it is
 * still the same process when the other comes again. */
static void test_no_handle(void **state)
{
	uint64_t end;
	struct pair p;

	(void)state;
	pair_open(&p);
	wf_tcp_dev_of(p.a.nic)->idle_ns = 50 * WF_NS_PER_MS;
	hello(&p);
	wf_nic_ah_destroy(p.b.nic, p.b.ah);
	while (count_conns(&p.a) || count_conns(&p.b))
		pair_progress(&p);
	/* It is looked at every second. */
	end = wf_base_clock_ns() + 1200 * WF_NS_PER_MS;
	while (wf_base_clock_ns() < end)
		pair_progress(&p);
	hello(&p);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	assert_int_equal(COUNTED(&p.b, peer_deaths), 0);
	pair_close(&p);
}

#define PLACES 4u

/* Those who come by themselves push out the oldest of those who have left. */
static void test_places(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET), few = attr;
	struct side guests[3 * PLACES];
	struct pair p;

	(void)state;
	few.max_peers = PLACES;
	pair_open_attr(&p, &few, &attr);
	for (unsigned int i = 0; i < 3 * PLACES; i++) {
		struct pair q = { .a = p.a };

		memset(&guests[i], 0, sizeof(guests[i]));
		side_open(&guests[i], &attr);
		wf_tcp_dev_of(guests[i].nic)->idle_ns = 1 * WF_NS_PER_MS;
		assert_int_equal(wf_nic_ah_create_socket(guests[i].nic,
							 wf_nic_socket(p.a.nic),
							 &guests[i].ah),
				 0);
		q.b = guests[i];
		pair_recv(&p.a, 1, 0, 64);
		post(&guests[i], &p.a, 2);
		assert_int_equal(pair_wait(&q, &q.b).status, WF_NIC_OK);
		assert_int_equal(pair_wait(&q, &q.a).status, WF_NIC_OK);
		while (count_conns(&q.a))
			pair_progress(&q);
		assert_true(wf_tcp_dev_of(p.a.nic)->strangers <= PLACES);
	}
	assert_null(peer_of(&p.a, &guests[0]));
	assert_non_null(peer_of(&p.a, &guests[3 * PLACES - 1]));
	for (unsigned int i = 0; i < 3 * PLACES; i++)
		side_close(&guests[i]);
	pair_close(&p);
}

static int knock(struct side *s, const void *bytes, size_t len)
{
	const struct wf_addr *to = wf_nic_socket(s->nic);
	int fd = socket(to->sa.sa_family, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &to->sa, wf_base_addr_len(to)), 0);
	if (len)
		assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	return fd;
}

/* One side counts otherwise than the other. Bug: they connected again and again,
 * and nothing ended. */
static void test_counts_more(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	peer_of(&p.a, &p.b)->chans[WF_TCP_SMALL].taken += 5;
	cut_all(&p.a);
	post(&p.b, &p.a, 7);
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_ABORT);
	pair_close(&p);
}

#define KNOCKS 400

/* Connections that say nothing, half of a hello, or something else: their number
 * is limited, and peers are served all the same. */
static void test_strangers(void **state)
{
	static const char noise[sizeof(struct wf_tcp_hello)] =
		"GET / HTTP/1.0\r\n\r\n and zeros";
	int fds[KNOCKS];
	struct wf_tcp_dev *dev;
	uint64_t refused;
	struct pair p;
	char byte;

	(void)state;
	if (pair_key) /* then they are refused sooner: nic-tls */
		skip();
	pair_open(&p);
	dev = wf_tcp_dev_of(p.b.nic);
	for (int i = 0; i < KNOCKS; i++) {
		fds[i] = knock(&p.b, noise, (size_t)(i % 3));
		for (int j = 0; j < 3; j++)
			wf_nic_progress(p.b.nic);
		assert_true(dev->guest_count <= 257);
	}
	hello(&p);
	refused = COUNTED(&p.b, bad_magic);
	for (int i = 0; i < KNOCKS; i++)
		close(fds[i]);
	/* Something else is noticed as soon as a hello would be whole. */
	fds[0] = knock(&p.b, noise, sizeof(struct wf_tcp_hello));
	while (COUNTED(&p.b, bad_magic) == refused)
		wf_nic_progress(p.b.nic);
	assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
	close(fds[0]);
	while (dev->guest_count)
		wf_nic_progress(p.b.nic);
	hello(&p);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	pair_close(&p);
}

/* Each state of the handshake has a deadline, also that of somebody who connects and
 * says nothing, or half a hello. */
static void test_silent_guest(void **state)
{
	static const struct wf_tcp_hello half;
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_tcp_conn *guest;
	struct wf_tcp_dev *dev;
	struct pair p;
	char byte;
	int fd;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_tcp_dev_of(p.b.nic);
	/* With a key, a wrong word ends the connection. */
	for (int said = 0; said < (pair_key ? 1 : 2); said++) {
		fd = knock(&p.b, &half, said ? 4 : 0);
		while (wf_base_list_empty(&dev->guests)) {
			wf_nic_progress(p.b.nic);
			assert_true(wf_base_clock_ns() < end);
		}
		guest = wf_container_of(dev->guests.next, struct wf_tcp_conn,
					link);
		assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
		/* As if it had been there for a minute. */
		guest->came_at -= 60 * WF_NS_PER_S;
		while (dev->guest_count) {
			wf_nic_progress(p.b.nic);
			assert_true(wf_base_clock_ns() < end);
		}
		assert_true(recv(fd, &byte, 1, 0) <= 0);
		close(fd);
	}
	hello(&p);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_connect),
		cmocka_unit_test(test_port_of_connection),
		cmocka_unit_test(test_control_of_user),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_cut_rdma),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_late_hello),
		cmocka_unit_test(test_counts_anew),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_no_handle),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_silent_guest),
		cmocka_unit_test(test_counts_more),
	};

	pair_device = "tcp";
	pair_key = getenv("WEFT_TEST_KEY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
