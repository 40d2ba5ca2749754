/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain TCP sockets, without anything above: what send() and recv() reach, and
 * whether io_uring or zero-copy sends are faster. Two processes over loopback,
 * or (-v, as root) two hosts joined by veth. Latency is half a round trip; both
 * sides poll. Every way is measured in turns, medians of -r rounds are printed.
 *
 *	build/bench/bare_tcp [-v] [-r ROUNDS]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/net.h"

enum way { PLAIN, URING, ZEROCOPY, URING_ZC, WAYS };

static const char *const names[WAYS] = { "send", "io_uring", "MSG_ZEROCOPY",
					 "io_uring, zero-copy" };

#define LARGEST ((size_t)1 << 20)
#define MOST_ROUNDS 31

static uint8_t *out, *in;

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bare_tcp: %s: %s\n", what, strerror(errno));
	_Exit(1);
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* Polls in vain. At real-time priority the kernel's own
 * threads, which deliver packets, need the processor from time to time. */
static unsigned int vain;

static void rest(void)
{
	if (++vain % 1000 == 0)
		usleep(50);
}

/* -- io_uring, one request at a time ------------------------------------------ */

static struct {
	int fd;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t sq_mask, cq_mask;
} ring;

static void ring_open(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER |
					      IORING_SETUP_DEFER_TASKRUN };
	uint8_t *rings;
	uint32_t *order;

	ring.fd = (int)syscall(SYS_io_uring_setup, 8, &p);
	must(ring.fd >= 0, "io_uring_setup");
	rings = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	ring.sqes = mmap(NULL, p.sq_entries * sizeof(*ring.sqes),
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 ring.fd, IORING_OFF_SQES);
	must(rings != MAP_FAILED && ring.sqes != MAP_FAILED, "mmap");
	order = (uint32_t *)(void *)(rings + p.sq_off.array);
	for (uint32_t i = 0; i < p.sq_entries; i++)
		order[i] = i;
	ring.sq_tail = (uint32_t *)(void *)(rings + p.sq_off.tail);
	ring.sq_mask = *(uint32_t *)(void *)(rings + p.sq_off.ring_mask);
	ring.cq_head = (uint32_t *)(void *)(rings + p.cq_off.head);
	ring.cq_tail = (uint32_t *)(void *)(rings + p.cq_off.tail);
	ring.cq_mask = *(uint32_t *)(void *)(rings + p.cq_off.ring_mask);
	ring.cqes = (struct io_uring_cqe *)(void *)(rings + p.cq_off.cqes);
}

/* Submits and polls for the end. A zero-copy send has two completions: the
 * second says that the buffer may be changed. */
static ssize_t ring_do(uint8_t op, int fd, void *buf, size_t len)
{
	uint32_t tail = *ring.sq_tail;
	ssize_t ret = 0;
	bool more = true;

	ring.sqes[tail & ring.sq_mask] = (struct io_uring_sqe){
		.opcode = op,
		.fd = fd,
		.addr = (uint64_t)(uintptr_t)buf,
		.len = (uint32_t)len,
		.msg_flags = op == IORING_OP_RECV ? 0 : MSG_NOSIGNAL,
	};
	__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, ring.fd, 1, 0, IORING_ENTER_GETEVENTS, NULL,
		0);
	while (more) {
		uint32_t head = *ring.cq_head;
		const struct io_uring_cqe *cqe;

		if (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head) {
			syscall(SYS_io_uring_enter, ring.fd, 0, 0,
				IORING_ENTER_GETEVENTS, NULL, 0);
			rest();
			continue;
		}
		cqe = &ring.cqes[head & ring.cq_mask];
		if (!(cqe->flags & IORING_CQE_F_NOTIF))
			ret = cqe->res;
		more = cqe->flags & IORING_CQE_F_MORE;
		__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
	}
	errno = ret < 0 ? (int)-ret : 0;
	return ret;
}

/* -- one message --------------------------------------------------------------- */

