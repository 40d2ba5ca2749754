/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processor time per message of the software NIC, libfabric's providers and
 * plain TCP sockets on loopback: both ends are in one process and take turns,
 * so that neither ever waits and the machine may do other work. It counts what
 * both ends and the kernel do together; it says nothing about two processors
 * that work at the same time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "nic/open.h"

#define SMALL 64u
#define LARGE (1u << 20)
#define WINDOW 8u
#define WARM 50u
#define RECEIVES 64u
#define TURNS 3

/* From end 0 to end 1 unless stated otherwise. */
struct engine {
	const char *name;
	int (*open)(const char *name);
	void (*send)(int from, size_t len); /* starts one message */
	unsigned (*sent)(void);	      /* completed large messages of end 0 */
	unsigned (*received)(int at); /* small messages received so far */
	void (*work)(int at);
};

static uint8_t *memory[2];

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* -- the software NIC ------------------------------------------------------- */

static struct {
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint16_t ah;
	unsigned got;
	unsigned done;
} ends[2];

static void weft_recv(int at)
{
	struct wf_nic_sge sge = { memory[at], SMALL, ends[at].mr.lkey };

	wf_nic_post_recv(ends[at].qp, 0, &sge, false);
}

static int weft_open_mtu(uint32_t mtu)
{
	struct wf_nic_attr attr = { .fd = -1, .mtu = mtu };
	struct wf_nic_qp_attr qp = { .sq_entries = 256,
				     .rq_entries = 256,
				     .rnr_retry = WF_NIC_RNR_FOREVER };
	int ret = 0;

	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2 && !ret; i++) {
		ret = wf_nic_open("udp", &attr, &ends[i].nic);
		if (!ret)
			ret = wf_nic_cq_create(ends[i].nic, 512, &ends[i].cq);
		qp.send_cq = qp.recv_cq = ends[i].cq;
		if (!ret)
			ret = wf_nic_qp_create(ends[i].nic, &qp, &ends[i].qp);
		if (!ret)
			ret = wf_nic_mr_reg(ends[i].nic, memory[i], LARGE,
					    WF_NIC_LOCAL_WRITE |
						    WF_NIC_REMOTE_WRITE,
					    &ends[i].mr);
		for (unsigned k = 0; !ret && k < RECEIVES; k++)
			weft_recv(i);
	}
	for (int i = 0; i < 2 && !ret; i++)
		ret = wf_nic_ah_create_socket(
			ends[i].nic, wf_nic_socket(ends[!i].nic), &ends[i].ah);
	return ret;
}

static int weft_open(const char *name)
{
	return weft_open_mtu(strstr(name, "1500") ? 1500 : 0);
}

static void weft_send(int from, size_t len)
{
	struct wf_nic_wr wr = { .wr_id = len,
				.ah = ends[from].ah,
				.qpn = wf_nic_qp_num(ends[!from].qp) };
	struct wf_nic_sge sge = { memory[from], (uint32_t)len,
				  ends[from].mr.lkey };
	struct wf_nic_remote there = { .addr = (uintptr_t)memory[!from],
				       .rkey = ends[!from].mr.rkey };

	if (len == SMALL)
		wf_nic_post_send(ends[from].qp, &wr, &sge, 1);
	else
		wf_nic_post_write(ends[from].qp, &wr, &there, &sge);
}

static void weft_work(int at)
{
	struct wf_nic_wc wc[16];
	int n;

	wf_nic_progress(ends[at].nic);
	n = wf_nic_cq_poll(ends[at].cq, wc, 16);
	for (int i = 0; i < n; i++) {
		if (wc[i].flags & WF_NIC_WC_RECV) {
			ends[at].got++;
			weft_recv(at);
		} else if (wc[i].wr_id == LARGE) {
			ends[at].done++;
		}
	}
}

static unsigned weft_sent(void)
{
	return ends[0].done;
}

static unsigned weft_received(int at)
{
	return ends[at].got;
}

/* -- libfabric -------------------------------------------------------------- */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *txcq;
	struct fid_cq *rxcq;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct fi_context2 contexts[4 * RECEIVES];
	unsigned next;
	unsigned got;
	unsigned done;
} fabrics[2];

static void *fabric_context(int at)
{
	return &fabrics[at].contexts[fabrics[at].next++ % (4 * RECEIVES)];
}

