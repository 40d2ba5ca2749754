/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of TLS: which key files are taken, who is let in with which key,
 * and a relay between two NICs that looks at all bytes, changes them and cuts
 * connections at any of them. nic-conn runs over TLS as well.
 */
#include "nic/pair_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "nic/tcp/dev.h"
#include "nic/tcp/tls.h"

#define BYTES 64u
#define SECRET "nobody else may see this"

static char folder[] = "/tmp/weft-tls-XXXXXX";
static char ours[64], other[64];

static const char *write_file(char path[64], const char *name, char with,
			      size_t len, mode_t mode)
{
	int fd;

	snprintf(path, 64, "%s/%s", folder, name);
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++) {
		char byte = (char)(with + i % 23);

		assert_int_equal(write(fd, &byte, 1), 1);
	}
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static int make_keys(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	write_file(ours, "ours", 'a', BYTES, 0600);
	write_file(other, "other", 'b', BYTES, 0600);
	return 0;
}

static int remove_keys(void **state)
{
	char line[128];

	(void)state;
	snprintf(line, sizeof(line), "rm -rf %s", folder);
	return system(line);
}

/* -- files ------------------------------------------------------------------- */

static int check_file(const char *path, char why[WF_NIC_WHY])
{
	return wf_nic_device_secure("tcp", path, why);
}

static void test_files(void **state)
{
	char why[WF_NIC_WHY], path[64], name[64];

	(void)state;
	assert_int_equal(check_file(ours, why), 0);
	assert_non_null(strstr(why, "TLS 1.3"));
	assert_int_equal(check_file(write_file(path, "x", 'a', 32, 0400), why),
			 0);
	/* 32 bytes and the end of a line; 31 and that. */
	assert_int_equal(check_file(write_file(path, "x", 'a', 31, 0600), why),
			 -EINVAL);
	assert_non_null(strstr(why, "31 bytes"));
	assert_int_equal(check_file(write_file(path, "x", 'a', 0, 0600), why),
			 -EINVAL);
	assert_int_equal(
		check_file(write_file(path, "x", 'a', 4097, 0600), why),
		-EINVAL);
	assert_int_equal(
		check_file(write_file(path, "x", 'a', 4096, 0600), why), 0);
	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		write_file(path, "x", 'a', BYTES, 0600 | bit);
		assert_int_equal(check_file(path, why), -EACCES);
		assert_non_null(strstr(why, "chmod 600"));
	}
	snprintf(path, sizeof(path), "%s/none", folder);
	assert_int_equal(check_file(path, why), -ENOENT);
	assert_int_equal(check_file(folder, why), -EINVAL);
	assert_int_equal(check_file("", why), -EINVAL);
	assert_non_null(strstr(why, "names no file"));
	assert_int_equal(check_file("/dev/zero", why), -EINVAL);
	/* A link of ours is as good as the file. */
	snprintf(name, sizeof(name), "%s/link", folder);
	assert_int_equal(symlink(ours, name), 0);
	assert_int_equal(check_file(name, why), 0);
	if (geteuid())
		return;
	assert_int_equal(lchown(name, 1234, 1234), 0);
	assert_int_equal(check_file(name, why), -EACCES);
	write_file(path, "x", 'a', BYTES, 0600);
	assert_int_equal(chown(path, 1234, 1234), 0);
	assert_int_equal(check_file(path, why), -EACCES);
	assert_non_null(strstr(why, "1234"));
}

/* The end of the last line makes no difference, everything else does. */
static void test_newline(void **state)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;
	char path[64];
	struct pair p;
	FILE *file;

	(void)state;
	write_file(path, "line", 'a', BYTES, 0600);
	file = fopen(path, "ae");
	assert_non_null(file);
	fputc('\n', file);
	fclose(file);
	a.key_file = ours;
	b.key_file = path;
	pair_open_attr(&p, &a, &b);
	hello(&p);
	pair_close(&p);
}

