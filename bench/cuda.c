/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Independent pieces of 64 KiB on a GPU beside the processors of the same
 * machine, on the same data, in one run: how many GB of plain data a second,
 * for several numbers of pieces. Each output is compared with the plain data
 * once.
 *
 *	cuda [-t THREADS] [-n PIECES] [-r ROUNDS]
 *
 * Columns: one processor and all of them, by the driver that libwd chooses;
 * then the driver cuda, from and to ordinary memory with one thread and with
 * all, pinned memory, and memory of the GPU.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "cuda/library.h"
#include "tools/comp/bench.h"

#define PIECE 65536u
#define SLOT (PIECE + 1024u)
#define CORPUS (256u << 20)
#define COLUMNS 6

struct work {
	const struct wd_alg_comp *driver; /* NULL: libwd chooses */
	struct wd_comp_job *jobs;
	size_t count;
	pthread_t thread;
	int failed;
};

static size_t pieces = 16384;
static unsigned int threads, rounds = 3;
static struct wf_cu cu;
static const struct wd_alg_comp *gpu;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_cpu(struct wd_comp_job *job)
{
	struct wd_comp_ctx ctx = { .comp_level = job->level };
	size_t in = job->src_len, out = job->dst_len;
	int ret = job->inflate ?
			  wd_alg_inflate(&ctx, job->src, &in, job->dst, &out) :
			  wd_alg_deflate(&ctx, job->src, &in, job->dst, &out);

	job->produced = out;
	return ret;
}

static int by_driver(struct work *w)
{
	size_t given = 0, back = 0;
	void *chan = NULL;

	if (w->driver->open_chan(&chan, NULL,
				 WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE))
		return -ENODEV;
	while (back < w->count) {
		struct wd_comp_job *list[64], *done[64];
		unsigned int n = 0;
		int got;

		while (n < 64 && given + n < w->count) {
			list[n] = &w->jobs[given + n];
			list[n]->done = 0;
			n++;
		}
		got = n ? w->driver->submit(chan, list, n) : 0;
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++)
			if (list[i]->done)
				return list[i]->result ? list[i]->result : -EIO;
		given += (size_t)got;
		if (got)
			continue;
		got = w->driver->poll(chan, done, 64);
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++)
			if (done[i]->result)
				return done[i]->result;
		back += (size_t)got;
		if (!got)
			w->driver->wait(chan, 1000);
	}
	w->driver->close_chan(chan);
	return 0;
}

static void *run_work(void *arg)
{
	struct work *w = arg;

	if (w->driver) {
		w->failed = by_driver(w);
		return NULL;
	}
	for (size_t i = 0; i < w->count && !w->failed; i++)
		w->failed = by_cpu(&w->jobs[i]);
	return NULL;
}

/* Seconds, or a negative number. */
static double run_once(const struct wd_alg_comp *driver,
		       struct wd_comp_job *jobs, size_t count, unsigned int n)
{
	struct work work[256];
	double start = now();
	int failed = 0;

	for (unsigned int i = 0; i < n; i++) {
		size_t from = count * i / n, to = count * (i + 1) / n;

		work[i] = (struct work){ .driver = driver,
					 .jobs = jobs + from,
					 .count = to - from };
		if (pthread_create(&work[i].thread, NULL, run_work, &work[i]))
			exit(1);
	}
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(work[i].thread, NULL);
		failed = failed ? failed : work[i].failed;
	}
	if (failed)
		fprintf(stderr, "cuda: %s\n", strerror(-failed));
	return failed ? -1 : now() - start;
}

static double best_of(const struct wd_alg_comp *driver,
		      struct wd_comp_job *jobs, size_t count, unsigned int n)
{
	double best = run_once(driver, jobs, count, n);

	for (unsigned int i = 1; i < rounds && best > 0; i++) {
		double t = run_once(driver, jobs, count, n);

		best = t < best ? t : best;
	}
	return best;
}

/* -- memory
 * ----------------------------------------------------------------- */

enum place { PAGES, PINNED, DEVICE };

struct memory {
	uint8_t *plain, *packed, *out;
};

static void *context, *stream;

