/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program measures what choice by cost gains: it runs asynchronous jobs of
 * several sizes and numbers, with drivers that are considered
 * (WD_COMP_CONSIDER) beside the libraries alone, on the same data. Four
 * processes take turns, batch by batch: the libraries twice, so that the noise
 * of the machine is seen, the choice, and the considered drivers alone. The
 * time of a batch is the mean of all batches, with those that went to a slower
 * driver so that it stays known. All outputs of the last batch are compared.
 *
 *	choice [-d DRIVERS | -p PROFILE] [-m MIB] [-r ROUNDS] [-s BYTES]
 *
 * With -p the driver is choice_device.c, a device that is a clock: "slow" is always
 * slower than the libraries, "batch" takes 300 us for a batch, however large,
 * and "fast" is always faster.
 *
 * Columns: GB of plain data a second by the libraries, by the drivers alone and by
 * choice, the last as a part of the better of the others, the libraries' second
 * process as a part of their first, and which part of the jobs the considered
 * drivers got.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#include "tools/comp/bench.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CORPUS (64u << 20)
#define BATCH_S 0.02 /* of a turn, at least */
#define LEARN 12     /* batches that are not measured, and as many jobs alone */

enum who { LIBRARIES, AGAIN, CHOICE, ALONE, WORKERS };

struct cell {
	size_t size, pieces;
	bool inflate;
	bool fresh; /* the first turn */
};

struct answer {
	double seconds;
	unsigned int batches;
	unsigned int jobs, considered;
	bool right;
};

struct worker {
	int to, from;
	pid_t pid;
	struct answer sum;
};

static const size_t sizes[] = { 4096, 65536, 1u << 20 };
static const size_t numbers[] = { 1, 16, 64, 256, 1024, 4096 };

/* These are the profiles of choice_device.c. */
static const struct profile {
	const char *name, *delay_us, *gather_us, *ps;
} profiles[] = {
	{ "slow", "2000", "100", "2000" },
	{ "batch", "300", "30", "100" },
	{ "fast", "0", "0", "100" },
};

static const char *drivers = "cuda";
static size_t most = (size_t)256 << 20;
static unsigned int rounds = 5;
static size_t only; /* this size; 0: all */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *why)
{
	fprintf(stderr, "choice: %s\n", why);
	exit(1);
}

static void *take(size_t len)
{
	void *at = malloc(len);

	if (!at)
		die("no memory");
	return at;
}

/* -- a worker -------------------------------------------------------------- */

struct piece {
	struct wd_comp_ctx ctx;
	const uint8_t *plain;
	uint8_t *packed, *out;
	size_t packed_len, room;
};

static uint8_t *corpus;
static size_t corpus_len;
static struct piece *pieces;
static struct cell cell;
static unsigned int back;

static void is_back(struct wd_comp_ctx *ctx, int result, void *arg)
{
	(void)ctx;
	(void)arg;
	if (result)
		die("a job failed");
	back++;
}

static void prepare(void)
{
	for (size_t i = 0; i < cell.pieces; i++) {
		struct piece *p = &pieces[i];
		size_t in = cell.size;

		*p = (struct piece){ .ctx = { .comp_level = 6 } };
		p->room = p->packed_len =
			wd_alg_deflate_bound(&p->ctx, cell.size);
		p->plain =
			corpus + i * cell.size % (corpus_len - cell.size + 1);
		p->out = take(p->room);
		p->packed = take(p->room);
		if (wd_alg_deflate(&p->ctx, p->plain, &in, p->packed,
				   &p->packed_len))
			die("no data to decompress");
		memset(p->out, 0, p->room);
	}
}

static void release(void)
{
	for (size_t i = 0; i < cell.pieces; i++) {
		free(pieces[i].out);
		free(pieces[i].packed);
	}
}

