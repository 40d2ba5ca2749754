/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How flows share a link that is full: two flows of the software NIC, and one
 * together with a kernel TCP flow, with each congestion control that the kernel
 * has. The link is that of the tests: a rate, a delay, a queue that drops its
 * tail.
 */
#include <errno.h>
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
#define FLOWS 2
#define WARM (5 * WF_NS_PER_S)
#define MEASURE (10 * WF_NS_PER_S)
#define TCP_PORT 7777

static const char *const rivals[] = { "weft", "cubic", "reno", "bbr" };
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
	CHECK(!wf_nic_open("udp", &attr, &f->nic));
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

static int tcp_socket(int me, const char *control)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(TCP_PORT),
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

static void rest(struct flow *flows, int n, int tcp, bool write)
{
	struct pollfd fds[FLOWS + 1];
	struct timespec wait = { .tv_nsec = 300000 };
	int i;

	for (i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = wf_nic_wait_fd(flows[i].nic),
					  .events = POLLIN };
	fds[i] = (struct pollfd){ .fd = tcp,
				  .events = write ? POLLOUT : POLLIN };
	ppoll(fds, (nfds_t)n + 1, &wait, NULL);
}

static void send_side(struct board *board, struct flow *flows, int n, int tcp,
		      const char *rival)
{
	static uint8_t bytes[CHUNK];
	uint64_t start = wf_base_clock_ns(), zero[FLOWS] = { 0, 0 }, end;
	double got[FLOWS], all;
	bool warm = false;

	end = start + WARM + MEASURE;
	while (wf_base_clock_ns() < end) {
		for (int i = 0; i < n; i++)
			push_flow(&flows[i], board, i);
		while (tcp >= 0 &&
		       send(tcp, bytes, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
		if (!warm && wf_base_clock_ns() > start + WARM) {
			warm = true;
			zero[0] = flows[0].bytes;
			zero[1] = tcp >= 0 ? tcp_acked(tcp) : flows[1].bytes;
		}
		rest(flows, n, -1, false);
	}
	got[0] = (double)(flows[0].bytes - zero[0]);
	got[1] = (double)((tcp >= 0 ? tcp_acked(tcp) : flows[1].bytes) -
			  zero[1]);
	all = got[0] + got[1];
	printf("weft beside %-6s %5.1f %% to %4.1f %%, together %5.1f %% of "
	       "the link\n",
	       rival, 100 * got[0] / all, 100 * got[1] / all,
	       100 * all / (MEASURE / 1e9) / RATE);
	fflush(stdout);
}

static void receive_side(struct board *board, struct flow *flows, int n,
			 int tcp, unsigned until)
{
	static uint8_t bytes[CHUNK];

	while (board->step[0] < until) {
		int did = 0;

		for (int i = 0; i < n; i++)
			did += wf_nic_progress(flows[i].nic);
		while (tcp >= 0 && recv(tcp, bytes, CHUNK, MSG_DONTWAIT) > 0)
			did++;
		if (!did)
			rest(flows, n, tcp, false);
	}
}

static void play(struct wire *wire, int me, const char *rival, unsigned *step)
{
	struct board *board = board_of(wire);
	bool weft = !strcmp(rival, "weft");
	int n = weft ? 2 : 1, tcp = -1;
	struct flow flows[FLOWS];

	for (int i = 0; i < n; i++)
		open_flow(&flows[i], board, me, i);
	meet(board, me, ++*step);
	if (!weft)
		tcp = tcp_socket(me, rival);
	for (int i = 0; i < n; i++)
		CHECK(!wf_nic_ah_create_socket(
			flows[i].nic, &board->addr[!me][i], &flows[i].ah));
	if (me)
		receive_side(board, flows, n, tcp, *step + 1);
	else if (weft || tcp >= 0)
		send_side(board, flows, n, tcp, rival);
	else
		printf("weft beside %s: not in this kernel\n", rival);
	meet(board, me, ++*step);
	if (tcp >= 0)
		close(tcp);
	for (int i = 0; i < n; i++)
		close_flow(&flows[i]);
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
		     t < turns && (!only || !strcmp(only, rivals[i])); t++)
			play(wire, me, rivals[i], &step);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct wire *wire;

	if (argc > 1)
		turns = atoi(argv[1]);
	if (argc > 2)
		only = argv[2];
	if (turns < 1 || turns > 100 || argc > 3) {
		printf("usage: %s [TURNS [RIVAL]]\nHow a full link is shared "
		       "with weft, cubic, reno, bbr; takes 15 s a turn\nand "
		       "rival, and root.\n",
		       argv[0]);
		return strcmp(argv[1], "--help") ? 2 : 0;
	}
	wire = wire_create();
	CHECK(wire);
	wire->rules.rate = RATE;
	wire->rules.queue = QUEUE;
	wire->rules.delay_us = DELAY_US;
	return wire_run(wire, 1500, host);
}