static void to_or_from(void *to, const void *from, size_t len, bool out)
{
	void *event;
	int err;

	cu.cuEventCreate(&event, WF_CU_EVENT_NO_TIME);
	if (out)
		err = cu.cuMemcpyDtoHAsync_v2(to, (wf_cu_ptr)from, len, stream);
	else
		err = cu.cuMemcpyHtoDAsync_v2((wf_cu_ptr)to, from, len, stream);
	cu.cuEventRecord(event, stream);
	while (cu.cuEventQuery(event) == WF_CU_NOT_READY)
		;
	cu.cuEventDestroy_v2(event);
	if (err)
		exit(1);
}

static uint8_t *take(enum place place, size_t len)
{
	wf_cu_ptr at = 0;
	void *host = NULL;

	if (place == PAGES)
		host = malloc(len);
	else if (place == PINNED)
		cu.cuMemHostAlloc(&host, len, WF_CU_HOST_PORTABLE);
	else
		cu.cuMemAlloc_v2(&at, len);
	host = host ? host : (void *)at;
	if (!host) {
		fprintf(stderr, "cuda: no memory\n");
		exit(1);
	}
	if (place != DEVICE)
		memset(host, 1, len);
	return host;
}

static void put(enum place place, void *to, const void *from, size_t len)
{
	if (place == DEVICE)
		to_or_from(to, from, len, false);
	else
		memcpy(to, from, len);
}

static const uint8_t *see(enum place place, const void *at, uint8_t *copy,
			  size_t len)
{
	if (place != DEVICE)
		return at;
	to_or_from(copy, at, len, true);
	return copy;
}

/* -- figures
 * ---------------------------------------------------------------- */

struct bench {
	const uint8_t *plain;  /* ordinary memory */
	const uint8_t *packed; /* SLOT for each, by libwd's best at level 6 */
	const size_t *packed_len; /* of each */
	struct memory at[3];
	struct wd_comp_job *jobs;
};

static void make_jobs(struct bench *b, enum place place, bool inflate)
{
	struct memory *m = &b->at[place];

	for (size_t i = 0; i < pieces; i++)
		b->jobs[i] = (struct wd_comp_job){
			.src = inflate ? m->packed + i * SLOT :
					 m->plain + i * PIECE,
			.src_len = inflate ? b->packed_len[i] : PIECE,
			.dst = inflate ? m->out + i * PIECE : m->out + i * SLOT,
			.dst_len = inflate ? PIECE : SLOT,
			.level = 1,
			.inflate = inflate,
		};
}

/* All outputs are right. */
static bool is_right(struct bench *b, enum place place, bool inflate,
		     size_t count)
{
	static uint8_t copy[SLOT], plain[PIECE];

	for (size_t i = 0; i < count; i++) {
		struct wd_comp_job *job = &b->jobs[i];
		const uint8_t *out = see(place, job->dst, copy, job->produced);
		struct wd_comp_ctx ctx = { 0 };
		size_t in = job->produced, len = PIECE;

		if (!inflate) {
			if (wd_alg_inflate(&ctx, out, &in, plain, &len))
				return false;
			out = plain;
		} else {
			len = job->produced;
		}
		if (len != PIECE ||
		    memcmp(out, b->plain + i * PIECE, PIECE) != 0)
			return false;
	}
	return true;
}

static double size_of(const struct bench *b, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)b->jobs[i].produced;
	return sum / (double)count / PIECE * 100;
}

static void measure(struct bench *b, bool inflate)
{
	static const struct {
		const char *name;
		enum place place;
		bool gpu, all;
	} columns[COLUMNS] = {
		{ "1 CPU", PAGES, false, false },
		{ "all CPUs", PAGES, false, true },
		{ "pages, 1", PAGES, true, false },
		{ "pages, all", PAGES, true, true },
		{ "pinned", PINNED, true, false },
		{ "device", DEVICE, true, false },
	};
	double sizes[COLUMNS] = { 0 };

	printf("%s, GB/s of plain data\n%8s", inflate ? "inflate" : "deflate",
	       "pieces");
	for (int i = 0; i < COLUMNS; i++)
		printf("%12s", columns[i].name);
	printf("\n");
	for (size_t count = 16; count <= pieces; count *= 4) {
		printf("%8zu", count);
		for (int i = 0; i < COLUMNS; i++) {
			unsigned int n = columns[i].all ? threads : 1;
			double t;

			if (columns[i].gpu && !gpu)
				continue;
			make_jobs(b, columns[i].place, inflate);
			t = best_of(columns[i].gpu ? gpu : NULL, b->jobs, count,
				    n < count ? n : (unsigned int)count);
			if (count * 4 > pieces && t > 0 &&
			    !is_right(b, columns[i].place, inflate, count))
				t = -2;
			sizes[i] = size_of(b, count);
			if (t > 0)
				printf("%12.2f",
				       (double)count * PIECE / t / 1e9);
			else
				printf("%12s", t < -1 ? "WRONG" : "-");
			fflush(stdout);
		}
		printf("\n");
	}
	if (!inflate) {
		printf("%8s", "size, %");
		for (int i = 0; i < COLUMNS; i++)
			printf("%12.1f", sizes[i]);
		printf("\n");
	}
}