static void submit(struct piece *p)
{
	int ret;

	p->ctx = (struct wd_comp_ctx){ .comp_level = 1 };
	ret = cell.inflate ?
		      wd_alg_async_inflate(&p->ctx, is_back, NULL, p->packed,
					   p->packed_len, p->out, cell.size) :
		      wd_alg_async_deflate(&p->ctx, is_back, NULL, p->plain,
					   cell.size, p->out, p->room);
	if (ret)
		die("a job was refused");
}

static void batch(size_t n)
{
	back = 0;
	for (size_t i = 0; i < n; i++)
		submit(&pieces[i]);
	while (back < n) {
		if (!wd_alg_poll(0))
			wd_alg_wait(1000);
	}
}

static bool is_right(void)
{
	uint8_t *plain = take(cell.size);
	bool right = true;

	for (size_t i = 0; i < cell.pieces && right; i++) {
		struct piece *p = &pieces[i];
		struct wd_comp_ctx ctx = { .driver = "zlib" };
		size_t in = p->ctx.out_len, len = cell.size;

		if (!cell.inflate &&
		    wd_alg_inflate(&ctx, p->out, &in, plain, &len))
			right = false;
		right = right && len == cell.size &&
			!memcmp(cell.inflate ? p->out : plain, p->plain,
				cell.size);
	}
	free(plain);
	return right;
}

static bool is_considered(const char *name)
{
	return strstr(drivers, name);
}

static struct answer turn(void)
{
	struct answer a = { 0 };
	double start;

	if (cell.fresh) {
		prepare();
		for (int i = 0; i < 2 * LEARN; i++)
			batch(1);
		for (int i = 0; i < LEARN; i++)
			batch(cell.pieces);
	}
	start = now();
	do {
		batch(cell.pieces);
		a.batches++;
		a.seconds = now() - start;
		for (size_t i = 0; i < cell.pieces; i++)
			a.considered += is_considered(pieces[i].ctx.used);
	} while (a.seconds < BATCH_S);
	a.jobs = a.batches * (unsigned int)cell.pieces;
	a.right = is_right();
	return a;
}

static int work(void)
{
	struct cell next;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	corpus = take(CORPUS);
	corpus_len = wf_tools_comp_corpus(corpus, CORPUS);
	pieces = calloc(numbers[COUNT(numbers) - 1], sizeof(*pieces));
	if (corpus_len < (2u << 20) || !pieces)
		return 1;
	while (read(STDIN_FILENO, &next, sizeof(next)) == sizeof(next)) {
		struct answer a;

		if (next.fresh)
			release();
		cell = next;
		a = turn();
		if (write(STDOUT_FILENO, &a, sizeof(a)) != sizeof(a))
			return 1;
	}
	return 0;
}

/* -- the parent ------------------------------------------------------------ */

