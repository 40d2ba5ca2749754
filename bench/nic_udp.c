/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC compared with libfabric's tcp and udp;ofi_rxd: latency and
 * rate of 64 bytes, bandwidth of 1 MiB, on loopback and between two network
 * namespaces joined by a veth link, without and with packet loss. They take
 * turns, each with fresh processes; medians and the ratio to tcp are shown.
 */
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "duel.h"
#include "loss.h"

#define TURNS_MOST 31
#define PATIENCE 60 /* seconds */

struct contender {
	const char *name;
	const char *engine;
	bool no_loss; /* does not survive it */
	unsigned rounds;
	unsigned larges;
	bool skip;
	double latency[TURNS_MOST];
	double bandwidth[TURNS_MOST];
	double rate[TURNS_MOST];
	int turns;
};

static struct contender contenders[] = {
	{ .name = "weft", .engine = "weft", .rounds = 10000, .larges = 1000 },
	{ .name = "tcp",
	  .engine = "tcp;ofi_rxm",
	  .rounds = 10000,
	  .larges = 1000 },
	{ .name = "udp;ofi_rxd",
	  .engine = "udp;ofi_rxd",
	  .no_loss = true,
	  .rounds = 5000,
	  .larges = 100 },
};
#define CONTENDERS (sizeof(contenders) / sizeof(contenders[0]))

void duel_meet(struct duel *duel, int me, unsigned step,
	       void (*idle)(void *arg), void *arg)
{
	duel->step[me] = step;
	while (duel->step[!me] < step && !duel->failed)
		idle(arg);
}

/* -- places ----------------------------------------------------------------- */

struct place {
	const char *name;
	const char *node[2];
	bool veth;
	bool one_by_one; /* no large packets, and some are lost */
	uint32_t loss;	 /* of a million */
};

static const struct place places[] = {
	{ "loopback", { "127.0.0.1", "127.0.0.1" }, false, false, 0 },
	{ "veth", { "10.98.0.1", "10.98.0.2" }, true, false, 0 },
	/* The same link without segmentation offload: compare these two. */
	{ "loss 0 %", { "10.98.0.1", "10.98.0.2" }, true, true, 0 },
	{ "loss 1 %", { "10.98.0.1", "10.98.0.2" }, true, true, 10000 },
	{ "loss 5 %", { "10.98.0.1", "10.98.0.2" }, true, true, 50000 },
};

static int shell(const char *format, int number)
{
	char command[256];

	snprintf(command, sizeof(command), format, number);
	return system(command);
}

/* Side 0 creates the link when side 1 has a namespace, and gives it one end. */
static int enter(int me, _Atomic int *ready, pid_t other)
{
	if (unshare(CLONE_NEWNET) || shell("ip link set lo up", 0))
		return 1;
	if (!me) {
		while (!*ready)
			usleep(1000);
		if (shell("ip link add v0 type veth peer name v1", 0) ||
		    shell("ip link set v1 netns %d", other) ||
		    shell("ip addr add 10.98.0.1/24 dev v0", 0) ||
		    shell("ip link set v0 up", 0))
			return 1;
		*ready = 2;
		while (*ready != 3)
			usleep(1000);
		return 0;
	}
	*ready = 1;
	while (*ready != 2)
		usleep(1000);
	if (shell("ip addr add 10.98.0.2/24 dev v1", 0) ||
	    shell("ip link set v1 up", 0))
		return 1;
	/* Waits until the link is up at both ends. */
	usleep(50000);
	*ready = 3;
	return 0;
}

/* Until this process ends. */
static int lose(const struct place *place, int me)
{
	int fd;

	if (!place->one_by_one)
		return 0;
	fd = loss_attach(me ? "v1" : "v0", place->loss);
	if (fd < 0)
		fprintf(stderr, "loss: %s\n", strerror(-fd));
	return fd < 0;
}

static void pin(int me)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int side_main(struct duel *duel, int me, const struct place *place,
		     _Atomic int *ready, pid_t other)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PATIENCE);
	if (place->veth && (enter(me, ready, other) || lose(place, me))) {
		duel->failed = 1;
		return 1;
	}
	pin(me);
	if (!strcmp(duel->engine, "weft"))
		return duel_weft(duel, me);
	return duel_fabric(duel, me);
}

static int run_duel(struct duel *duel, const struct place *place)
{
	_Atomic int *ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[2];
	int failed = 0;

	if (ready == MAP_FAILED)
		return 1;
	pids[1] = fork();
	if (!pids[1])
		_exit(side_main(duel, 1, place, ready, 0));
	pids[0] = fork();
	if (!pids[0])
		_exit(side_main(duel, 0, place, ready, pids[1]));
	for (int i = 0; i < 2; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status) {
			duel->failed = 1;
			failed = 1;
		}
	}
	munmap((void *)ready, 4096);
	return failed;
}