static void pack(uint8_t *plain, uint8_t *packed, size_t *len)
{
	struct wd_comp_job *jobs = calloc(pieces, sizeof(*jobs));

	for (size_t i = 0; i < pieces; i++)
		jobs[i] = (struct wd_comp_job){ .src = plain + i * PIECE,
						.src_len = PIECE,
						.dst = packed + i * SLOT,
						.dst_len = SLOT,
						.level = 6 };
	if (run_once(NULL, jobs, pieces, threads) < 0)
		exit(1);
	for (size_t i = 0; i < pieces; i++)
		len[i] = jobs[i].produced;
	free(jobs);
}

static void start_gpu(struct bench *b)
{
	const char *why = "there is no driver cuda";
	double start = now();
	void *chan = NULL;
	char name[64] = "";

	for (unsigned int i = 0; (gpu = wd_alg_comp_list(i)); i++)
		if (!strcmp(gpu->name, "cuda"))
			break;
	if (!gpu || wf_cuda_library_load(&cu, &why) ||
	    gpu->open_chan(&chan, NULL, WD_COMP_CAN_DEFLATE)) {
		printf("no GPU: %s\n", why);
		gpu = NULL;
		return;
	}
	gpu->close_chan(chan);
	cu.cuDeviceGetName(name, sizeof(name), 0);
	printf("%s, ready after %.2f s\n", name, now() - start);
	cu.cuDevicePrimaryCtxRetain(&context, 0);
	cu.cuCtxPushCurrent_v2(context);
	cu.cuStreamCreate(&stream, WF_CU_STREAM_APART);
	for (int i = PINNED; i <= DEVICE; i++) {
		struct memory *m = &b->at[i];

		m->plain = take((enum place)i, pieces * PIECE);
		m->packed = take((enum place)i, pieces * SLOT);
		m->out = take((enum place)i, pieces * SLOT);
		put((enum place)i, m->plain, b->plain, pieces * PIECE);
		put((enum place)i, m->packed, b->packed, pieces * SLOT);
	}
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	size_t *len, have;
	int c;

	threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	while ((c = getopt(argc, argv, "t:n:r:")) != -1) {
		unsigned long value = strtoul(c == '?' ? "0" : optarg, NULL, 0);

		if (!value) {
			fprintf(stderr, "usage: cuda [-t THREADS] [-n PIECES] "
					"[-r ROUNDS]\n");
			return 2;
		}
		if (c == 't')
			threads = value < 256 ? (unsigned int)value : 256;
		else if (c == 'n')
			pieces = value;
		else
			rounds = (unsigned int)value;
	}
	b.at[PAGES] = (struct memory){ take(PAGES, pieces * PIECE),
				       take(PAGES, pieces * SLOT),
				       take(PAGES, pieces * SLOT) };
	b.plain = b.at[PAGES].plain;
	b.packed = b.at[PAGES].packed;
	b.jobs = calloc(pieces, sizeof(*b.jobs));
	len = calloc(pieces, sizeof(*len));
	b.packed_len = len;
	have = wf_tools_comp_corpus(b.at[PAGES].plain, pieces * PIECE < CORPUS ?
							       pieces * PIECE :
							       CORPUS);
	if (!have || !b.jobs || !len)
		return 1;
	/* More of the same. */
	for (size_t at = have; at < pieces * PIECE; at++)
		b.at[PAGES].plain[at] = b.at[PAGES].plain[at - have];
	pack(b.at[PAGES].plain, b.at[PAGES].packed, len);
	printf("%u processors, %zu MB of corpus\n", threads, have >> 20);
	start_gpu(&b);
	measure(&b, true);
	measure(&b, false);
	return 0;
}
