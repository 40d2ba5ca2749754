/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program measures how flows share a link that is full: flows of a device
 * of weft alone, as many kernel TCP flows alone (the reference), and half of
 * each together, with each congestion control that the kernel has. The link is
 * that of the tests: a rate, a delay, a queue that drops its tail.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/check.h"
#include "common/wire.h"
#include "nic/open.h"

#define RATE 12500000u /* bytes per second: 100 Mbit/s */
#define DELAY_US 5000u /* one way */
#define QUEUE 250000u  /* twice the bandwidth-delay product */
#define CHUNK (64u << 10)
#define FLOWS 8
#define WARM (5 * WF_NS_PER_S)
#define MEASURE (10 * WF_NS_PER_S)
#define REST 300000 /* ns */
#define TCP_PORT 7777

static const char *device = "udp";
static int flow_count = 2;

/* These rivals share the link; the numbers are halves of the flows. */
static const struct rival {
	const char *name;
	const char *control; /* of the kernel's flows */
	const char *other;   /* of the first half of them; NULL: the same */
	int weft, tcp;
} rivals[] = {
	{ "weft", NULL, NULL, 2, 0 },
	{ "kernel", "cubic", NULL, 0, 2 },
	{ "kernel-bbr", "bbr", NULL, 0, 2 },
	{ "kernel-both", "bbr", "cubic", 0, 2 },
	{ "cubic", "cubic", NULL, 1, 1 },
	{ "reno", "reno", NULL, 1, 1 },
	{ "bbr", "bbr", NULL, 1, 1 },
};
#define RIVALS (sizeof(rivals) / sizeof(rivals[0]))

struct board {
	_Atomic unsigned step[WIRE_HOSTS];
	struct wf_addr addr[WIRE_HOSTS][FLOWS];
	uint16_t qpn[WIRE_HOSTS][FLOWS];
	uint32_t rkey[FLOWS];
	uint64_t memory[FLOWS];
};

struct flow {
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint8_t *memory;
	uint16_t ah;
	unsigned posted;
	uint64_t bytes;
};

/* All of them on one host: of weft, then of the rival. */
struct party {
	struct flow weft[FLOWS];
	int tcp[FLOWS];
	int weft_count;
	int tcp_count;
};

static_assert(sizeof(struct board) + 63 <= sizeof(((struct wire *)0)->user),
	      "the hosts share it");

static struct board *board_of(struct wire *wire)
{
	return (struct board *)(((uintptr_t)wire->user + 63) & ~(uintptr_t)63);
}

static void open_flow(struct flow *f, struct board *board, int me, int number)
{
	struct wf_nic_attr attr = { .fd = -1 };
	struct wf_nic_qp_attr qp = { .sq_entries = 64, .rq_entries = 4 };

	memset(f, 0, sizeof(*f));
	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(0x0a630001u + (uint32_t)me);
	CHECK(!wf_nic_open(device, &attr, &f->nic));
	CHECK(!wf_nic_cq_create(f->nic, 128, &f->cq));
	qp.send_cq = f->cq;
	qp.recv_cq = f->cq;
	CHECK(!wf_nic_qp_create(f->nic, &qp, &f->qp));
	f->memory = calloc(1, CHUNK);
	CHECK(f->memory);
	CHECK(!wf_nic_mr_reg(f->nic, f->memory, CHUNK,
			     WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_WRITE, &f->mr));
	board->addr[me][number] = *wf_nic_socket(f->nic);
	board->qpn[me][number] = wf_nic_qp_num(f->qp);
	if (me) {
		board->rkey[number] = f->mr.rkey;
		board->memory[number] = (uintptr_t)f->memory;
	}
}

static void close_flow(struct flow *f)
{
	wf_nic_qp_destroy(f->qp);
	wf_nic_cq_destroy(f->cq);
	wf_nic_close(f->nic);
	free(f->memory);
}

static void push_flow(struct flow *f, const struct board *board, int number)
{
	struct wf_nic_remote there = { .addr = board->memory[number],
				       .rkey = board->rkey[number] };
	struct wf_nic_wr wr = { .ah = f->ah, .qpn = board->qpn[1][number] };
	struct wf_nic_sge sge = { f->memory, CHUNK, f->mr.lkey };
	struct wf_nic_wc wc[16];
	int n;

	wf_nic_progress(f->nic);
	n = wf_nic_cq_poll(f->cq, wc, 16);
	for (int i = 0; i < n; i++) {
		CHECK(wc[i].status == WF_NIC_OK);
		f->posted--;
		f->bytes += CHUNK;
	}
	while (f->posted < 32 && !wf_nic_post_write(f->qp, &wr, &there, &sge))
		f->posted++;
}

