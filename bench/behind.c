/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program measures how long a small message takes while large ones, or
 * remote writes, go to the same peer. One process keeps a number of them under
 * way and sends 8 bytes with the time now and then; the other prints when half
 * of these, 9 of 10 and 99 of 100 were received, in microseconds, and the bytes
 * per second of the large ones. It uses libfabric only.
 *
 *	FI_WEFT_SHM=0 build/bench/behind [-p PROVIDER] [-n COUNT] [-w WINDOW]
 *					 [-s SIZE,...] [-m | -r]
 *
 * -m: messages only, -r: remote writes only.
 */
#include "fabric.h"

#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 64, SIZES = 16, WINDOW_MOST = 256, SMALLS = 64 };
enum { LARGE_TAG = 1, SMALL_TAG = 2, END_TAG = 3 };
/* Between two small messages, and before the first. */
#define PAUSE_US 1000.0
#define BEGIN_US 50000.0

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
static unsigned int count = 1000, window = 16;
static size_t sizes[SIZES] = { 0,	  16 << 10,  32 << 10,
			       64 << 10,  128 << 10, 256 << 10,
			       512 << 10, 1 << 20,   8 << 20 };
static unsigned int size_count = 9;
static size_t longest;
static char *memory;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void put(int fd, const void *bytes, size_t len)
{
	must("write", write(fd, bytes, len) == (ssize_t)len ? 0 : -FI_EIO);
}

static void get(int fd, void *bytes, size_t len)
{
	must("read", read(fd, bytes, len) == (ssize_t)len ? 0 : -FI_EIO);
}

static void open_ep(struct told *told)
{
	size_t len = NAME;
	struct fid_mr *mr;

	bench_domain(fabric, info, 0, &domain, &av, &cq);
	bench_endpoint(domain, info, av, cq, &ep);
	must("fi_getname", fi_getname(&ep->fid, told->name, &len));
	memory = mmap(NULL, longest, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	must("mmap", memory == MAP_FAILED ? -FI_ENOMEM : 0);
	must("fi_mr_reg", fi_mr_reg(domain, memory, longest, FI_REMOTE_WRITE, 0,
				    1, 0, &mr, NULL));
	told->key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		told->base = (uint64_t)(uintptr_t)memory;
}

static fi_addr_t meet(int out, int in, struct told *its)
{
	struct told told = { .base = 0 };
	fi_addr_t peer;

	open_ep(&told);
	put(out, &told, sizeof(told));
	get(in, its, sizeof(*its));
	must("fi_av_insert", fi_av_insert(av, its->name, 1, &peer, 0, NULL));
	return peer;
}

static void *take(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t n = fi_cq_read(cq, &entry, 1);

	if (n == -FI_EAGAIN)
		return NULL;
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { .err = 0 };

		(void)fi_cq_readerr(cq, &err, 0);
		must("completion", -err.err);
	}
	must("fi_cq_read", n);
	return entry.op_context;
}

/* -- the receiver ------------------------------------------------------------- */

static struct fi_context2 large[WINDOW_MOST], small[SMALLS], end_context;
static double stamps[SMALLS];

static void receive(void *at, size_t len, uint64_t tag, void *context)
{
	ssize_t ret;

	while ((ret = fi_trecv(ep, at, len, NULL, FI_ADDR_UNSPEC, tag, 0,
			       context)) == -FI_EAGAIN)
		(void)take();
	must("fi_trecv", ret);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void hear(const char *what, size_t size, bool writes, double *us)
{
	unsigned int got = 0;
	double begin, rate;

	receive(&rate, sizeof(rate), END_TAG, &end_context);
	for (unsigned int i = 0; i < SMALLS; i++)
		receive(&stamps[i], sizeof(double), SMALL_TAG, &small[i]);
	for (unsigned int i = 0; size && !writes && i < window; i++)
		receive(memory, size, LARGE_TAG, &large[i]);
	for (;;) {
		struct fi_context2 *context = take();

		if (context == &end_context)
			break;
		if (context >= small && context < small + SMALLS) {
			double *stamp = &stamps[context - small];

			if (got < count)
				us[got++] = now_us() - *stamp;
			receive(stamp, sizeof(*stamp), SMALL_TAG, context);
		} else if (context) {
			receive(memory, size, LARGE_TAG, context);
		}
	}
	/* The rest is for the next size. */
	for (unsigned int i = 0; i < SMALLS; i++)
		(void)fi_cancel(&ep->fid, &small[i]);
	for (unsigned int i = 0; size && !writes && i < window; i++)
		(void)fi_cancel(&ep->fid, &large[i]);
	for (begin = now_us(); now_us() - begin < BEGIN_US;) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry err = { .err = 0 };

		if (fi_cq_read(cq, &entry, 1) == -FI_EAVAIL)
			(void)fi_cq_readerr(cq, &err, 0);
	}
	qsort(us, got, sizeof(*us), compare);
	if (!got)
		must("small messages", -FI_EIO);
	printf("%-9s %9zu %9.1f %9.1f %9.1f %9.0f\n", what, size, us[got / 2],
	       us[got * 9 / 10], us[got * 99 / 100], rate);
	fflush(stdout);
}