/* A device that does not encrypt is not opened with a key. */
static void test_clear(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	char why[WF_NIC_WHY], path[64];
	struct wf_nic *nic;

	(void)state;
	attr.key_file = ours;
	assert_int_equal(wf_nic_open("udp", &attr, &nic), -ENOTSUP);
	assert_int_equal(wf_nic_device_secure("udp", ours, why), -ENOTSUP);
	assert_non_null(strstr(why, "FI_WEFT_NIC=tcp"));
	snprintf(path, sizeof(path), "%s/none", folder);
	attr.key_file = path;
	assert_int_equal(wf_nic_open("tcp", &attr, &nic), -ENOENT);
	assert_string_equal(wf_nic_device_encrypting(), "tcp");
}

/* -- who is let in ----------------------------------------------------------- */

static void post(struct side *from, struct side *to, uint64_t id)
{
	struct wf_nic_wr wr = pair_wr(from, to, id);

	assert_int_equal(wf_nic_post_inline(from->qp, &wr, &id, sizeof(id)), 0);
}

/* Neither reaches the other, and both are told within the time-out. */
static void check_apart(const char *key_a, const char *key_b)
{
	struct wf_nic_attr a = pair_attr(AF_INET), b = a;
	struct wf_nic_path path;
	struct wf_nic_wc wc;
	struct pair p;

	a.connect_ns = 300 * WF_NS_PER_MS;
	b.connect_ns = a.connect_ns;
	a.key_file = key_a;
	b.key_file = key_b;
	pair_open_attr(&p, &a, &b);
	pair_recv(&p.a, 7, 0, 64);
	pair_recv(&p.b, 7, 0, 64);
	post(&p.a, &p.b, 1);
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, WF_NIC_UNREACH);
	assert_true(COUNTED(&p.a, tls_refused) > 0);
	assert_true(COUNTED(&p.b, tls_refused) > 0);
	/* Bug: rdm guessed at firewalls after the reason had been reported. */
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_true(path.refused);
	post(&p.b, &p.a, 2);
	wc = pair_wait(&p, &p.b);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, WF_NIC_UNREACH);
	/* Nothing was received, nobody is known. */
	assert_int_equal(COUNTED(&p.a, rx_msgs), 0);
	assert_int_equal(COUNTED(&p.b, rx_msgs), 0);
	assert_int_equal(COUNTED(&p.a, rx_packets), 0);
	assert_int_equal(COUNTED(&p.b, rx_packets), 0);
	assert_int_equal(COUNTED(&p.a, tls_handshakes), 0);
	assert_int_equal(COUNTED(&p.b, tls_handshakes), 0);
	pair_close(&p);
}

static void test_keys(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_path path;
	struct pair p;

	(void)state;
	attr.key_file = ours;
	pair_open_attr(&p, &attr, &attr);
	hello(&p);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_false(path.refused);
	assert_int_equal(COUNTED(&p.a, tls_handshakes), 1);
	assert_int_equal(COUNTED(&p.b, tls_handshakes), 1);
	assert_int_equal(COUNTED(&p.b, tls_refused), 0);
	pair_close(&p);
	attr = pair_attr(AF_INET6);
	attr.key_file = ours;
	pair_open_attr(&p, &attr, &attr);
	hello(&p);
	pair_close(&p);
	check_apart(ours, other);
	check_apart(ours, NULL);
	check_apart(NULL, ours);
}

static int knock(struct side *s, const void *bytes, size_t len)
{
	const struct wf_addr *to = wf_nic_socket(s->nic);
	int fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &to->sa, wf_base_addr_len(to)), 0);
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	return fd;
}

static void age_guests(struct side *s)
{
	struct wf_list *head = &wf_tcp_dev_of(s->nic)->guests, *pos, *tmp;

	wf_list_for_each (pos, tmp, head)
		wf_container_of(pos, struct wf_tcp_conn, link)->came_at -=
			10 * WF_NS_PER_S;
}