/* The kernel tells by the error queue when it does not need the buffer any more. */
static void take_notes(int fd)
{
	uint8_t control[256];
	struct msghdr msg = { .msg_control = control,
			      .msg_controllen = sizeof(control) };

	while (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		msg.msg_controllen = sizeof(control);
}

static void send_all(int fd, enum way way, size_t len)
{
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT |
		    (way == ZEROCOPY ? MSG_ZEROCOPY : 0);
	size_t at = 0;

	while (at < len) {
		ssize_t n = way == URING ? ring_do(IORING_OP_SEND, fd, out + at,
						   len - at) :
			    way == URING_ZC ?
					   ring_do(IORING_OP_SEND_ZC, fd,
						   out + at, len - at) :
					   send(fd, out + at, len - at, flags);

		must(n > 0 || errno == EAGAIN || errno == ENOBUFS, "send");
		at += n > 0 ? (size_t)n : 0;
		if (n < 0)
			rest();
		if (way == ZEROCOPY)
			take_notes(fd);
	}
}

static void recv_all(int fd, enum way way, size_t len)
{
	bool rings = way == URING || way == URING_ZC;
	size_t at = 0;

	while (at < len) {
		ssize_t n =
			rings ? ring_do(IORING_OP_RECV, fd, in + at, len - at) :
				recv(fd, in + at, len - at, MSG_DONTWAIT);

		must(n > 0 || (n < 0 && errno == EAGAIN), "recv");
		at += n > 0 ? (size_t)n : 0;
		if (n < 0)
			rest();
	}
}

/* -- both sides ----------------------------------------------------------------- */

static const struct {
	size_t len;
	int count;
	bool stream;
} cases[] = {
	{ 64, 3000, false },	{ 4096, 3000, false },	{ 16384, 2000, false },
	{ 65536, 1000, false }, { 1 << 20, 60, false }, { 16384, 4000, true },
	{ 65536, 2000, true },	{ 1 << 20, 150, true },
};

/* Returns microseconds for one message, at the side that begins. */
static double run(int fd, enum way way, size_t at, bool begins)
{
	size_t len = cases[at].len;
	int count = cases[at].count;
	double start = now_us();

	for (int i = 0; i < count; i++) {
		if (begins)
			send_all(fd, way, len);
		if (!begins || !cases[at].stream)
			recv_all(fd, way, len);
		if (!begins && !cases[at].stream)
			send_all(fd, way, len);
	}
	if (cases[at].stream) { /* until all has arrived */
		if (begins)
			recv_all(fd, PLAIN, 1);
		else
			send_all(fd, PLAIN, 1);
	}
	return (now_us() - start) / count / (cases[at].stream ? 1 : 2);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void side(int fd, int rounds, bool begins)
{
	static double us[sizeof(cases) / sizeof(cases[0])][WAYS][MOST_ROUNDS];
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	must(!setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)),
	     "SO_ZEROCOPY");
	ring_open();
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			for (int way = 0; way < WAYS; way++)
				us[i][way][round] =
					run(fd, (enum way)way, i, begins);
	for (size_t i = 0; begins && i < sizeof(cases) / sizeof(cases[0]);
	     i++) {
		double plain = 0;

		for (int way = 0; way < WAYS; way++) {
			double *all = us[i][way], mid;

			qsort(all, (size_t)rounds, sizeof(*all), compare);
			mid = all[rounds / 2];
			plain = way ? plain : mid;
			printf("%-9s %8zu  %-20s %9.2f us  %.2f\n",
			       cases[i].stream ? "stream" : "ping-pong",
			       cases[i].len, names[way], mid, mid / plain);
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int opt, listener, fd, rounds = 7;
	bool veth = false;

	while ((opt = getopt(argc, argv, "r:v")) != -1) {
		if (opt == 'v')
			veth = true;
		else if (opt == 'r' && atoi(optarg) > 0 &&
			 atoi(optarg) <= MOST_ROUNDS)
			rounds = atoi(optarg);
		else
			return 2;
	}
	out = calloc(2, LARGEST);
	must(out, "memory");
	in = out + LARGEST;
	if (veth)
		net_begin(1500);
	inet_pton(AF_INET, veth ? net_addr(0) : "127.0.0.1", &sin.sin_addr);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(!bind(listener, (struct sockaddr *)&sin, len) &&
		     !listen(listener, 1) &&
		     !getsockname(listener, (struct sockaddr *)&sin, &len),
	     "listen");
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (veth)
			net_enter(1);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		must(!connect(fd, (struct sockaddr *)&sin, len), "connect");
		side(fd, rounds, false);
		return 0;
	}
	fd = accept(listener, NULL, NULL);
	must(fd >= 0, "accept");
	side(fd, rounds, true);
	return 0;
}
