/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The overhead of a call to a driver: the driver's work is the same function,
 * called directly, as a library's deflate(), by a submit() that finishes the
 * job, by submit() and poll(), and by the library after cost has decided against a
 * device that takes 100 us. The work is a copy of SIZE bytes, so that
 * sizes can be compared, or with `--work DRIVER` what that library does at level
 * 1; the variants take turns, and medians are shown. `--count WAY SIZE N` makes N
 * calls and prints nothing, for `valgrind --tool=callgrind
 * --toggle-collect=measured`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/wd_comp_drv.h>

#define ROUNDS 41
#define ROUND_NS 1e6
#define LEVEL 1
#define LARGEST (1u << 20)
#define ROOM(size) ((size) + (size) / 8 + 64)

enum way { DIRECT, LIBRARY, AT_ONCE, POLLED, CHOSEN, WAYS };

static const char *const names[WAYS] = { "direct", "library", "submit",
					 "polled", "chosen" };

static uint8_t *in, *out;
static int (*real)(struct wd_comp_job *job); /* of --work */

/* Produces little output: data that does not shrink would be stored instead. */
__attribute__((noinline)) static int work(struct wd_comp_job *job)
{
	if (real)
		return real(job);
	memcpy(job->dst, job->src, job->src_len);
	job->consumed = job->src_len;
	job->produced = 1;
	return 0;
}

/* -- drivers ---------------------------------------------------------------- */

struct channel {
	struct wd_comp_job *job;
};

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	*chan = calloc(1, sizeof(struct channel));
	return *chan ? 0 : -1;
}

static void close_chan(void *chan)
{
	free(chan);
}

static int submit_done(void *chan, struct wd_comp_job *const *jobs,
		       unsigned int n)
{
	(void)chan;
	for (unsigned int i = 0; i < n; i++) {
		jobs[i]->result = work(jobs[i]);
		jobs[i]->done = 1;
	}
	return (int)n;
}

static int submit_one(void *chan, struct wd_comp_job *const *jobs,
		      unsigned int n)
{
	struct channel *c = chan;

	(void)n;
	c->job = jobs[0];
	return 1;
}

static int poll_one(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct channel *c = chan;

	(void)n;
	if (!c->job)
		return 0;
	done[0] = c->job;
	done[0]->result = work(done[0]);
	c->job = NULL;
	return 1;
}

static int poll_none(void *chan, struct wd_comp_job **done, unsigned int n)
{
	(void)chan;
	(void)done;
	(void)n;
	return 0;
}

static int poll_slow(void *chan, struct wd_comp_job **done, unsigned int n)
{
	static const struct timespec slow = { .tv_nsec = 100000 };

	nanosleep(&slow, NULL);
	return poll_one(chan, done, n);
}

#define COMMON                                                                 \
	.node = -1, .can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,                \
	.levels = 0x3fe, .min_window = 9, .version = WD_COMP_DRV_VERSION,      \
	.size = sizeof(struct wd_alg_comp)

static const struct wd_alg_comp drivers[WAYS] = {
	[LIBRARY] = { .name = "library",
		      .priority = 2000,
		      COMMON,
		      .deflate = work },
	[AT_ONCE] = { .name = "submit",
		      COMMON,
		      .open_chan = open_chan,
		      .close_chan = close_chan,
		      .submit = submit_done,
		      .poll = poll_none },
	[POLLED] = { .name = "polled",
		     COMMON,
		     .open_chan = open_chan,
		     .close_chan = close_chan,
		     .submit = submit_one,
		     .poll = poll_one },
	/* Before all others, if no driver is named. */
	[CHOSEN] = { .name = "chosen",
		     .priority = 3000,
		     COMMON,
		     .open_chan = open_chan,
		     .close_chan = close_chan,
		     .submit = submit_one,
		     .poll = poll_slow },
};

/* -- measuring -------------------------------------------------------------- */

static void call(enum way way, size_t size)
{
	struct wd_comp_ctx ctx = { .comp_level = LEVEL,
				   .driver =
					   way == CHOSEN ? NULL : names[way] };
	struct wd_comp_job job = { .src = in,
				   .src_len = size,
				   .dst = out,
				   .dst_len = ROOM(size),
				   .level = LEVEL,
				   .window = 15 };
	size_t in_len = size, out_len = ROOM(size);

	if (way == DIRECT ? work(&job) :
			    wd_alg_deflate(&ctx, in, &in_len, out, &out_len)) {
		fprintf(stderr, "wd_call: a call failed\n");
		exit(1);
	}
}

__attribute__((noinline)) static void measured(enum way way, size_t size,
					       unsigned long n)
{
	while (n--)
		call(way, size);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void compare(size_t size)
{
	static double ns[WAYS][ROUNDS];
	unsigned long n = 1;
	double start, direct;

	do {
		n *= 2;
		start = now();
		measured(DIRECT, size, n);
	} while (now() - start < ROUND_NS);
	for (int round = 0; round < ROUNDS; round++) {
		for (int way = 0; way < WAYS; way++) {
			start = now();
			measured(way, size, n);
			ns[way][round] = (now() - start) / (double)n;
		}
	}
	for (int way = 0; way < WAYS; way++)
		qsort(ns[way], ROUNDS, sizeof(ns[way][0]), by_value);
	direct = ns[DIRECT][ROUNDS / 2];
	printf("%8zu %10.1f", size, direct);
	for (int way = LIBRARY; way < WAYS; way++)
		printf(" %+10.1f", ns[way][ROUNDS / 2] - direct);
	if (real)
		printf("  %+.2f %%",
		       100 * (ns[POLLED][ROUNDS / 2] / direct - 1));
	printf("\n");
}

/* Words of a few lengths, so that there is something to find. */
static void fill(void)
{
	static const char *const words[] = { "warp ",	 "and ",     "weft ",
					     "a loom\n", "shuttle ", "of " };
	uint32_t draw = 1;
	size_t at = 0;

	while (at + 16 < LARGEST) {
		const char *word;

		draw = draw * 1664525 + 1013904223;
		word = words[draw >> 16 & 7 ? (draw >> 20) % 6 : 0];
		at += (size_t)sprintf((char *)in + at, "%s%c", word,
				      'a' + (char)((draw >> 25) % 26));
	}
}

static int find_real(const char *name)
{
	const struct wd_alg_comp *d;

	for (unsigned int i = 0; (d = wd_alg_comp_list(i)); i++) {
		if (!strcmp(d->name, name) && d->deflate)
			real = d->deflate;
	}
	if (!real)
		fprintf(stderr, "wd_call: no library '%s'\n", name);
	return real ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 64, 4096, 65536, LARGEST };

	in = calloc(1, LARGEST);
	out = calloc(1, ROOM(LARGEST));
	for (int way = LIBRARY; way < WAYS; way++) {
		if (!in || !out || wd_alg_comp_register(&drivers[way]))
			return 1;
	}
	if (argc > 2 && !strcmp(argv[1], "--work")) {
		fill();
		if (find_real(argv[2]))
			return 1;
		argc -= 2;
		argv += 2;
	}
	if (argc == 5 && !strcmp(argv[1], "--count")) {
		for (int way = 0; way < WAYS; way++) {
			if (strcmp(argv[2], names[way]))
				continue;
			measured(way, 64, 10);
			measured(way, strtoul(argv[3], NULL, 0),
				 strtoul(argv[4], NULL, 0));
		}
		return 0;
	}
	printf("   bytes  direct ns    library     submit     polled     chosen  "
	       "(more)\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		compare(sizes[i]);
	return 0;
}