#define KNOCKS 400

/* Handshakes that are not finished take up no more than a bounded number of
 * places, for a bounded time, also if a byte comes now and then. */
static void test_flood(void **state)
{
	static const uint8_t begin[] = { 0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3 };
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_tcp_dev *dev;
	int fds[KNOCKS];
	struct pair p;

	(void)state;
	attr.key_file = ours;
	pair_open_attr(&p, &attr, &attr);
	dev = wf_tcp_dev_of(p.b.nic);
	for (int i = 0; i < KNOCKS; i++) {
		fds[i] = knock(&p.b, begin, 1 + (size_t)i % sizeof(begin));
		wf_nic_progress(p.b.nic);
		assert_true(dev->guest_count <= 257);
	}
	hello(&p);
	for (int i = 0; i < KNOCKS; i++)
		(void)!send(fds[i], "", 1, MSG_NOSIGNAL);
	for (int i = 0; i < 100; i++)
		wf_nic_progress(p.b.nic);
	age_guests(&p.b);
	while (dev->guest_count)
		wf_nic_progress(p.b.nic);
	for (int i = 0; i < KNOCKS; i++)
		close(fds[i]);
	hello(&p);
	pair_close(&p);
}

/* -- a relay ----------------------------------------------------------------- */

enum fault { NONE, FLIP, CUT };

struct link {
	int fds[2]; /* of who connected, and to the NIC */
	enum fault fault;
	int way; /* 0: of the bytes of who connected */
	size_t at;
	size_t passed[2];
};

#define LINKS 8

/* To each of two NICs it is where the other one is: 127.0.0.8 and 127.0.0.9 in
 * place of 127.0.0.1. */
#define AT_B 0x7f000008u
#define AT_A 0x7f000009u

/* A relay in the middle of a cable cannot be seen. Ours can, unless the sockets of
 * A and of B show as their own address the one that the other side has for them. */
enum { SEEN = 0, HIDES_A = 1, HIDES_B = 2 };
static unsigned int hides = HIDES_A | HIDES_B;

int getsockname(int fd, __SOCKADDR_ARG name, socklen_t *restrict len)
{
	int ret = (int)syscall(SYS_getsockname, fd, name.__sockaddr__, len);
	struct sockaddr_in *local = (void *)name.__sockaddr__, peer;
	socklen_t peer_len = sizeof(peer);
	uint32_t from;

	if (ret || local->sin_family != AF_INET ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len))
		return ret;
	from = ntohl(peer.sin_addr.s_addr);
	if (from == AT_B && hides & HIDES_A)
		local->sin_addr.s_addr = htonl(AT_A);
	else if (from == AT_A && hides & HIDES_B)
		local->sin_addr.s_addr = htonl(AT_B);
	return 0;
}

struct relay {
	int fds[2];
	struct wf_addr addrs[2]; /* where it listens for each ... */
	struct wf_addr to[2];	 /* ... whom it connects to */
	struct link links[LINKS];
	struct link next; /* what happens to the next connection */
	struct link *last;
	uint8_t *seen; /* all bytes */
	size_t seen_len;
	size_t seen_room;
};

/* The port of a connection that has ended may be the one of a later relay. */
static void share_port(int fd)
{
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 },
				    sizeof(int)),
			 0);
}