static int tcp_socket(int me, const char *control, int number)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(
					    (uint16_t)(TCP_PORT + number)),
				    .sin_addr.s_addr = htonl(0x0a630002u) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, got;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control,
		       (socklen_t)strlen(control))) {
		close(fd);
		return -1;
	}
	if (!me) {
		while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			usleep(10000);
		return fd;
	}
	CHECK(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(!listen(fd, 1));
	got = accept(fd, NULL, NULL);
	close(fd);
	return got;
}

/* Bytes that the peer has acknowledged: bytes in the socket do not count. */
static uint64_t tcp_acked(int fd)
{
	struct tcp_info info = { .tcpi_state = 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_bytes_acked;
}

static void meet(struct board *board, int me, unsigned step)
{
	board->step[me] = step;
	while (board->step[!me] < step)
		usleep(1000);
}

/* Sleeps until a flow has something to do: 300 us at most, because a sender also
 * looks for room in the sockets of its rivals. Without wf_nic_wait_begin() a
 * descriptor need not tell of data. */
static void rest(const struct party *p, bool write)
{
	struct pollfd fds[2 * FLOWS];
	uint64_t now = wf_base_clock_ns(), until = now + REST;
	struct timespec wait = { 0 };
	int n = 0, begun = 0;

	while (begun < p->weft_count) {
		const struct flow *f = &p->weft[begun];
		uint64_t deadline = UINT64_MAX;

		if (wf_nic_wait_begin(f->nic, f->cq, &deadline))
			break;
		until = deadline < until ? deadline : until;
		fds[n++] = (struct pollfd){ .fd = wf_nic_wait_fd(f->nic),
					    .events = POLLIN };
		begun++;
	}
	for (int i = 0; i < p->tcp_count && !write; i++)
		fds[n++] = (struct pollfd){ .fd = p->tcp[i], .events = POLLIN };
	wait.tv_nsec = until > now ? (long)(until - now) : 0;
	if (begun == p->weft_count)
		ppoll(fds, (nfds_t)n, &wait, NULL);
	while (begun)
		wf_nic_wait_end(p->weft[--begun].nic);
}

/* Bytes of each flow until now. */
static void count(const struct party *p, uint64_t *bytes)
{
	for (int i = 0; i < p->weft_count; i++)
		bytes[i] = p->weft[i].bytes;
	for (int i = 0; i < p->tcp_count; i++)
		bytes[p->weft_count + i] = tcp_acked(p->tcp[i]);
}

static void show(const struct party *p, const struct rival *rival,
		 const double *got)
{
	int n = p->weft_count + p->tcp_count;
	int half = rival->other ? n / 2 : p->weft_count;
	double all = 0, first = 0, least = got[0], most = got[0];

	for (int i = 0; i < n; i++) {
		all += got[i];
		first += i < half ? got[i] : 0;
		least = got[i] < least ? got[i] : least;
		most = got[i] > most ? got[i] : most;
	}
	if (half && half < n)
		printf("%-5s beside %-5s %5.1f %% to %4.1f %%",
		       rival->other ? rival->other : "weft", rival->control,
		       100 * first / all, 100 - 100 * first / all);
	else
		printf("%-5s alone                       ",
		       p->tcp_count ? rival->control : "weft");
	printf(", most to least %4.1f to %4.1f, together %5.1f %% of the link:",
	       100 * most / (most + least), 100 * least / (most + least),
	       100 * all / (MEASURE / 1e9) / RATE);
	for (int i = 0; i < n; i++)
		printf(" %.1f", 100 * got[i] / all);
	printf("\n");
	fflush(stdout);
}

static void send_side(struct board *board, struct party *p,
		      const struct rival *rival)
{
	static uint8_t bytes[CHUNK];
	uint64_t start = wf_base_clock_ns(), end = start + WARM + MEASURE;
	uint64_t from[FLOWS] = { 0 }, to[FLOWS];
	double got[FLOWS] = { 0 };
	bool warm = false;

	while (wf_base_clock_ns() < end) {
		for (int i = 0; i < p->weft_count; i++)
			push_flow(&p->weft[i], board, i);
		for (int i = 0; i < p->tcp_count; i++) {
			while (send(p->tcp[i], bytes, CHUNK,
				    MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
				;
		}
		if (!warm && wf_base_clock_ns() > start + WARM) {
			warm = true;
			count(p, from);
		}
		rest(p, true);
	}
	count(p, to);
	for (int i = 0; i < p->weft_count + p->tcp_count; i++)
		got[i] = (double)(to[i] - from[i]);
	show(p, rival, got);
}

static void receive_side(struct board *board, struct party *p, unsigned until)
{
	static uint8_t bytes[CHUNK];

	while (board->step[0] < until) {
		int did = 0;

		for (int i = 0; i < p->weft_count; i++)
			did += wf_nic_progress(p->weft[i].nic);
		for (int i = 0; i < p->tcp_count; i++) {
			while (recv(p->tcp[i], bytes, CHUNK, MSG_DONTWAIT) > 0)
				did++;
		}
		if (!did)
			rest(p, false);
	}
}

static void play(struct wire *wire, int me, const struct rival *rival,
		 unsigned *step)
{
	struct board *board = board_of(wire);
	struct party p = {
		.weft_count = rival->weft * flow_count / 2,
		.tcp_count = rival->tcp * flow_count / 2,
	};
	bool has_all = true;

	for (int i = 0; i < p.weft_count; i++)
		open_flow(&p.weft[i], board, me, i);
	meet(board, me, ++*step);
	for (int i = 0; i < p.tcp_count; i++) {
		const char *control = rival->other && i < p.tcp_count / 2 ?
					      rival->other :
					      rival->control;

		p.tcp[i] = has_all ? tcp_socket(me, control, i) : -1;
		has_all &= p.tcp[i] >= 0;
	}
	for (int i = 0; i < p.weft_count; i++)
		CHECK(!wf_nic_ah_create_socket(
			p.weft[i].nic, &board->addr[!me][i], &p.weft[i].ah));
	if (!has_all && !me)
		printf("%s: not in this kernel\n", rival->control);
	else if (me)
		receive_side(board, &p, *step + 1);
	else
		send_side(board, &p, rival);
	meet(board, me, ++*step);
	for (int i = 0; i < p.tcp_count; i++) {
		if (p.tcp[i] >= 0)
			close(p.tcp[i]);
	}
	for (int i = 0; i < p.weft_count; i++)
		close_flow(&p.weft[i]);
}

static int turns = 1;
static const char *only;

static int host(struct wire *wire, int me)
{
	unsigned step = 0;

	if (!me)
		printf("%u Mbit/s, %u ms there and back, queue of %u KB\n",
		       RATE / 125000, 2 * DELAY_US / 1000, QUEUE / 1000);
	for (size_t i = 0; i < RIVALS; i++) {
		for (int t = 0;
		     t < turns && (!only || !strcmp(only, rivals[i].name)); t++)
			play(wire, me, &rivals[i], &step);
	}
	return 0;
}

static int usage(const char *name, int ret)
{
	printf("usage: %s [--device udp|tcp] [--flows N] [TURNS [RIVAL]]\n"
	       "How a full link is shared: by N flows of weft (default 2, at most %d), by N of the\n"
	       "kernel with cubic, with bbr, and half with each, and by half of weft and half of\n"
	       "the kernel with cubic, reno, bbr. A turn takes 15 s a rival (weft, kernel,\n"
	       "kernel-bbr, kernel-both, cubic, reno, bbr), and root.\n",
	       name, FLOWS);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "flows", required_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct wire *wire;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			device = optarg;
		else if (c == 'f')
			flow_count = atoi(optarg);
		else
			return usage(argv[0], c == 'h' ? 0 : 2);
	}
	if (optind < argc)
		turns = atoi(argv[optind++]);
	if (optind < argc)
		only = argv[optind++];
	if (turns < 1 || turns > 100 || optind < argc || flow_count < 2 ||
	    flow_count > FLOWS || flow_count % 2 ||
	    (strcmp(device, "udp") && strcmp(device, "tcp")))
		return usage(argv[0], 2);
	wire = wire_create();
	CHECK(wire);
	wire->rules.rate = RATE;
	wire->rules.queue = QUEUE;
	wire->rules.delay_us = DELAY_US;
	return wire_run(wire, 1500, host);
}
