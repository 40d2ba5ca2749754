/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint and very many peers elsewhere: their cost for the endpoint. The
 * peers are endpoints of a few other processes. The hub sends a message to
 * each, gets an answer from each, and prints the time, its memory and its
 * descriptors; then the same again, when all are connected. It uses libfabric
 * only.
 */
#include "fabric.h"

#include <rdma/fi_tagged.h>

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 64, SIZE = 64, EACH = 125, BATCH = 32, ROUNDS = 3 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static unsigned int count = 1000;

static void *must_have(void *memory)
{
	if (!memory)
		must("memory", -FI_ENOMEM);
	return memory;
}

static struct fid_ep *open_ep(char name[NAME])
{
	size_t len = NAME;
	struct fid_ep *ep;

	bench_endpoint(domain, info, av, cq, &ep);
	memset(name, 0, NAME);
	must("fi_getname", fi_getname(&ep->fid, name, &len));
	return ep;
}

/* Receives that have completed; *@sent counts sends. */
static unsigned int poll_cq(uint64_t *tags, unsigned int *sent)
{
	struct fi_cq_tagged_entry got[BATCH];
	ssize_t n = fi_cq_read(cq, got, BATCH);
	unsigned int received = 0;

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry entry = { 0 };

		must("fi_cq_readerr", fi_cq_readerr(cq, &entry, 0));
		must("completion", -entry.err);
	}
	must("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++) {
		if (got[i].flags & FI_RECV)
			tags[received++] = got[i].tag;
		else
			++*sent;
	}
	return received;
}

static void send_to(struct fid_ep *ep, fi_addr_t to, const void *bytes,
		    uint64_t tag, struct fi_context2 *context)
{
	uint64_t tags[BATCH];
	unsigned int sent = 0;
	ssize_t ret;

	while ((ret = fi_tsend(ep, bytes, SIZE, NULL, to, tag, context)) ==
	       -FI_EAGAIN)
		(void)!poll_cq(tags, &sent);
	must("fi_tsend", ret);
}

/* -- the peers ---------------------------------------------------------------- */

/* Peers from @first on, @mine of them, each of which answers every message, as
 * long as the hub is there. */
static void serve(unsigned int mine, unsigned int first, int out, int in)
{
	struct fid_ep **eps = must_have(calloc(mine, sizeof(*eps)));
	struct fi_context2 *contexts =
		must_have(calloc(2 * mine, sizeof(*contexts)));
	static char bytes[SIZE], into[SIZE], name[NAME];
	uint64_t tags[BATCH];
	unsigned int sent = 0;
	fi_addr_t hub;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_domain(fabric, info, 0, &domain, &av, &cq);
	for (unsigned int i = 0; i < mine; i++) {
		eps[i] = open_ep(name);
		must("write", write(out, name, NAME) == NAME ? 0 : -FI_EIO);
	}
	must("read", read(in, name, NAME) == NAME ? 0 : -FI_EIO);
	must("fi_av_insert", fi_av_insert(av, name, 1, &hub, 0, NULL));
	for (unsigned int i = 0; i < mine; i++)
		must("fi_trecv", fi_trecv(eps[i], into, SIZE, NULL, hub,
					  first + i, 0, &contexts[i]));
	for (;;) {
		unsigned int n = poll_cq(tags, &sent);

		for (unsigned int i = 0; i < n; i++) {
			unsigned int at = (unsigned int)tags[i] - first;

			must("fi_trecv",
			     fi_trecv(eps[at], into, SIZE, NULL, hub, tags[i],
				      0, &contexts[at]));
			send_to(eps[at], hub, bytes, tags[i],
				&contexts[mine + at]);
		}
	}
}

/* -- the hub ------------------------------------------------------------------ */

static unsigned int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 3 ? n - 3 : 0; /* ".", ".." and its own */
}