static void fabric_work(int at)
{
	struct fi_cq_entry entry[16];
	ssize_t n = fi_cq_read(fabrics[at].txcq, entry, 16);

	if (n > 0)
		fabrics[at].done += (unsigned)n;
	n = fi_cq_read(fabrics[at].rxcq, entry, 16);
	for (; n > 0; n--) {
		fabrics[at].got++;
		while (fi_recv(fabrics[at].ep, memory[at], LARGE, NULL,
			       FI_ADDR_UNSPEC,
			       fabric_context(at)) == -FI_EAGAIN)
			;
	}
}

static int fabric_open_end(int i, const char *name)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .size = 512 };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	int ret;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(name);
	ret = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints,
			 &fabrics[i].info);
	fi_freeinfo(hints);
	if (!ret)
		ret = fi_fabric(fabrics[i].info->fabric_attr,
				&fabrics[i].fabric, NULL);
	if (!ret)
		ret = fi_domain(fabrics[i].fabric, fabrics[i].info,
				&fabrics[i].domain, NULL);
	if (!ret)
		ret = fi_av_open(fabrics[i].domain, &av, &fabrics[i].av, NULL);
	if (!ret)
		ret = fi_cq_open(fabrics[i].domain, &cq, &fabrics[i].txcq,
				 NULL);
	if (!ret)
		ret = fi_cq_open(fabrics[i].domain, &cq, &fabrics[i].rxcq,
				 NULL);
	if (!ret)
		ret = fi_endpoint(fabrics[i].domain, fabrics[i].info,
				  &fabrics[i].ep, NULL);
	if (!ret)
		ret = fi_ep_bind(fabrics[i].ep, &fabrics[i].av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fabrics[i].ep, &fabrics[i].txcq->fid,
				 FI_TRANSMIT);
	if (!ret)
		ret = fi_ep_bind(fabrics[i].ep, &fabrics[i].rxcq->fid, FI_RECV);
	return ret ? ret : fi_enable(fabrics[i].ep);
}

static int fabric_open(const char *name)
{
	uint8_t addr[256];
	int ret;

	for (int i = 0; i < 2; i++) {
		ret = fabric_open_end(i, name);
		for (unsigned k = 0; !ret && k < RECEIVES; k++)
			ret = (int)fi_recv(fabrics[i].ep, memory[i], LARGE,
					   NULL, FI_ADDR_UNSPEC,
					   fabric_context(i));
		if (ret)
			return ret;
	}
	for (int i = 0; i < 2; i++) {
		size_t len = sizeof(addr);

		ret = fi_getname(&fabrics[!i].ep->fid, addr, &len);
		if (ret || fi_av_insert(fabrics[i].av, addr, 1,
					&fabrics[i].peer, 0, NULL) != 1)
			return -EINVAL;
	}
	return 0;
}

static void fabric_send(int from, size_t len)
{
	ssize_t ret;

	do {
		ret = len == SMALL ?
			      fi_inject(fabrics[from].ep, memory[from], len,
					fabrics[from].peer) :
			      fi_send(fabrics[from].ep, memory[from], len, NULL,
				      fabrics[from].peer, fabric_context(from));
		if (ret == -FI_EAGAIN) {
			fabric_work(0);
			fabric_work(1);
		}
	} while (ret == -FI_EAGAIN);
}

static unsigned fabric_sent(void)
{
	return fabrics[0].done;
}

static unsigned fabric_received(int at)
{
	return fabrics[at].got;
}

/* -- plain TCP -------------------------------------------------------------- */

static struct {
	int fd;
	size_t to_send;
	size_t got;
} socks[2];