/* -- results ---------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return n ? values[n / 2] : 0;
}

static void print(const struct place *place)
{
	double tcp[3] = { 0, 0, 0 };

	for (size_t i = 0; i < CONTENDERS; i++) {
		struct contender *c = &contenders[i];

		if (strcmp(c->name, "tcp"))
			continue;
		tcp[0] = median(c->latency, c->turns);
		tcp[1] = median(c->bandwidth, c->turns);
		tcp[2] = median(c->rate, c->turns);
	}
	printf("\n%-18s %9s %6s %9s %6s %9s %6s\n", place->name, "64 B us",
	       "/tcp", "1 MiB MB/s", "/tcp", "64 B M/s", "/tcp");
	for (size_t i = 0; i < CONTENDERS; i++) {
		struct contender *c = &contenders[i];
		double got[3] = { median(c->latency, c->turns),
				  median(c->bandwidth, c->turns),
				  median(c->rate, c->turns) };

		if (!c->turns) {
			printf("%-18s %9s\n", c->name, "-");
			continue;
		}
		printf("%-18s %9.2f %6.2f %10.0f %6.2f %9.3f %6.2f\n", c->name,
		       got[0], tcp[0] ? got[0] / tcp[0] : 0, got[1],
		       tcp[1] ? got[1] / tcp[1] : 0, got[2],
		       tcp[2] ? got[2] / tcp[2] : 0);
	}
	fflush(stdout);
}

static bool yields;

static void run_place(const struct place *place, int turns)
{
	struct duel *duel = mmap(NULL, sizeof(*duel), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (duel == MAP_FAILED)
		return;
	for (size_t i = 0; i < CONTENDERS; i++)
		contenders[i].turns = 0;
	for (int t = 0; t < turns; t++) {
		for (size_t i = 0; i < CONTENDERS; i++) {
			struct contender *c = &contenders[i];

			if (c->skip || (c->no_loss && place->loss))
				continue;
			if (isatty(STDERR_FILENO))
				fprintf(stderr, "\r%s: turn %d of %d: %-20s",
					place->name, t + 1, turns, c->name);
			*duel = (struct duel){
				.engine = c->engine,
				.node = { place->node[0], place->node[1] },
				.yield = yields,
				.rounds = place->loss ? c->rounds / 10 :
							c->rounds,
				.larges = c->larges
			};
			if (run_duel(duel, place))
				continue;
			c->latency[c->turns] = duel->latency_us;
			c->bandwidth[c->turns] = duel->bandwidth;
			c->rate[c->turns] = duel->rate;
			c->turns++;
		}
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%60s\r", "");
	print(place);
	munmap(duel, sizeof(*duel));
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: nic_udp [-r TURNS] [-w PLACE] [-e NAME]\n"
		"The software NIC beside libfabric's tcp and udp;ofi_rxd.\n"
		"  -r, --turns N    medians of so many (5)\n"
		"  -w, --where NAME only there: loopback, veth, loss 0 %%, "
		"loss 1 %%, loss 5 %%\n                   (names that begin "
		"so); all but the first need root\n"
		"  -e, --only NAME  only contenders whose name begins so\n"
		"  -n, --scale N    messages, in percent of the usual\n"
		"  -y, --yield      give the processor away while nothing "
		"comes: for a\n                   machine that others use, "
		"too\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "turns", required_argument, NULL, 'r' },
		{ "where", required_argument, NULL, 'w' },
		{ "only", required_argument, NULL, 'e' },
		{ "scale", required_argument, NULL, 'n' },
		{ "yield", no_argument, NULL, 'y' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *where = NULL, *only = NULL;
	int turns = 5, scale = 100, c;

	while ((c = getopt_long(argc, argv, "r:w:e:n:yh", options, NULL)) !=
	       -1) {
		if (c == 'r')
			turns = atoi(optarg);
		else if (c == 'w')
			where = optarg;
		else if (c == 'e')
			only = optarg;
		else if (c == 'n')
			scale = atoi(optarg);
		else if (c == 'y')
			yields = true;
		else {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (turns < 1 || turns > TURNS_MOST)
		turns = 5;
	if (scale < 1 || scale > 1000)
		scale = 100;
	for (size_t i = 0; i < CONTENDERS; i++) {
		contenders[i].rounds =
			contenders[i].rounds * (unsigned)scale / 100;
		contenders[i].larges =
			contenders[i].larges * (unsigned)scale / 100;
	}
	for (size_t i = 0; only && i < CONTENDERS; i++)
		contenders[i].skip =
			strncmp(contenders[i].name, only, strlen(only)) != 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (where && strncmp(where, places[i].name, strlen(where)))
			continue;
		if (places[i].veth && geteuid()) {
			printf("\n%s: needs root\n", places[i].name);
			continue;
		}
		run_place(&places[i], turns);
	}
	return 0;
}
