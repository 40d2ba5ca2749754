/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting one 64-byte descriptor: one call per 8 bytes, a loop, and the copies
 * of src/queue, side by side. Instructions, calls and stack are counted; times
 * are on ordinary memory, in turns, medians. docs/wqe.md says which effects
 * only write-combined device memory could show.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "nic/wqe.h"
#include "wqe_step.h"
#include "wqe_variants.h"

#define ENTRIES 1024u
#define BATCH 16u
#define TURN 200000u /* posts per turn */
#define TURNS_MOST 101
#define CALLGRIND_POSTS 1000u
#define BELLS 6

/* The last three ring none: they differ in how the descriptor was staged. */
enum bell {
	BELL_NONE,
	BELL_BATCH,
	BELL_EACH,
	STAGED_LONG_AGO,
	STAGED_BY_8,
	STAGED_BY_16,
};

struct variant {
	const char *name;
	const char *symbol; /* what callgrind collects */
	wqe_post_fn post;
	int copy; /* of src/queue; 0: not ours */
};

void __attribute__((noinline)) wqe_post(struct wqe_queue *q, bool ring)
{
	wf_queue_sub_post64(&q->sub, &q->wqe, !ring);
}

static struct variant variants[] = {
	{ "calls -O0", "wqe_calls_o0", wqe_calls_o0, 0 },
	{ "calls -O2", "wqe_calls_o2", wqe_calls_o2, 0 },
	{ "calls -O2 inlined", "wqe_calls_o2_inlined", wqe_calls_o2_inlined,
	  0 },
	{ "loop -O0", "wqe_loop_o0", wqe_loop_o0, 0 },
	{ "loop -O2", "wqe_loop_o2", wqe_loop_o2, 0 },
	{ "weft plain", "wqe_post", wqe_post, WF_QUEUE_COPY_PLAIN },
	{ "weft sse", "wqe_post", wqe_post, WF_QUEUE_COPY_SSE },
	{ "weft avx", "wqe_post", wqe_post, WF_QUEUE_COPY_AVX },
	{ "weft avx512", "wqe_post", wqe_post, WF_QUEUE_COPY_AVX512 },
	{ "weft movdir64b", "wqe_post", wqe_post, WF_QUEUE_COPY_MOVDIR64B },
	{ "weft neon", "wqe_post", wqe_post, WF_QUEUE_COPY_NEON },
};
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

static double ns[VARIANTS][BELLS][TURNS_MOST];

static bool can(const struct variant *v)
{
	return wf_queue_copy_can(v->copy);
}

static void prepare(struct wqe_queue *q, const struct variant *v)
{
	static _Alignas(64) uint8_t ring[ENTRIES * 64];
	static _Alignas(64) _Atomic uint32_t doorbell;
	const struct wf_queue_sub_attr attr = {
		.ring = ring,
		.doorbell = &doorbell,
		.entries = ENTRIES,
		.stride = 64,
		.copy = v->copy,
	};

	memset(q, 0, sizeof(*q));
	if (wf_queue_sub_init(&q->sub, &attr))
		abort();
	q->ring = ring;
	q->doorbell = &doorbell;
	q->mask = ENTRIES - 1;
	memset(&q->wqe, 0x5a, sizeof(q->wqe));
}

/* The other side is infinitely fast: nothing stays in the ring. */
static inline void consume(struct wqe_queue *q)
{
	wf_queue_sub_done(&q->sub, wf_queue_sub_used(&q->sub));
}

static bool rings(enum bell bell, unsigned i)
{
	return bell == BELL_EACH || (bell == BELL_BATCH && i % BATCH == 0);
}

static inline void stage_by_8(struct wqe_words *wqe, uint64_t i)
{
	volatile uint64_t *words = wqe->words;

	for (int w = 0; w < 8; w++)
		words[w] = i;
}

/* As nic/wqe.h does. */
static inline void stage_by_16(struct wqe_words *wqe, uint64_t i)
{
	for (int w = 0; w < 8; w += 2)
		wf_nic_wqe_put(&wqe->words[w], i, i);
}

