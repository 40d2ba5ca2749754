/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A driver that fails in every way that one can, and jobs for it of both
 * directions, of a caller that waits and asynchronous ones. Level 0 makes what it
 * decompresses: one stored block.
 */
#ifndef WF_ALG_FAULTY_TEST_H
#define WF_ALG_FAULTY_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <weft/wd_comp_drv.h>

#include "alg/wrap.h"
#include "base/log.h"

#define SIZE 20000u
#define ROOM (SIZE + 200)
#define DEPTH 16
/* Under the number by which cost knows a driver: until then it gets all. */
#define JOBS 4

enum fault {
	NONE,
	/* Of the driver: */
	NEVER,		  /* does not give a job back */
	TWICE,		  /* gives it back again, later */
	TWICE_AT_ONCE,	  /* gives it back twice in one call */
	STRANGER,	  /* gives back what is no job of its */
	NO_RESULT,	  /* gives it back as it came */
	TOO_MUCH_OUT,	  /* more produced than there is room */
	TOO_MUCH_IN,	  /* more consumed than there was */
	TOO_SHORT,	  /* success, and not all of it is done */
	TAKES_TOO_MANY,	  /* more than it was given */
	RETURNS_TOO_MANY, /* more than there is room for */
	FULL,		  /* takes none, and has none */
	/* Of the device: */
	SUBMIT_DIES, /* it never takes a job */
	POLL_DIES,   /* with the jobs */
	REFUSES,     /* -ENOTSUP for the job */
	BREAKS,	     /* -EIO for the job */
	UNREACHED,   /* -EFAULT, though the program reaches its memory */
	/* Of the process: */
	CRASHES, /* in submit() */
};

static const struct {
	enum fault fault;
	const char *name;
	const char *why; /* what the log says; NULL: nothing */
} cases[] = {
	{ NEVER, "never", "did not finish a job in time" },
	{ TWICE, "twice", "returned a job " },
	{ TWICE_AT_ONCE, "at once", "returned a job that it does not have" },
	{ STRANGER, "stranger", "returned a job that it does not have" },
	{ NO_RESULT, "no result", "returned a job without a result" },
	{ TOO_MUCH_OUT, "much out", "returned lengths that cannot be" },
	{ TOO_MUCH_IN, "much in", "returned lengths that cannot be" },
	{ TOO_SHORT, "short", "returned lengths that cannot be" },
	{ TAKES_TOO_MANY, "takes", "took more jobs than it was given" },
	{ RETURNS_TOO_MANY, "returns", "returned more jobs than there is " },
	{ FULL, "full", "takes no job, though it has none" },
	{ SUBMIT_DIES, "submit dies", NULL },
	{ POLL_DIES, "poll dies", NULL },
	{ REFUSES, "refuses", NULL },
	{ BREAKS, "breaks", NULL },
	{ UNREACHED, "unreached", NULL },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* -- the driver ------------------------------------------------------------ */

/* Also where the driver is in a process that no test framework watches. */
#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "driver: %s, line %d\n", #cond,        \
				__LINE__);                                     \
			abort();                                               \
		}                                                              \
	} while (0)

/*
 * All but ->hold is read and written in calls of the driver, of which there is one
 * at a time, and while there are no jobs. In memory that forked processes share, so
 * that a test may look at a driver in another one.
 */
struct faulty {
	enum fault fault;
	struct wd_comp_job *queue[DEPTH], *before;
	unsigned int queued, submits, opened, closed;
	bool inflate;	  /* what its jobs are */
	atomic_bool hold; /* poll() finds nothing */
	char expected[200];
	atomic_uint warnings, right_ones;
	bool apart; /* the driver is in another process, which polls */
};

static struct faulty *dev;

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	MUST(!ch);
	MUST(can == (dev->inflate ? WD_COMP_CAN_INFLATE : WD_COMP_CAN_DEFLATE));
	dev->opened++;
	*chan = dev;
	return 0;
}

static void close_chan(void *chan)
{
	(void)chan;
	dev->closed++;
	dev->queued = 0;
	dev->before = NULL;
}

