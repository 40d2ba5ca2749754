/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call of libfabric in each function, many times, in one process: for
 * callgrind, which counts the instructions of a function (bench/instructions
 * runs it and divides). Endpoints of one process exchange messages as those of
 * two do, except that copies need no system call. `count time` measures time
 * instead. If COUNT_TRACE names the command weft, `weft trace` records the
 * process meanwhile.
 */
#include "fabric.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The compiler must not merge functions that do the same. */
#if defined(__clang__)
#define STEP __attribute__((noinline))
#else
#define STEP __attribute__((noinline, noclone, no_icf))
#endif

/* The bits that Open MPI's mtl/ofi ignores in every receive. */
#define MASK (3ull << 62)

enum { WARM = 20000, TAG = 7, MAX_PEERS = 1024, KEY = 5, PAGE = 4096 };
enum { BLOCKS = 300 }; /* of `count time`, which shows the fastest */

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
	struct fi_context2 contexts[2];
	uint64_t words[64];
	uint8_t page[PAGE];
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct side here;
static struct side peers[MAX_PEERS];
static uint64_t remote_key, remote_addr;
static uint64_t ignore; /* bits that receives ignore */

static void open_side(struct side *side)
{
	bench_domain(fabric, info, 0, &side->domain, &side->av, &side->cq);
	bench_endpoint(side->domain, info, side->av, side->cq, &side->ep);
}

STEP static long step_trecv(struct side *s, int i)
{
	return fi_trecv(s->ep, s->words, 8, NULL, FI_ADDR_UNSPEC, TAG, ignore,
			&s->contexts[i]);
}

STEP static long step_trecv_late(struct side *s, uint64_t tag)
{
	return fi_trecv(s->ep, s->words, 8, NULL, FI_ADDR_UNSPEC, tag, ignore,
			&s->contexts[0]);
}

STEP static long step_tinject(struct side *s)
{
	return fi_tinject(s->ep, s->words, 8, s->other, TAG);
}

STEP static long step_tsend(struct side *s)
{
	return fi_tsend(s->ep, s->words, 8, NULL, s->other, TAG,
			&s->contexts[0]);
}

STEP static long step_tsend_page(struct side *s)
{
	return fi_tsend(s->ep, s->page, PAGE, NULL, s->other, TAG,
			&s->contexts[0]);
}

STEP static long step_read_received(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(s->cq, &entry, 1);
}

STEP static long step_read_sent(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(s->cq, &entry, 1);
}

STEP static long step_read_idle(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(s->cq, &entry, 1);
}

STEP static long step_write(struct side *s)
{
	return fi_write(s->ep, s->words, 8, NULL, s->other, remote_addr,
			remote_key, &s->contexts[0]);
}

STEP static long step_read(struct side *s)
{
	return fi_read(s->ep, s->words, 8, NULL, s->other, remote_addr,
		       remote_key, &s->contexts[0]);
}

STEP static long step_fetch_add(struct side *s)
{
	return fi_fetch_atomic(s->ep, s->words, 1, NULL, &s->words[1], NULL,
			       s->other, remote_addr, remote_key, FI_UINT64,
			       FI_SUM, &s->contexts[0]);
}

STEP static long step_read_serve(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(s->cq, &entry, 1);
}

STEP static long step_read_fetched(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(s->cq, &entry, 1);
}

/* A completion must come: the other endpoints are driven meanwhile. */
static void until(struct side *s, struct side *other)
{
	struct fi_cq_tagged_entry entry;
	long ret;

	while ((ret = fi_cq_read(s->cq, &entry, 1)) == -FI_EAGAIN)
		fi_cq_read(other->cq, NULL, 0);
	must("fi_cq_read", ret);
}