static void relay_open(struct relay *r, struct wf_nic *a, struct wf_nic *b)
{
	memset(r, 0, sizeof(*r));
	r->to[0] = *wf_nic_socket(b);
	r->to[1] = *wf_nic_socket(a);
	for (uint32_t i = 0; i < 2; i++) {
		r->addrs[i] = r->to[i];
		r->addrs[i].in.sin_addr.s_addr = htonl(i ? AT_A : AT_B);
		r->fds[i] = socket(
			AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(r->fds[i] >= 0);
		share_port(r->fds[i]);
		assert_int_equal(bind(r->fds[i], &r->addrs[i].sa,
				      sizeof(r->addrs[i].in)),
				 0);
		assert_int_equal(listen(r->fds[i], 64), 0);
	}
	r->seen_room = 1u << 20;
	r->seen = malloc(r->seen_room);
	assert_non_null(r->seen);
}

static void link_close(struct link *l)
{
	if (l->fds[0]) {
		close(l->fds[0]);
		close(l->fds[1]);
	}
	memset(l, 0, sizeof(*l));
}

static void relay_close(struct relay *r)
{
	for (int i = 0; i < LINKS; i++)
		link_close(&r->links[i]);
	close(r->fds[0]);
	close(r->fds[1]);
	free(r->seen);
}

static void relay_accept(struct relay *r, int i)
{
	int fd = accept4(r->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct wf_addr from = r->addrs[!i];
	struct link *l = r->links;

	if (fd < 0)
		return;
	while (l < r->links + LINKS && l->fds[0])
		l++;
	assert_true(l < r->links + LINKS);
	*l = r->next;
	memset(&r->next, 0, sizeof(r->next));
	l->fds[0] = fd;
	l->fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(l->fds[1] >= 0);
	share_port(l->fds[1]);
	wf_base_addr_set_port(&from, 0);
	assert_int_equal(bind(l->fds[1], &from.sa, sizeof(from.in)), 0);
	assert_int_equal(connect(l->fds[1], &r->to[i].sa, sizeof(r->to[i].in)),
			 0);
	r->last = l;
}

/* False: the connection is over. */
static bool link_pass(struct relay *r, struct link *l, int way)
{
	uint8_t bytes[4096];
	ssize_t n = recv(l->fds[way], bytes, sizeof(bytes), MSG_DONTWAIT);
	size_t at = l->at - l->passed[way];

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n <= 0)
		return false;
	if (l->fault && l->way == way && at < (size_t)n) {
		if (l->fault == CUT)
			n = (ssize_t)at;
		else
			bytes[at] ^= 0x10;
	}
	if (r->seen_len + (size_t)n <= r->seen_room) {
		memcpy(r->seen + r->seen_len, bytes, (size_t)n);
		r->seen_len += (size_t)n;
	}
	l->passed[way] += (size_t)n;
	(void)!send(l->fds[!way], bytes, (size_t)n, MSG_NOSIGNAL);
	return !(l->fault == CUT && l->way == way && l->passed[way] == l->at);
}

static void relay_pass(struct relay *r)
{
	relay_accept(r, 0);
	relay_accept(r, 1);
	for (int i = 0; i < LINKS; i++) {
		struct link *l = &r->links[i];

		if (l->fds[0] && (!link_pass(r, l, 0) || !link_pass(r, l, 1)))
			link_close(l);
	}
}

/* A message by way of the relay, which arrives whole and once. */
static void send_by(struct pair *p, struct relay *r, uint16_t ah, uint64_t id)
{
	uint64_t begin = wf_base_clock_ns(), aged = begin;
	uint64_t patience = 10 * WF_NS_PER_MS;
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, id);
	struct wf_nic_wc wc;
	int left = 2;
	char text[64];

	wr.ah = ah;
	snprintf(text, sizeof(text), SECRET " %d", (int)id);
	memset(p->b.memory, 0, sizeof(text));
	pair_recv(&p->b, id, 0, 64);
	assert_int_equal(wf_nic_post_inline(p->a.qp, &wr, text, strlen(text)),
			 0);
	while (left) {
		uint64_t now = wf_base_clock_ns();

		pair_progress(p);
		relay_pass(r);
		while (wf_nic_cq_poll(p->a.cq, &wc, 1) ||
		       wf_nic_cq_poll(p->b.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			assert_int_equal(wc.wr_id, id);
			left--;
		}
		assert_true(now - begin < PAIR_LOST * WF_NS_PER_S);
		/* A length that was changed makes the other side wait. Each
		 * time for longer: a handshake may be slow here. */
		if (now - aged > patience) {
			patience *= 2;
			age_guests(&p->a);
			age_guests(&p->b);
			aged = now;
		}
	}
	assert_memory_equal(p->b.memory, text, strlen(text));
}

static void cut_all(struct side *s)
{
	struct wf_list *head = &wf_tcp_dev_of(s->nic)->conns, *pos, *tmp;

	wf_list_for_each (pos, tmp, head)
		shutdown(wf_container_of(pos, struct wf_tcp_conn, link)->fd,
			 SHUT_RDWR);
}

static bool was_seen(const struct relay *r)
{
	return memmem(r->seen, r->seen_len, SECRET, strlen(SECRET));
}

static void open_relayed(struct pair *p, struct relay *r, const char *key,
			 uint16_t *ah)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	attr.key_file = key;
	pair_open_attr(p, &attr, &attr);
	relay_open(r, p->a.nic, p->b.nic);
	assert_int_equal(wf_nic_ah_create_socket(p->a.nic, &r->addrs[0], ah),
			 0);
}

