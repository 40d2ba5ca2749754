/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a receive among thousands: a receive that matches one of many
 * unexpected messages, and a message that matches one of many posted receives,
 * in random order, with the masks that MPI uses. One process with two
 * endpoints, any provider of libfabric (MATCH_PROVIDER); bench/matching runs it
 * for two providers and divides. For each case it prints the time of one
 * receive or message with its completion, in ns: the 5th percentile of the
 * rounds, and the median.
 */
#include "fabric.h"

#include <rdma/fi_tagged.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { BATCH = 16, ROUNDS = 400, MOST = 1 << 16 };

/* The layout of tags: where the number of the message is, and which bits
 * receives ignore. */
struct layout {
	const char *name;
	uint64_t fixed;	 /* communicator and the like */
	uint64_t ignore; /* in every receive */
};

static const struct layout layouts[] = {
	{ "exact", 0, 0 },
	/* mtl/ofi: two or three protocol bits below the communicator's. */
	{ "Open MPI", 5ull << 34, 3ull << 32 },
	/* ch4:ofi: protocol bits at the top, then the context. */
	{ "MPICH", 5ull << 36, 7ull << 61 },
};

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct side here, there;
static struct fi_context2 contexts[MOST];
static uint64_t words[MOST];
static const struct layout *layout;
static unsigned depth;
static unsigned order[MOST];
static uint64_t sent[MOST]; /* its contents; checked */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void open_side(struct side *side)
{
	bench_domain(fabric, info, MOST, &side->domain, &side->av, &side->cq);
	bench_endpoint(side->domain, info, side->av, side->cq, &side->ep);
}

static void open_all(void)
{
	const char *provider = getenv("MATCH_PROVIDER");

	bench_find(provider ? provider : "weft", 0, &info, &fabric);
	open_side(&here);
	open_side(&there);
	here.other = bench_insert(here.av, there.ep);
	there.other = bench_insert(there.av, here.ep);
}

static void send_one(unsigned i)
{
	int ret;

	sent[i]++;
	while ((ret = (int)fi_tinject(here.ep, &sent[i], 8, here.other,
				      layout->fixed | i)) == -FI_EAGAIN) {
		fi_cq_read(here.cq, NULL, 0);
		fi_cq_read(there.cq, NULL, 0);
	}
	must("fi_tinject", ret);
}

static void receive_one(unsigned i)
{
	int ret;

	while ((ret = (int)fi_trecv(there.ep, &words[i], 8, NULL,
				    FI_ADDR_UNSPEC, layout->fixed | i,
				    layout->ignore, &contexts[i])) ==
	       -FI_EAGAIN)
		fi_cq_read(there.cq, NULL, 0);
	must("fi_trecv", ret);
}

/* Reads this many completions. */
static void complete(unsigned count)
{
	struct fi_cq_tagged_entry entries[BATCH];

	while (count) {
		long ret = fi_cq_read(there.cq, entries,
				      count < BATCH ? count : BATCH);

		if (ret == -FI_EAGAIN) {
			fi_cq_read(here.cq, NULL, 0);
			continue;
		}
		must("fi_cq_read", ret);
		for (long k = 0; k < ret; k++) {
			size_t i = (size_t)((struct fi_context2 *)entries[k]
						    .op_context -
					    contexts);

			if (words[i] != sent[i]) {
				fputs("match: the wrong message\n", stderr);
				exit(1);
			}
		}
		count -= (unsigned)ret;
	}
}

static void shuffle(void)
{
	for (unsigned i = depth - 1; i > 0; i--) {
		unsigned j = (unsigned)random() % (i + 1);
		unsigned other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
}

/* Lets the receiver read all messages from the ring. */
static void settle(void)
{
	for (int i = 0; i < 64; i++)
		fi_cq_read(there.cq, NULL, 0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(bool unexpected)
{
	static double times[ROUNDS];
	unsigned at = 0, batch = depth < BATCH ? depth : BATCH;

	for (unsigned i = 0; i < depth; i++) {
		order[i] = i;
		if (!unexpected) {
			receive_one(i);
			continue;
		}
		send_one(i);
		if (i % BATCH == 0)
			settle();
	}
	shuffle();
	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned *first = &order[at];
		uint64_t begin;

		for (unsigned k = 0; !unexpected && k < batch; k++)
			send_one(first[k]);
		begin = now();
		for (unsigned k = 0; unexpected && k < batch; k++)
			receive_one(first[k]);
		complete(batch);
		times[round] = (double)(now() - begin) / batch;
		for (unsigned k = 0; k < batch; k++) {
			if (unexpected)
				send_one(first[k]);
			else
				receive_one(first[k]);
		}
		settle();
		at += batch;
		if (at + batch > depth) {
			at = 0;
			shuffle();
		}
	}
	for (unsigned i = 0; i < depth; i++) {
		if (unexpected)
			receive_one(i);
		else
			send_one(i);
		if (i % BATCH == BATCH - 1 || i == depth - 1)
			complete(i % BATCH + 1);
	}
	qsort(times, ROUNDS, sizeof(times[0]), compare);
	printf("%s\t%s\t%u\t%.1f\t%.1f\n", layout->name,
	       unexpected ? "unexpected" : "posted", depth, times[ROUNDS / 20],
	       times[ROUNDS / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	open_all();
	for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
		layout = &layouts[l];
		for (int i = 1; i < argc; i++) {
			depth = (unsigned)atoi(argv[i]);
			if (depth < 1 || depth > MOST)
				return 2;
			measure(true);
			measure(false);
		}
	}
	return 0;
}