static unsigned long resident_kib(void)
{
	FILE *in = fopen("/proc/self/statm", "r");
	unsigned long all, resident = 0;

	if (in && fscanf(in, "%lu %lu", &all, &resident) != 2)
		resident = 0;
	if (in)
		fclose(in);
	return resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static void talk_to_all(struct fid_ep *ep, const fi_addr_t *peers,
			struct fi_context2 *contexts, char *into)
{
	static char bytes[SIZE];
	uint64_t tags[BATCH];
	unsigned int sent = 0, received = 0;

	for (unsigned int i = 0; i < count; i++)
		must("fi_trecv", fi_trecv(ep, into + (size_t)i * SIZE, SIZE,
					  NULL, peers[i], i, 0, &contexts[i]));
	for (unsigned int i = 0; i < count; i++)
		send_to(ep, peers[i], bytes, i, &contexts[count + i]);
	while (received < count)
		received += poll_cq(tags, &sent);
}

static void run_hub(struct fid_ep *ep, const char *names)
{
	fi_addr_t *peers = must_have(calloc(count, sizeof(*peers)));
	struct fi_context2 *contexts =
		must_have(calloc(2 * (size_t)count, sizeof(*contexts)));
	char *into = must_have(malloc((size_t)count * SIZE));
	unsigned long kib = resident_kib();
	unsigned int fds = descriptors();

	for (unsigned int i = 0; i < count; i++)
		must("fi_av_insert", fi_av_insert(av, names + (size_t)i * NAME,
						  1, &peers[i], 0, NULL));
	printf("%s, %u peers\n", info->fabric_attr->prov_name, count);
	printf("  before          %8lu KiB resident %6u descriptors\n", kib,
	       fds);
	for (int round = 0; round < ROUNDS; round++) {
		double begin = now_ms(), cpu = cpu_ms();

		talk_to_all(ep, peers, contexts, into);
		cpu = cpu_ms() - cpu;
		printf("  round %d %8.1f ms, %.1f of CPU; %lu KiB, %.1f a peer; %u "
		       "descriptors, %.2f a peer\n",
		       round + 1, now_ms() - begin, cpu, resident_kib(),
		       (double)(resident_kib() - kib) / count, descriptors(),
		       (double)(descriptors() - fds) / count);
	}
}

int main(int argc, char **argv)
{
	unsigned int made = 0, processes;
	const char *provider = "weft";
	char name[NAME], *names;
	struct fid_ep *ep;
	struct rlimit limit;
	int opt, up[2], (*down)[2];

	while ((opt = getopt(argc, argv, "n:p:")) != -1) {
		if (opt == 'n')
			count = (unsigned int)atoi(optarg);
		else if (opt == 'p')
			provider = optarg;
		else
			return 2;
	}
	if (!count)
		return 2;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	processes = (count + EACH - 1) / EACH;
	names = must_have(calloc(count, NAME));
	down = must_have(calloc(processes, sizeof(*down)));
	bench_find(provider, 0, &info, &fabric);
	for (unsigned int i = 0; i < processes; i++) {
		unsigned int first = i * EACH;
		unsigned int mine = count - first < EACH ? count - first : EACH;

		if (pipe(up) || pipe(down[i]))
			must("pipe", -FI_EMFILE);
		if (!fork())
			serve(mine, first, up[1], down[i][0]);
		close(up[1]);
		for (; made < first + mine; made++) {
			char *to = names + (size_t)made * NAME;
			ssize_t got = 0, n;

			while (got < NAME && (n = read(up[0], to + got,
						       NAME - (size_t)got)) > 0)
				got += n;
			must("a peer", got == NAME ? 0 : -FI_EIO);
		}
		close(up[0]);
	}
	bench_domain(fabric, info, 0, &domain, &av, &cq);
	ep = open_ep(name);
	for (unsigned int i = 0; i < processes; i++)
		must("write",
		     write(down[i][1], name, NAME) == NAME ? 0 : -FI_EIO);
	run_hub(ep, names);
	fflush(stdout);
	_exit(0);
}