/* Traffic can be read without a key, and not with one. */
static void test_secret(void **state)
{
	struct relay r;
	struct pair p;
	uint16_t ah;

	(void)state;
	open_relayed(&p, &r, NULL, &ah);
	send_by(&p, &r, ah, 1);
	assert_true(was_seen(&r));
	relay_close(&r);
	pair_close(&p);
	open_relayed(&p, &r, ours, &ah);
	send_by(&p, &r, ah, 1);
	assert_true(r.seen_len > 100);
	assert_false(was_seen(&r));
	relay_close(&r);
	pair_close(&p);
}

/* Each byte of the handshake and of what follows is changed, or is the last
 * one: the connection is given up, another takes its place, and nothing that was
 * changed is ever received. */
static void test_tampered(void **state)
{
	uint64_t id = 1, shakes;
	size_t most[2];
	struct relay r;
	struct pair p;
	uint16_t ah;

	(void)state;
	open_relayed(&p, &r, ours, &ah);
	send_by(&p, &r, ah, id++);
	most[0] = r.last->passed[0];
	most[1] = r.last->passed[1];
	for (int way = 0; way < 2; way++) {
		for (size_t at = 0; at < most[way]; at += 41) {
			for (enum fault f = FLIP; f <= CUT; f++) {
				/* Of a connection that is up, a changed length
				 * stops whoever waits for the rest. */
				if (f == FLIP && at + 150 > most[way])
					continue;
				shakes = COUNTED(&p.b, tls_handshakes);
				r.next = (struct link){ .fault = f,
							.way = way,
							.at = at };
				r.seen_len = 0;
				cut_all(&p.a);
				send_by(&p, &r, ah, id++);
				assert_true(COUNTED(&p.b, tls_handshakes) >
					    shakes);
			}
		}
	}
	assert_false(was_seen(&r));
	relay_close(&r);
	pair_close(&p);
}

/* An attacker who redirects a connection to another process of the job, or
 * makes it seem to come from another, sees it refused, although both sides have
 * the key. */