static int tcp_open(const char *name)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	(void)name;
	socks[0].fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&addr, len) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    listen(listener, 1) ||
	    connect(socks[0].fd, (struct sockaddr *)&addr, len))
		return -errno;
	socks[1].fd = accept(listener, NULL, NULL);
	close(listener);
	for (int i = 0; i < 2; i++) {
		setsockopt(socks[i].fd, IPPROTO_TCP, TCP_NODELAY, &on,
			   sizeof(on));
		fcntl(socks[i].fd, F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void tcp_work(int at)
{
	size_t room = LARGE - socks[at].got % LARGE;
	ssize_t n;

	if (socks[at].to_send) {
		n = send(socks[at].fd, memory[at],
			 socks[at].to_send < LARGE ? socks[at].to_send : LARGE,
			 MSG_NOSIGNAL);
		if (n > 0)
			socks[at].to_send -= (size_t)n;
	}
	n = recv(socks[at].fd, memory[at], room, 0);
	if (n > 0)
		socks[at].got += (size_t)n;
}

static void tcp_send(int from, size_t len)
{
	socks[from].to_send += len;
	/* At once, as the others do. */
	if (len == SMALL && send(socks[from].fd, memory[from], len,
				 MSG_NOSIGNAL) == (ssize_t)len)
		socks[from].to_send -= len;
}

static size_t tcp_smalls; /* bytes at end 1 before the large ones */

static unsigned tcp_sent(void)
{
	return (unsigned)((socks[1].got - tcp_smalls) / LARGE);
}

static unsigned tcp_received(int at)
{
	tcp_smalls = socks[1].got;
	return (unsigned)(socks[at].got / SMALL);
}

/* -- all -------------------------------------------------------------------- */

static const struct engine engines[] = {
	{ "weft", weft_open, weft_send, weft_sent, weft_received, weft_work },
	{ "weft, MTU 1500", weft_open, weft_send, weft_sent, weft_received,
	  weft_work },
	{ "tcp;ofi_rxm", fabric_open, fabric_send, fabric_sent, fabric_received,
	  fabric_work },
	{ "udp;ofi_rxd", fabric_open, fabric_send, fabric_sent, fabric_received,
	  fabric_work },
	{ "TCP sockets", tcp_open, tcp_send, tcp_sent, tcp_received, tcp_work },
};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

static double play_small(const struct engine *e, unsigned rounds)
{
	unsigned base[2] = { e->received(0), e->received(1) };
	double start = 0;

	for (unsigned i = 0; i < rounds + WARM; i++) {
		if (i == WARM)
			start = cpu_us();
		for (int from = 0; from < 2; from++) {
			e->send(from, SMALL);
			while (e->received(!from) - base[!from] <= i) {
				e->work(!from);
				/* Both ends must make progress to connect. */
				if (i < WARM)
					e->work(from);
			}
		}
	}
	return (cpu_us() - start) / rounds / 2;
}

static double play_large(const struct engine *e, unsigned total)
{
	unsigned base = e->sent(), posted = 0, done, warm = 2 * WINDOW;
	double start = 0;

	while ((done = e->sent() - base) < total + warm) {
		if (!start && done >= warm)
			start = cpu_us();
		for (; posted < total + warm && posted - done < WINDOW;
		     posted++)
			e->send(0, LARGE);
		e->work(1);
		e->work(0);
	}
	return (cpu_us() - start) / total;
}

/* In a process of its own, because libraries keep threads and state. */
static int play(const struct engine *e, double out[2])
{
	int fds[2], status;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		double got[2] = { 0, 0 };
		bool slow = strstr(e->name, "rxd");

		alarm(30);
		if (e->open(e->name))
			_exit(1);
		got[0] = play_small(e, slow ? 300 : 3000);
		got[1] = play_large(e, slow ? 10 : 100);
		_exit(write(fds[1], got, sizeof(got)) != sizeof(got));
	}
	close(fds[1]);
	status = read(fds[0], out, 2 * sizeof(*out)) == 2 * sizeof(*out) ? 0 :
									   -EIO;
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return status;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double got[ENGINES][2][TURNS];
	int turns[ENGINES] = { 0 };

	const char *only = argc == 2 ? argv[1] : "";

	if (argc > 2 || only[0] == '-') {
		printf("usage: %s [NAME]\nProcessor time per message, both ends "
		       "in one process; of those whose name\nbegins so.\n",
		       argv[0]);
		return strcmp(only, "--help") ? 2 : 0;
	}
	for (int i = 0; i < 2; i++) {
		memory[i] = aligned_alloc(4096, LARGE);
		if (!memory[i])
			return 1;
		memset(memory[i], i, LARGE);
	}
	for (int t = 0; t < TURNS; t++) {
		for (size_t i = 0; i < ENGINES; i++) {
			double out[2];

			if (strncmp(engines[i].name, only, strlen(only)) ||
			    play(&engines[i], out))
				continue;
			if (isatty(STDERR_FILENO))
				fprintf(stderr, "%s: %.2f us, %.0f us\n",
					engines[i].name, out[0], out[1]);
			got[i][0][turns[i]] = out[0];
			got[i][1][turns[i]++] = out[1];
		}
	}
	printf("%-16s %12s %14s\n", "CPU time", "64 B, us", "1 MiB, us");
	for (size_t i = 0; i < ENGINES; i++) {
		for (int k = 0; k < 2; k++)
			qsort(got[i][k], (size_t)turns[i], sizeof(double),
			      by_value);
		if (turns[i])
			printf("%-16s %12.2f %14.0f\n", engines[i].name,
			       got[i][0][turns[i] / 2],
			       got[i][1][turns[i] / 2]);
		else
			printf("%-16s %12s\n", engines[i].name, "-");
	}
	return 0;
}