/* Stored blocks, and of these only one. */
static void work(struct wd_comp_job *job)
{
	size_t len;

	job->result = 0;
	if (!job->inflate) {
		MUST(wf_alg_stored_size(job->src_len) <= job->dst_len);
		job->produced = wf_alg_stored_write(job->dst, job->src,
						    job->src_len, true);
		job->consumed = job->src_len;
		return;
	}
	len = job->src[1] | (size_t)job->src[2] << 8;
	MUST(len <= job->dst_len);
	memcpy(job->dst, job->src + 5, len);
	job->produced = len;
	job->consumed = len + 5;
	job->ended = 1;
}

static void spoil(struct wd_comp_job *job)
{
	switch (dev->fault) {
	case NO_RESULT:
		job->result = -EINPROGRESS;
		break;
	case TOO_MUCH_OUT:
		job->produced = job->dst_len + 1;
		break;
	case TOO_MUCH_IN:
		job->consumed = job->src_len + 1;
		break;
	case TOO_SHORT:
		job->ended = 0;
		job->consumed -= !job->inflate;
		break;
	case REFUSES:
		job->result = -ENOTSUP;
		break;
	case BREAKS:
		job->result = -EIO;
		break;
	case UNREACHED:
		job->result = -EFAULT;
		break;
	default:
		break;
	}
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	(void)chan;
	dev->submits++;
	if (dev->fault == CRASHES)
		kill(getpid(), SIGKILL);
	if (dev->fault == SUBMIT_DIES)
		return -EIO;
	if (dev->fault == FULL)
		return 0;
	if (dev->fault == TAKES_TOO_MANY)
		return (int)n + 1;
	for (unsigned int i = 0; i < n; i++) {
		MUST(!jobs[i]->inflate == !dev->inflate);
		MUST(dev->queued < DEPTH);
		dev->queue[dev->queued++] = jobs[i];
	}
	return (int)n;
}

/* The oldest job leaves the queue. */
static struct wd_comp_job *take(void)
{
	struct wd_comp_job *job = dev->queue[0];

	dev->queued--;
	memmove(dev->queue, dev->queue + 1,
		dev->queued * sizeof(dev->queue[0]));
	return job;
}

/* The job that it gave back last. A new one may be at that address: that is then
 * the one that it has given back. */
static struct wd_comp_job *take_again(void)
{
	struct wd_comp_job *job = dev->before;

	dev->before = NULL;
	if (dev->queued && dev->queue[0] == job)
		take();
	return job;
}

static int poll_chan(void *chan, struct wd_comp_job **done, unsigned int n)
{
	static struct wd_comp_job stranger;
	unsigned int i = 0;

	(void)chan;
	if (!dev->queued || dev->hold || dev->fault == NEVER)
		return 0;
	switch (dev->fault) {
	case POLL_DIES:
		return -EIO;
	case STRANGER:
		done[0] = &stranger;
		return 1;
	case RETURNS_TOO_MANY:
		return (int)n + 1;
	case TWICE:
		if (dev->before) {
			done[0] = take_again();
			return 1;
		}
		done[0] = dev->before = take();
		work(done[0]);
		return 1;
	case TWICE_AT_ONCE:
		done[0] = done[1] = take();
		work(done[0]);
		return 2;
	default:
		break;
	}
	for (; i < n && dev->queued; i++) {
		done[i] = take();
		work(done[i]);
		spoil(done[i]);
	}
	return (int)i;
}

static struct wd_alg_comp driver_of(const char *name, bool inflate)
{
	return (struct wd_alg_comp){
		.name = name,
		.priority = 900,
		.node = -1,
		.can = (inflate ? WD_COMP_CAN_INFLATE : WD_COMP_CAN_DEFLATE) |
		       WD_COMP_SIZED,
		.levels = 0x3fe,
		.min_window = 9,
		.version = WD_COMP_DRV_VERSION,
		.size = sizeof(struct wd_alg_comp),
		.limits = { .in_flight = DEPTH, .timeout_ms = 50 },
		.open_chan = open_chan,
		.close_chan = close_chan,
		.submit = submit,
		.poll = poll_chan,
	};
}