static void start(struct worker *w, enum who who)
{
	int in[2], out[2];

	if (pipe(in) || pipe(out))
		die("no pipe");
	w->pid = fork();
	if (w->pid < 0)
		die("no process");
	if (!w->pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		unsetenv("WD_COMP_CONSIDER");
		unsetenv("WD_COMP_DRIVER");
		if (who == CHOICE)
			setenv("WD_COMP_CONSIDER", drivers, 1);
		if (who == ALONE)
			setenv("WD_COMP_DRIVER", drivers, 1);
		execl("/proc/self/exe", "choice", "-d", drivers, "-w",
		      (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
}

static void ask(struct worker *w, const struct cell *c)
{
	struct answer a;

	if (write(w->to, c, sizeof(*c)) != sizeof(*c) ||
	    read(w->from, &a, sizeof(a)) != sizeof(a))
		die("a worker has ended");
	if (c->fresh)
		w->sum = (struct answer){ .right = true };
	w->sum.seconds += a.seconds;
	w->sum.batches += a.batches;
	w->sum.jobs += a.jobs;
	w->sum.considered += a.considered;
	w->sum.right = w->sum.right && a.right;
}

static double speed(const struct worker *w, const struct cell *c)
{
	return (double)c->size * (double)c->pieces * w->sum.batches /
	       w->sum.seconds / 1e9;
}

static void measure(struct worker *w, struct cell c, double *worst,
		    double *noise)
{
	double base, again, by, alone, best;

	for (unsigned int i = 0; i < rounds; i++) {
		c.fresh = !i;
		for (int k = 0; k < WORKERS; k++)
			ask(&w[k], &c);
	}
	base = speed(&w[LIBRARIES], &c);
	again = speed(&w[AGAIN], &c);
	by = speed(&w[CHOICE], &c);
	alone = speed(&w[ALONE], &c);
	best = alone > base ? alone : base;
	printf("%-8s%9zu%8zu%10.3f%10.3f%10.3f%9.2f%9.2f%8.1f %%%s\n",
	       c.inflate ? "inflate" : "deflate", c.size, c.pieces, base, alone,
	       by, by / best, again / base,
	       100.0 * w[CHOICE].sum.considered / w[CHOICE].sum.jobs,
	       w[CHOICE].sum.right && w[ALONE].sum.right ? "" :
							   "  WRONG BYTES");
	fflush(stdout);
	if (by / best < *worst)
		*worst = by / best;
	if (again / base < *noise)
		*noise = again / base;
}

static void measure_all(void)
{
	struct worker w[WORKERS];
	double worst = 1e9, noise = 1e9;

	for (int k = 0; k < WORKERS; k++)
		start(&w[k], (enum who)k);
	printf("%-8s%9s%8s%10s%10s%10s%9s%9s%10s\n", "", "bytes", "pieces",
	       "GB/s", "drivers", "choice", "part", "noise", drivers);
	for (int inflate = 1; inflate >= 0; inflate--)
		for (size_t s = 0; s < COUNT(sizes); s++)
			for (size_t n = 0; n < COUNT(numbers); n++)
				if (sizes[s] * numbers[n] <= most &&
				    (!only || sizes[s] == only))
					measure(w,
						(struct cell){ sizes[s],
							       numbers[n],
							       inflate, true },
						&worst, &noise);
	printf("worst: %.2f by choice, %.2f by the libraries' second process\n",
	       worst, noise);
	for (int k = 0; k < WORKERS; k++) {
		close(w[k].to);
		waitpid(w[k].pid, NULL, 0);
	}
}

/* The driver is beside this program. */
static void use_profile(const char *name)
{
	const struct profile *p = NULL;
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	for (size_t i = 0; i < COUNT(profiles); i++) {
		if (!strcmp(profiles[i].name, name))
			p = &profiles[i];
	}
	if (!p || len < 0)
		die("no such profile");
	path[len] = 0;
	*strrchr(path, '/') = 0;
	setenv("WD_DRIVER_PATH", path, 1);
	setenv("CHOICE_DELAY_US", p->delay_us, 1);
	setenv("CHOICE_GATHER_US", p->gather_us, 1);
	setenv("CHOICE_PS", p->ps, 1);
	drivers = "clock";
}

int main(int argc, char **argv)
{
	bool worker = false;
	int c;

	while ((c = getopt(argc, argv, "d:m:p:r:s:w")) != -1) {
		switch (c) {
		case 'd':
			drivers = optarg;
			break;
		case 'm':
			most = strtoul(optarg, NULL, 0) << 20;
			break;
		case 'p':
			use_profile(optarg);
			break;
		case 'r':
			rounds = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 's':
			only = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			worker = true;
			break;
		default:
			fprintf(stderr,
				"usage: choice [-d DRIVERS | -p PROFILE] "
				"[-m MIB] [-r ROUNDS] [-s BYTES]\n");
			return 2;
		}
	}
	if (worker)
		return work();
	if (!rounds || !most)
		die("nothing to measure");
	measure_all();
	return 0;
}