static double turn(const struct variant *v, enum bell bell)
{
	static struct wqe_queue q;
	uint64_t start;

	prepare(&q, v);
	start = wf_base_clock_ns();
	for (unsigned i = 1; i <= TURN; i++) {
		/* A staged WQE is one just written: a wider load than the
		 * store waits until that is in the cache. */
		if (bell == STAGED_BY_16)
			stage_by_16(&q.wqe, i);
		else if (bell == STAGED_BY_8)
			stage_by_8(&q.wqe, i);
		else if (bell != STAGED_LONG_AGO)
			q.wqe.words[0] = i;
		v->post(&q, rings(bell, i));
		consume(&q);
	}
	return (double)(wf_base_clock_ns() - start) / TURN;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void time_all(int turns)
{
	for (int t = 0; t < turns; t++) {
		for (size_t i = 0; i < VARIANTS; i++) {
			struct variant *v = &variants[i];

			if (!can(v))
				continue;
			for (int b = 0; b < BELLS; b++)
				ns[i][b][t] = turn(v, b);
		}
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\rturn %d of %d ", t + 1, turns);
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%20s\r", "");
	for (size_t i = 0; i < VARIANTS; i++) {
		for (int b = 0; b < BELLS; b++)
			qsort(ns[i][b], (size_t)turns, sizeof(double),
			      by_value);
	}
}

/* Returns the N that valgrind prints as "Collected : N". -1: none here, or it
 * does not know the instructions. */
static double callgrind(const struct variant *v, const char *self)
{
	char command[1024], line[256];
	double collected = -1;
	FILE *out;

	snprintf(command, sizeof(command),
		 "valgrind --tool=callgrind --callgrind-out-file=/dev/null "
		 "--toggle-collect=%s '%s' --only '%s' 2>&1",
		 v->symbol, self, v->name);
	out = popen(command, "r");
	if (!out)
		return -1;
	while (fgets(line, sizeof(line), out)) {
		const char *at = strstr(line, "Collected :");

		if (at)
			collected = strtod(at + 11, NULL);
	}
	if (pclose(out))
		return -1;
	return collected / CALLGRIND_POSTS;
}

static int run_only(const char *name)
{
	static struct wqe_queue q;

	for (size_t i = 0; i < VARIANTS; i++) {
		struct variant *v = &variants[i];

		if (strcmp(v->name, name))
			continue;
		if (!can(v))
			return 77;
		prepare(&q, v);
		for (unsigned n = 0; n < CALLGRIND_POSTS; n++) {
			v->post(&q, false);
			consume(&q);
		}
		return 0;
	}
	return 2;
}

static void print_row(struct variant *v, int turns, const char *self)
{
	struct wqe_steps s = { -1, -1, 0 };
	static struct wqe_queue q;
	double grind = self ? callgrind(v, self) : -1;

	prepare(&q, v);
	wqe_step_count(v->post, &q, false, &s);
	printf("%-18s %12ld %6ld %6ld", v->name, s.instructions, s.calls,
	       s.stack);
	if (grind > 0)
		printf(" %10.1f", grind);
	else
		printf(" %10s", "-");
	for (int b = 0; b < BELLS; b++)
		printf(" %8.2f", ns[v - variants][b][turns / 2]);
	printf("\n");
	fflush(stdout);
}

static void usage(FILE *out)
{
	fprintf(out,
		"usage: wqe_copy [-r TURNS] [--no-callgrind]\n"
		"Posts 64-byte descriptors to a ring in ordinary memory.\n"
		"  -r, --turns N     turns of %u posts each, median (25)\n"
		"      --no-callgrind  do not run valgrind\n"
		"      --only NAME   post %u times and exit (for valgrind)\n",
		TURN, CALLGRIND_POSTS);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "turns", required_argument, NULL, 'r' },
		{ "no-callgrind", no_argument, NULL, 'n' },
		{ "only", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *self = "/proc/self/exe";
	char path[512];
	int turns = 25, c;
	ssize_t len = readlink(self, path, sizeof(path) - 1);

	self = len > 0 ? (path[len] = 0, path) : NULL;
	while ((c = getopt_long(argc, argv, "r:h", options, NULL)) != -1) {
		if (c == 'o')
			return run_only(optarg);
		if (c == 'n')
			self = NULL;
		if (c == 'r')
			turns = atoi(optarg);
		if (c == 'h' || c == '?') {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (turns < 1 || turns > TURNS_MOST)
		turns = 25;
	time_all(turns);
	printf("%-18s %12s %6s %6s %10s %8s %8s %8s %8s %8s %8s\n",
	       "post of 64 B", "instructions", "calls", "stack", "callgrind",
	       "ns", "ns/16", "ns/1", "ns old", "ns by 8", "ns by 16");
	for (size_t i = 0; i < VARIANTS; i++) {
		if (can(&variants[i]))
			print_row(&variants[i], turns, self);
	}
	printf("instructions, calls, stack: counted in single steps, function "
	       "entry to return,\nno doorbell. ns: no doorbell; fence and "
	       "doorbell every 16; every one;\nold, by 8, by 16: no doorbell, and "
	       "the descriptor was staged long ago, just\nnow by stores of 8, "
	       "just now by stores of 16 bytes (else: one store of 8).\n");
	return 0;
}