/* -- the log --------------------------------------------------------------- */

/* Any thread's. */
static void sink(enum wf_log_level level, const char *func, int line,
		 const char *text)
{
	(void)func;
	(void)line;
	if (level != WF_LOG_WARN && level != WF_LOG_TELL)
		return;
	atomic_fetch_add(&dev->warnings, 1);
	if (!strncmp(text, dev->expected, strlen(dev->expected)) &&
	    strstr(text, "; it is not used any more"))
		atomic_fetch_add(&dev->right_ones, 1);
	else
		fprintf(stderr, "said: %s\n", text);
}

/* -- jobs ------------------------------------------------------------------ */

static uint8_t source[SIZE], packed[ROOM];
static size_t packed_len;
static struct wd_comp_ctx ctxs[JOBS];
static uint8_t outs[JOBS][ROOM];
static unsigned int calls[JOBS], done;

static void is_over(struct wd_comp_ctx *ctx, int result, void *arg)
{
	unsigned int *call = arg;

	(void)ctx;
	assert_int_equal(result, 0);
	++*call;
	done++;
}

static void prepare(unsigned int i)
{
	ctxs[i] = (struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP,
					.comp_level = 6 };
	memset(outs[i], 0, ROOM);
	calls[i] = 0;
}

static void run_waiting(unsigned int n)
{
	const uint8_t *src = dev->inflate ? packed : source;

	for (unsigned int i = 0; i < n; i++) {
		size_t in = dev->inflate ? packed_len : SIZE, out = ROOM;

		prepare(i);
		assert_int_equal(
			(dev->inflate ? wd_alg_inflate : wd_alg_deflate)(
				&ctxs[i], src, &in, outs[i], &out),
			0);
		assert_int_equal(in, dev->inflate ? packed_len : SIZE);
		ctxs[i].out_len = out;
	}
}

/* The device finds them all at once, if it is in this process. */
static void run_async(unsigned int n)
{
	const uint8_t *src = dev->inflate ? packed : source;
	size_t len = dev->inflate ? packed_len : SIZE;

	done = 0;
	dev->hold = !dev->apart;
	for (unsigned int i = 0; i < n; i++) {
		prepare(i);
		assert_int_equal((dev->inflate ? wd_alg_async_inflate :
						 wd_alg_async_deflate)(
					 &ctxs[i], is_over, &calls[i], src, len,
					 outs[i], ROOM),
				 0);
	}
	dev->hold = false;
	while (done < n) {
		assert_int_equal(wd_alg_wait(-1), 0);
		wd_alg_poll(0);
	}
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(calls[i], 1);
		assert_int_equal(ctxs[i].in_len, len);
	}
}

/* The results are right. How many of them @name made. */
static unsigned int check(unsigned int n, const char *name)
{
	static uint8_t plain[SIZE];
	unsigned int by = 0;

	for (unsigned int i = 0; i < n; i++) {
		size_t in = ctxs[i].out_len, len = in;

		by += !strcmp(ctxs[i].used, name);
		memcpy(plain, outs[i], len < SIZE ? len : SIZE);
		if (!dev->inflate) {
			struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP };

			len = SIZE;
			assert_int_equal(
				wd_alg_inflate(&ctx, outs[i], &in, plain, &len),
				0);
		}
		assert_int_equal(len, SIZE);
		assert_memory_equal(plain, source, SIZE);
	}
	return by;
}

/* Before anything else of it. */
static int faulty_begin(void)
{
	struct wd_comp_ctx stored = { .alg_type = WD_COMP_GZIP };
	size_t in = SIZE;

	dev = mmap(NULL, sizeof(*dev), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (dev == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(i * i >> 5);
	packed_len = sizeof(packed);
	return wd_alg_deflate(&stored, source, &in, packed, &packed_len);
}

#endif
