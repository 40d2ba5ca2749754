/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processor time of a message, of both ends and the kernel together: two
 * endpoints of one process that take turns. Other work on the machine changes
 * it little, so it can be compared where times cannot. Also for callgrind and
 * strace. It uses libfabric only.
 */
#include "fabric.h"

#include <rdma/fi_tagged.h>

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 7, MAX_WINDOW = 512, BATCH = 32 };

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
	struct fi_context2 contexts[2 * MAX_WINDOW];
	char *memory;
	unsigned long received;
	unsigned long sent; /* that were completed */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct side sides[2];
static size_t size = 64;
static unsigned window = 64;

static void open_side(struct side *side)
{
	bench_domain(fabric, info, 0, &side->domain, &side->av, &side->cq);
	bench_endpoint(side->domain, info, side->av, side->cq, &side->ep);
	side->memory = malloc(2 * size);
	if (!side->memory)
		must("memory", -FI_ENOMEM);
	memset(side->memory, 1, 2 * size);
}

static void explain(struct side *s)
{
	struct fi_cq_err_entry entry = { 0 };

	must("fi_cq_readerr", fi_cq_readerr(s->cq, &entry, 0));
	fprintf(stderr, "rdm_cpu: %s: %s failed: %s (%s)\n",
		info->fabric_attr->prov_name,
		entry.flags & FI_RECV ? "receive" : "send",
		fi_strerror(entry.err),
		fi_cq_strerror(s->cq, entry.prov_errno, entry.err_data, NULL,
			       0));
	exit(1);
}

static void poll_side(struct side *s)
{
	struct fi_cq_tagged_entry got[BATCH];
	ssize_t n = fi_cq_read(s->cq, got, BATCH);

	if (n == -FI_EAGAIN)
		return;
	if (n == -FI_EAVAIL)
		explain(s);
	must("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++) {
		if (got[i].flags & FI_RECV)
			s->received++;
		else
			s->sent++;
	}
}

static void post(struct side *s, unsigned i)
{
	must("fi_trecv", fi_trecv(s->ep, s->memory + size, size, NULL,
				  FI_ADDR_UNSPEC, TAG, 0, &s->contexts[i]));
}

/* True: it will generate a completion. */
static bool send_one(struct side *s, struct side *other, unsigned i)
{
	bool inject = size <= info->tx_attr->inject_size;
	long ret;

	for (;;) {
		ret = inject ? fi_tinject(s->ep, s->memory, size, s->other,
					  TAG) :
			       fi_tsend(s->ep, s->memory, size, NULL, s->other,
					TAG, &s->contexts[MAX_WINDOW + i]);
		if (ret != -FI_EAGAIN)
			break;
		poll_side(s);
		poll_side(other);
	}
	must("send", ret);
	return !inject;
}

/* A window of messages to @to; all of them are received. */
static void play(struct side *from, struct side *to, unsigned count)
{
	unsigned long received = to->received + count, sent = from->sent;

	for (unsigned i = 0; i < count; i++)
		post(to, i);
	for (unsigned i = 0; i < count; i++)
		sent += send_one(from, to, i);
	while (to->received < received || from->sent < sent) {
		poll_side(to);
		poll_side(from);
	}
}

static double cpu_ns(bool kernel)
{
	struct rusage usage;
	struct timeval *tv = kernel ? &usage.ru_stime : &usage.ru_utime;

	getrusage(RUSAGE_SELF, &usage);
	return (double)tv->tv_sec * 1e9 + (double)tv->tv_usec * 1e3;
}

/* The function that callgrind counts. */
__attribute__((noinline)) static void measured(unsigned long messages,
					       bool pingpong)
{
	for (unsigned long i = 0; i < messages; i += window)
		play(&sides[pingpong && i / window % 2],
		     &sides[!(pingpong && i / window % 2)], window);
}

int main(int argc, char **argv)
{
	const char *provider = "weft";
	unsigned long messages = 100000;
	bool pingpong = false;
	double user, kernel;
	int c;

	while ((c = getopt(argc, argv, "p:s:n:w:l")) != -1) {
		if (c == 'p')
			provider = optarg;
		else if (c == 's')
			size = strtoul(optarg, NULL, 10);
		else if (c == 'n')
			messages = strtoul(optarg, NULL, 10);
		else if (c == 'w')
			window = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'l')
			pingpong = true;
		else
			window = 0;
	}
	window = pingpong ? 1 : window;
	if (!window || window > MAX_WINDOW || !size || !messages ||
	    optind < argc) {
		fputs("usage: rdm_cpu [-p PROVIDER] [-s BYTES] [-n MESSAGES] "
		      "[-w WINDOW] [-l]\n"
		      "-l: to and fro, one at a time. FI_WEFT_SHM=0 for "
		      "packets.\n",
		      stderr);
		return 2;
	}
	bench_find(provider, 0, &info, &fabric);
	open_side(&sides[0]);
	open_side(&sides[1]);
	sides[0].other = bench_insert(sides[0].av, sides[1].ep);
	sides[1].other = bench_insert(sides[1].av, sides[0].ep);
	for (int i = 0; i < 20; i++)
		play(&sides[i % 2], &sides[1 - i % 2], window);
	user = cpu_ns(false);
	kernel = cpu_ns(true);
	measured(messages, pingpong);
	user = (cpu_ns(false) - user) / (double)messages;
	kernel = (cpu_ns(true) - kernel) / (double)messages;
	printf("%s %zu %.0f ns of CPU a message (%.0f user, %.0f system)\n",
	       provider, size, user + kernel, user, kernel);
	return 0;
}