/* The first message of a pair needs no ring, the second one makes it. */
static void connect_both(struct side *a, struct side *b)
{
	for (int i = 0; i < 2; i++) {
		must("trecv", step_trecv(b, 0));
		while (fi_tinject(a->ep, a->words, 8, a->other, TAG)) {
			fi_cq_read(a->cq, NULL, 0);
			fi_cq_read(b->cq, NULL, 0);
		}
		until(b, a);
	}
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A receive, an inject and a read: the fastest of many blocks, because other
 * work of the machine can only make one slower. */
static void measure(unsigned rounds)
{
	struct side *a = &here, *b = &peers[0];
	double best = 0;

	for (unsigned block = 0; block < BLOCKS; block++) {
		double begin = now_ns(), took;

		for (unsigned i = 0; i < rounds; i++) {
			must("trecv", step_trecv(b, 0));
			must("tinject", step_tinject(a));
			while (step_read_received(b) != 1)
				;
		}
		took = (now_ns() - begin) / rounds;
		if (!best || took < best)
			best = took;
	}
	printf("%.1f ns a message: fi_trecv, fi_tinject, fi_cq_read\n", best);
}

/* Has `weft trace` record this process until the child that is returned ends. */
static pid_t start_trace(const char *weft, unsigned n)
{
	pid_t self = getpid(), child = fork();
	double begin = now_ns();
	char pid[16];

	if (child < 0)
		exit(1);
	if (!child) {
		/* It must not outlive us, however we end. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		snprintf(pid, sizeof(pid), "%d", (int)self);
		execl(weft, weft, "trace", "--most", "1", "--time", "1h",
		      "--output", "/dev/null", pid, (char *)NULL);
		_exit(127);
	}
	/* Endpoints begin to record when they look at the clock. */
	while (now_ns() - begin < 1e9) {
		fi_cq_read(here.cq, NULL, 0);
		for (unsigned i = 0; i < n; i++)
			fi_cq_read(peers[i].cq, NULL, 0);
	}
	if (waitpid(child, NULL, WNOHANG)) {
		fprintf(stderr, "count: %s trace has ended\n", weft);
		exit(1);
	}
	return child;
}

static void messages(unsigned rounds)
{
	struct side *a = &here, *b = &peers[0];
	unsigned i;

	for (i = 0; i < rounds; i++) {
		must("trecv", step_trecv(b, 0));
		must("tinject", step_tinject(a));
		if (step_read_received(b) != 1)
			must("a message did not arrive", -FI_EOTHER);
		step_read_idle(b);
		/* One poll in 32 looks at the clock. With an even number of
		 * polls a round, one of the two steps would always pay for
		 * it. */
		if (i & 1)
			step_read_idle(b);
	}
	for (i = 0; i < rounds; i++) {
		must("trecv", step_trecv(b, 0));
		must("tsend", step_tsend(a));
		if (step_read_sent(a) != 1)
			must("a send did not complete", -FI_EOTHER);
		until(b, a);
	}
}

/* Sends through a device, which does its part in its own time. */
static void posts(unsigned rounds)
{
	struct side *a = &here, *b = &peers[0];
	unsigned i;

	for (i = 0; i < rounds; i++) {
		must("trecv", step_trecv(b, 0));
		must("tinject", step_tinject(a));
		until(b, a);
		must("trecv", step_trecv(b, 0));
		must("tsend", step_tsend(a));
		until(b, a);
		until(a, b);
		must("fi_trecv",
		     fi_trecv(b->ep, b->page, PAGE, NULL, FI_ADDR_UNSPEC, TAG,
			      0, &b->contexts[0]));
		must("tsend", step_tsend_page(a));
		until(b, a);
		until(a, b);
	}
}

/* A receive with a mask, as MPI posts them, behind @depth others. */
static void masked(unsigned rounds, unsigned depth)
{
	struct side *a = &here, *b = &peers[0];
	unsigned i;

	ignore = MASK;
	for (i = 0; i < depth; i++)
		must("fi_trecv",
		     fi_trecv(b->ep, b->words, 8, NULL, FI_ADDR_UNSPEC,
			      TAG + 1 + i, MASK, &b->contexts[1]));
	for (i = 0; i < rounds; i++) {
		must("trecv", step_trecv(b, 0));
		must("tinject", step_tinject(a));
		if (step_read_received(b) != 1)
			must("a message did not arrive", -FI_EOTHER);
	}
	/* The messages arrive first. */
	for (i = 0; i < rounds; i++) {
		must("tinject", step_tinject(a));
		step_read_idle(b);
		must("trecv", step_trecv_late(b, TAG));
		if (step_read_sent(b) != 1)
			must("a message did not arrive", -FI_EOTHER);
	}
}

/* A receive that matches any one of @depth unexpected messages; then another
 * message like it arrives. */
static void unexpected(unsigned rounds, unsigned depth)
{
	struct side *a = &here, *b = &peers[0];
	unsigned i;

	for (i = 0; i < depth; i++) {
		must("fi_tinject", fi_tinject(a->ep, a->words, 8, a->other, i));
		fi_cq_read(b->cq, NULL, 0);
	}
	for (i = 0; i < rounds; i++) {
		unsigned tag = (unsigned)random() % depth;

		must("trecv", step_trecv_late(b, tag));
		if (step_read_sent(b) != 1)
			must("a message did not arrive", -FI_EOTHER);
		must("fi_tinject",
		     fi_tinject(a->ep, a->words, 8, a->other, tag));
		step_read_received(b);
	}
}

static void idle(unsigned rounds)
{
	while (rounds--)
		step_read_idle(&here);
}

static void remote(unsigned rounds)
{
	struct side *a = &here, *b = &peers[0];
	struct fid_mr *mr;
	unsigned i;

	must("fi_mr_reg",
	     fi_mr_reg(b->domain, b->words, sizeof(b->words),
		       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	remote_key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		remote_addr = (uintptr_t)b->words;
	for (i = 0; i < rounds; i++) {
		must("write", step_write(a));
		until(a, b);
		must("read", step_read(a));
		until(a, b);
		must("fetch", step_fetch_add(a));
		step_read_serve(b);
		if (step_read_fetched(a) != 1)
			until(a, b);
	}
	fi_close(&mr->fid);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 10000;
	unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	const char *provider = getenv("COUNT_PROVIDER");
	const char *trace = getenv("COUNT_TRACE");
	unsigned i, depth = 0;
	pid_t recorder = 0;

	if (!strcmp(what, "masked") || !strcmp(what, "unexpected")) {
		depth = argc > 3 ? n : 0;
		n = 1;
	}
	if (n < 1 || n > MAX_PEERS ||
	    (strcmp(what, "messages") && strcmp(what, "idle") &&
	     strcmp(what, "posts") && strcmp(what, "time") &&
	     strcmp(what, "masked") && strcmp(what, "remote") &&
	     (strcmp(what, "unexpected") || !depth))) {
		fputs("usage: count messages|idle|remote|posts|time [ROUNDS "
		      "[PEERS]]\n"
		      "       count masked|unexpected [ROUNDS [DEPTH]]\n",
		      stderr);
		return 2;
	}
	bench_find(provider ? provider : "weft",
		   strcmp(what, "remote") ? 0 : FI_RMA | FI_ATOMIC, &info,
		   &fabric);
	open_side(&here);
	for (i = 0; i < n; i++) {
		open_side(&peers[i]);
		here.other = bench_insert(here.av, peers[i].ep);
		peers[i].other = bench_insert(peers[i].av, here.ep);
		connect_both(&here, &peers[i]);
		connect_both(&peers[i], &here);
	}
	for (i = 0; i < WARM; i++)
		fi_cq_read(here.cq, NULL, 0);
	if (trace)
		recorder = start_trace(trace, n);
	if (!strcmp(what, "messages"))
		messages(rounds);
	else if (!strcmp(what, "posts"))
		posts(rounds);
	else if (!strcmp(what, "masked"))
		masked(rounds, depth);
	else if (!strcmp(what, "unexpected"))
		unexpected(rounds, depth);
	else if (!strcmp(what, "idle"))
		idle(rounds);
	else if (!strcmp(what, "time"))
		measure(rounds);
	else
		remote(rounds);
	if (recorder)
		kill(recorder, SIGKILL);
	return 0;
}
