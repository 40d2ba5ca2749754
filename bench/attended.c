/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program measures how long a process that computes keeps its peers
 * waiting: remote reads of its memory, and messages that it must acknowledge,
 * while it makes no call of libfabric. Prints half of them, 9 of 10 and 99 of
 * 100, in microseconds, and the same while it polls. It uses libfabric only.
 *
 *	FI_WEFT_SHM=0 build/bench/attended [-p PROVIDER] [-n COUNT] [-c]
 *
 * -c: the computing process uses a processor; else it sleeps in read(2).
 */
#include "fabric.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 64, SIZE = 64, PAUSE_US = 5000, MEMORY = 4096 };

/* This struct holds what the computing process tells the other. */
struct told {
	char name[NAME];
	uint64_t key, base;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static unsigned int count = 300;
static bool computes;

static void open_ep(char name[NAME])
{
	size_t len = NAME;

	bench_domain(fabric, info, 0, &domain, &av, &cq);
	bench_endpoint(domain, info, av, cq, &ep);
	must("fi_getname", fi_getname(&ep->fid, name, &len));
}

static void put(int fd, const void *bytes, size_t len)
{
	must("write", write(fd, bytes, len) == (ssize_t)len ? 0 : -FI_EIO);
}

static void get(int fd, void *bytes, size_t len)
{
	must("read", read(fd, bytes, len) == (ssize_t)len ? 0 : -FI_EIO);
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* -- the process that computes ------------------------------------------------ */

/* Makes progress, or none, until the other process says a word. */
static void pass_time(int in, bool polls)
{
	struct fi_cq_tagged_entry entry;
	char mark;

	must("fcntl", fcntl(in, F_SETFL, polls || computes ? O_NONBLOCK : 0));
	while (read(in, &mark, 1) != 1)
		if (polls)
			(void)!fi_cq_read(cq, &entry, 1);
}

static void serve(int out, int in)
{
	static char memory[MEMORY], into[SIZE];
	struct fi_context2 *contexts = calloc(2 * count, sizeof(*contexts));
	struct told told = { .base = 0 };
	struct fid_mr *mr;
	fi_addr_t peer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_ep(told.name);
	must("fi_mr_reg", fi_mr_reg(domain, memory, MEMORY, FI_REMOTE_READ, 0,
				    1, 0, &mr, NULL));
	told.key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		told.base = (uint64_t)(uintptr_t)memory;
	must("memory", contexts ? 0 : -FI_ENOMEM);
	for (unsigned int i = 0; i < 2 * count; i++)
		must("fi_trecv", fi_trecv(ep, into, SIZE, NULL, FI_ADDR_UNSPEC,
					  1, 0, &contexts[i]));
	put(out, &told, sizeof(told));
	get(in, told.name, NAME);
	must("fi_av_insert", fi_av_insert(av, told.name, 1, &peer, 0, NULL));
	for (int i = 0; i < 4; i++)
		pass_time(in, i % 2 == 0);
	_Exit(0);
}

/* -- the one that waits ------------------------------------------------------- */

static void wait_for_one(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n;

	while ((n = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		;
	must("completion", n);
}

static void ask(bool reads, fi_addr_t peer, const struct told *told)
{
	static char bytes[SIZE];
	struct fi_context2 context;
	struct fi_msg_tagged msg = {
		.msg_iov = &(struct iovec){ bytes, SIZE },
		.iov_count = 1,
		.addr = peer,
		.tag = 1,
		.context = &context,
	};
	long ret;

	do {
		ret = reads ? fi_read(ep, bytes, SIZE, NULL, peer, told->base,
				      told->key, &context) :
			      fi_tsendmsg(ep, &msg,
					  FI_COMPLETION | FI_TRANSMIT_COMPLETE);
	} while (ret == -FI_EAGAIN);
	must(reads ? "fi_read" : "fi_tsendmsg", ret);
	wait_for_one();
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One at a time, with pauses in which the other side falls asleep. */
static void measure(const char *what, bool reads, fi_addr_t peer,
		    const struct told *told)
{
	double *us = calloc(count, sizeof(*us));

	must("memory", us ? 0 : -FI_ENOMEM);
	ask(reads, peer, told);
	for (unsigned int i = 0; i < count; i++) {
		double begin;

		usleep(PAUSE_US);
		begin = now_us();
		ask(reads, peer, told);
		us[i] = now_us() - begin;
	}
	qsort(us, count, sizeof(*us), compare);
	printf("%-34s %8.1f %8.1f %8.1f\n", what, us[count / 2],
	       us[count * 9 / 10], us[count * 99 / 100]);
	free(us);
}

int main(int argc, char **argv)
{
	const char *provider = "weft";
	int opt, up[2], down[2];
	struct told told;
	fi_addr_t peer;
	char name[NAME] = "";

	while ((opt = getopt(argc, argv, "cn:p:")) != -1) {
		if (opt == 'c')
			computes = true;
		else if (opt == 'n' && atoi(optarg) > 0)
			count = (unsigned int)atoi(optarg);
		else if (opt == 'p')
			provider = optarg;
		else
			return 2;
	}
	bench_find(provider, FI_MSG | FI_RMA, &info, &fabric);
	if (pipe(up) || pipe(down))
		must("pipe", -FI_EMFILE);
	if (!fork())
		serve(up[1], down[0]);
	get(up[0], &told, sizeof(told));
	open_ep(name);
	must("fi_av_insert", fi_av_insert(av, told.name, 1, &peer, 0, NULL));
	put(down[1], name, NAME);
	printf("%-34s %8s %8s %8s\n", "us", "50 %", "90 %", "99 %");
	measure("read, the target polls", true, peer, &told);
	put(down[1], "n", 1);
	measure("read, the target computes", true, peer, &told);
	put(down[1], "n", 1);
	measure("acknowledged, the receiver polls", false, peer, &told);
	put(down[1], "n", 1);
	measure("acknowledged, it computes", false, peer, &told);
	return 0;
}