/* -- the sender --------------------------------------------------------------- */

static struct {
	struct fi_context2 contexts[WINDOW_MOST];
	struct fi_context2 *unused[WINDOW_MOST];
	unsigned int free;
	uint64_t done;
} pipe_;

static void reap(void)
{
	struct fi_context2 *context;

	while ((context = take())) {
		if (context < pipe_.contexts ||
		    context >= pipe_.contexts + WINDOW_MOST)
			continue;
		pipe_.unused[pipe_.free++] = context;
		pipe_.done++;
	}
}

static void send_small(fi_addr_t peer, const void *bytes, size_t len,
		       uint64_t tag)
{
	ssize_t ret;

	while ((ret = fi_tinject(ep, bytes, len, peer, tag)) == -FI_EAGAIN)
		reap();
	must("fi_tinject", ret);
}

static void fill_window(fi_addr_t peer, const struct told *its, size_t size,
			bool writes)
{
	while (size && pipe_.free) {
		struct fi_context2 *context = pipe_.unused[pipe_.free - 1];
		ssize_t ret = writes ? fi_write(ep, memory, size, NULL, peer,
						its->base, its->key, context) :
				       fi_tsend(ep, memory, size, NULL, peer,
						LARGE_TAG, context);

		if (ret == -FI_EAGAIN)
			return;
		must("large", ret);
		pipe_.free--;
	}
}

static void speak(fi_addr_t peer, const struct told *its, size_t size,
		  bool writes)
{
	double begin = now_us(), next = begin + BEGIN_US, rate;

	pipe_.done = 0;
	for (unsigned int i = 0; i < count;) {
		double now;

		fill_window(peer, its, size, writes);
		now = now_us();
		if (now >= next) {
			send_small(peer, &now, sizeof(now), SMALL_TAG);
			next = now + PAUSE_US;
			i++;
		}
		reap();
	}
	rate = (double)pipe_.done * (double)size / (now_us() - begin);
	while (pipe_.free < window)
		reap();
	send_small(peer, &rate, sizeof(rate), END_TAG);
}

/* -- both --------------------------------------------------------------------- */

static void run(bool sends, bool messages, bool remote, int out, int in)
{
	struct told its;
	fi_addr_t peer = meet(out, in, &its);
	double *us = calloc(count, sizeof(*us));
	char mark = 0;

	must("memory", us ? 0 : -FI_ENOMEM);
	for (; pipe_.free < window; pipe_.free++)
		pipe_.unused[pipe_.free] = &pipe_.contexts[pipe_.free];
	for (int writes = !messages; writes <= remote; writes++) {
		for (unsigned int i = 0; i < size_count; i++) {
			if (sends) {
				get(in, &mark, 1);
				speak(peer, &its, sizes[i], writes);
			} else {
				put(out, &mark, 1);
				hear(writes ? "write" : "message", sizes[i],
				     writes, us);
			}
		}
	}
	free(us);
}

static void read_sizes(char *text)
{
	size_count = 0;
	for (char *word = strtok(text, ","); word && size_count < SIZES;
	     word = strtok(NULL, ",")) {
		char *unit;

		sizes[size_count] = strtoul(word, &unit, 0);
		if (*unit == 'K')
			sizes[size_count] <<= 10;
		if (*unit == 'M')
			sizes[size_count] <<= 20;
		size_count++;
	}
}

int main(int argc, char **argv)
{
	bool messages = true, remote = true;
	const char *provider = "weft";
	int opt, up[2], down[2];

	while ((opt = getopt(argc, argv, "mn:p:rs:w:")) != -1) {
		if (opt == 'm')
			remote = false;
		else if (opt == 'r')
			messages = false;
		else if (opt == 'n' && atoi(optarg) > 0)
			count = (unsigned int)atoi(optarg);
		else if (opt == 'w' && atoi(optarg) > 0 &&
			 atoi(optarg) <= WINDOW_MOST)
			window = (unsigned int)atoi(optarg);
		else if (opt == 'p')
			provider = optarg;
		else if (opt == 's')
			read_sizes(optarg);
		else
			return 2;
	}
	longest = 1;
	for (unsigned int i = 0; i < size_count; i++)
		longest = sizes[i] > longest ? sizes[i] : longest;
	bench_find(provider, FI_MSG | FI_RMA, &info, &fabric);
	if (pipe(up) || pipe(down))
		must("pipe", -FI_EMFILE);
	printf("%-9s %9s %9s %9s %9s %9s\n", provider, "behind", "50 %", "90 %",
	       "99 %", "MB/s");
	fflush(stdout);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(false, messages, remote, up[1], down[0]);
		_Exit(0);
	}
	run(true, messages, remote, down[1], up[0]);
	(void)wait(NULL);
	return 0;
}