static void test_astray(void **state)
{
	for (hides = SEEN; hides < (HIDES_A | HIDES_B); hides++) {
		struct wf_nic_attr attr = pair_attr(AF_INET);
		uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
		struct wf_nic_wc wc;
		struct wf_nic_wr wr;
		struct relay r;
		struct pair p;

		(void)state;
		attr.key_file = ours;
		attr.connect_ns = 300 * WF_NS_PER_MS;
		pair_open_attr(&p, &attr, &attr);
		relay_open(&r, p.a.nic, p.b.nic);
		wr = pair_wr(&p.a, &p.b, 1);
		assert_int_equal(
			wf_nic_ah_create_socket(p.a.nic, &r.addrs[0], &wr.ah),
			0);
		pair_recv(&p.b, 1, 0, 64);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		while (!wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			pair_progress(&p);
			relay_pass(&r);
			assert_true(wf_base_clock_ns() < end);
		}
		assert_int_equal(wc.status, WF_NIC_UNREACH);
		assert_true(COUNTED(&p.b, tls_handshakes) > 0);
		assert_true(COUNTED(&p.b, tls_refused) > 0);
		assert_true(COUNTED(&p.a, tls_refused) > 0);
		assert_int_equal(COUNTED(&p.b, rx_msgs), 0);
		assert_int_equal(COUNTED(&p.b, accepts), 0);
		relay_close(&r);
		/* By the right way they find each other. */
		hello(&p);
		pair_close(&p);
	}
}

/* Of a stranger the user is not told aloud, so that he is told of a peer. */
static void test_strangers(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_tcp_dev *dev;
	struct pair p;
	int fd;

	(void)state;
	attr.key_file = ours;
	pair_open_attr(&p, &attr, &attr);
	dev = wf_tcp_dev_of(p.b.nic);
	fd = knock(&p.b, "GET / HTTP/1.1", 14);
	while (!COUNTED(&p.b, tls_refused))
		wf_nic_progress(p.b.nic);
	assert_int_equal(dev->warned_key, 0);
	close(fd);
	fd = knock(&p.b, "wt", 2);
	while (COUNTED(&p.b, tls_refused) < 2)
		wf_nic_progress(p.b.nic);
	assert_int_not_equal(dev->warned_key, 0);
	close(fd);
	pair_close(&p);
}

/* -- data -------------------------------------------------------------------- */

static void move(struct pair *p, bool reads, uint32_t len, uint32_t seed)
{
	struct wf_nic_remote there = { .addr = (uintptr_t)p->b.memory,
				       .rkey = p->b.mr.rkey };
	struct wf_nic_sge sge = pair_sge(&p->a, 0, len);
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, seed);

	fill(reads ? p->b.memory : p->a.memory, len, seed);
	assert_int_equal((reads ? wf_nic_post_read : wf_nic_post_write)(
				 p->a.qp, &wr, &there, &sge),
			 0);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	assert_true(filled(reads ? p->a.memory : p->b.memory, len, seed));
}

/* All lengths around records and chunks; keys are changed on the way. */
static void test_sizes(void **state)
{
	static const uint32_t sizes[] = { 1,	 1023,	 1025,	  16336,
					  16384, 16385,	 32768,	  49152,
					  65535, 114688, 1000003, PAIR_MEMORY };
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;

	(void)state;
	attr.key_file = ours;
	attr.no_ktls = true; /* it does not change keys: nic-ktls */
	pair_open_attr(&p, &attr, &attr);
	wf_tcp_tls_rekey_after(wf_tcp_dev_of(p.a.nic)->tls, 200000);
	wf_tcp_tls_rekey_after(wf_tcp_dev_of(p.b.nic)->tls, 70000);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		move(&p, false, sizes[i], i);
		move(&p, true, sizes[i], i + 100);
	}
	/* Over the connections that they had at first. */
	assert_int_equal(COUNTED(&p.a, connects), 2);
	pair_close(&p);
}

/* A child that closes its copy neither mixes up the rest in the socket nor
 * sends a word. */
static void test_close(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;

	(void)state;
	attr.key_file = ours;
	for (int i = 0; i < 5; i++) {
		pair_open_attr(&p, &attr, &attr);
		hello(&p);
		/* Goodbye is understood: nothing waits for a time-out. */
		side_close(&p.b);
		memset(&p.b, 0, sizeof(p.b));
		while (!COUNTED(&p.a, peer_deaths))
			wf_nic_progress(p.a.nic);
		side_close(&p.a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_newline),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_tampered),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_astray),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
