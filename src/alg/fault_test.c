/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that fail in every way that one can, with jobs of both directions, of a
 * caller that waits and asynchronous ones: each job is done by the next driver,
 * exactly once. A driver at fault is named in the log once and not asked again;
 * one whose device has failed is asked again, and nothing is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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

/* -- the driver ------------------------------------------------------------ */

/* All but ->hold is read and written in calls of the driver, of which there is one
 * at a time, and while there are no jobs. */
static struct {
	enum fault fault;
	struct wd_comp_job *queue[DEPTH], *before;
	unsigned int queued, submits, opened, closed;
	bool inflate;	  /* what its jobs are */
	atomic_bool hold; /* poll() finds nothing */
} dev;

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	assert_null(ch);
	assert_int_equal(can, dev.inflate ? WD_COMP_CAN_INFLATE :
					    WD_COMP_CAN_DEFLATE);
	dev.opened++;
	*chan = &dev;
	return 0;
}

static void close_chan(void *chan)
{
	(void)chan;
	dev.closed++;
	dev.queued = 0;
	dev.before = NULL;
}

/* Stored blocks, and of these only one. */
static void work(struct wd_comp_job *job)
{
	size_t len;

	job->result = 0;
	if (!job->inflate) {
		assert_true(wf_alg_stored_size(job->src_len) <= job->dst_len);
		job->produced = wf_alg_stored_write(job->dst, job->src,
						    job->src_len, true);
		job->consumed = job->src_len;
		return;
	}
	len = job->src[1] | (size_t)job->src[2] << 8;
	assert_true(len <= job->dst_len);
	memcpy(job->dst, job->src + 5, len);
	job->produced = len;
	job->consumed = len + 5;
	job->ended = 1;
}

static void spoil(struct wd_comp_job *job)
{
	switch (dev.fault) {
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
	dev.submits++;
	if (dev.fault == SUBMIT_DIES)
		return -EIO;
	if (dev.fault == FULL)
		return 0;
	if (dev.fault == TAKES_TOO_MANY)
		return (int)n + 1;
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(jobs[i]->inflate, dev.inflate);
		assert_true(dev.queued < DEPTH);
		dev.queue[dev.queued++] = jobs[i];
	}
	return (int)n;
}

/* The oldest job leaves the queue. */
static struct wd_comp_job *take(void)
{
	struct wd_comp_job *job = dev.queue[0];

	dev.queued--;
	memmove(dev.queue, dev.queue + 1, dev.queued * sizeof(dev.queue[0]));
	return job;
}

/* The job that it gave back last. A new one may be at that address: that is then
 * the one that it has given back. */
static struct wd_comp_job *take_again(void)
{
	struct wd_comp_job *job = dev.before;

	dev.before = NULL;
	if (dev.queued && dev.queue[0] == job)
		take();
	return job;
}

static int poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	static struct wd_comp_job stranger;
	unsigned int i = 0;

	(void)chan;
	if (!dev.queued || dev.hold || dev.fault == NEVER)
		return 0;
	switch (dev.fault) {
	case POLL_DIES:
		return -EIO;
	case STRANGER:
		done[0] = &stranger;
		return 1;
	case RETURNS_TOO_MANY:
		return (int)n + 1;
	case TWICE:
		if (dev.before) {
			done[0] = take_again();
			return 1;
		}
		done[0] = dev.before = take();
		work(done[0]);
		return 1;
	case TWICE_AT_ONCE:
		done[0] = done[1] = take();
		work(done[0]);
		return 2;
	default:
		break;
	}
	for (; i < n && dev.queued; i++) {
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
		.poll = poll,
	};
}

/* -- the log --------------------------------------------------------------- */

static char expected[200];
static atomic_uint warnings, right_ones;

/* Any thread's. */
static void sink(enum wf_log_level level, const char *func, int line,
		 const char *text)
{
	(void)func;
	(void)line;
	if (level != WF_LOG_WARN && level != WF_LOG_TELL)
		return;
	atomic_fetch_add(&warnings, 1);
	if (!strncmp(text, expected, strlen(expected)) &&
	    strstr(text, "; it is not used any more"))
		atomic_fetch_add(&right_ones, 1);
	else
		fprintf(stderr, "said: %s\n", text);
}

/* -- jobs ------------------------------------------------------------------ */

static uint8_t data[SIZE], packed[ROOM];
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
	const uint8_t *src = dev.inflate ? packed : data;

	for (unsigned int i = 0; i < n; i++) {
		size_t in = dev.inflate ? packed_len : SIZE, out = ROOM;

		prepare(i);
		assert_int_equal(
			(dev.inflate ? wd_alg_inflate : wd_alg_deflate)(
				&ctxs[i], src, &in, outs[i], &out),
			0);
		assert_int_equal(in, dev.inflate ? packed_len : SIZE);
		ctxs[i].out_len = out;
	}
}

/* The device finds them all at once. */
static void run_async(unsigned int n)
{
	const uint8_t *src = dev.inflate ? packed : data;
	size_t len = dev.inflate ? packed_len : SIZE;

	done = 0;
	dev.hold = true;
	for (unsigned int i = 0; i < n; i++) {
		prepare(i);
		assert_int_equal((dev.inflate ? wd_alg_async_inflate :
						wd_alg_async_deflate)(
					 &ctxs[i], is_over, &calls[i], src, len,
					 outs[i], ROOM),
				 0);
	}
	dev.hold = false;
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
		if (!dev.inflate) {
			struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP };

			len = SIZE;
			assert_int_equal(
				wd_alg_inflate(&ctx, outs[i], &in, plain, &len),
				0);
		}
		assert_int_equal(len, SIZE);
		assert_memory_equal(plain, data, SIZE);
	}
	return by;
}

/* -- tests ----------------------------------------------------------------- */

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* A channel without room is a fault where somebody waits for it; an asynchronous
 * job goes elsewhere at once. */
static const char *why_of(size_t i, bool async)
{
	return async && cases[i].fault == FULL ? NULL : cases[i].why;
}

static void try(size_t i, bool inflate, bool async)
{
	static char names[CASES][2][2][40];
	static struct wd_alg_comp drivers[CASES][2][2];
	struct wd_alg_comp *driver = &drivers[i][inflate][async];
	char *name = names[i][inflate][async];
	const char *why = why_of(i, async);
	/* These do one job before they are found out. */
	unsigned int good =
		cases[i].fault == TWICE || cases[i].fault == TWICE_AT_ONCE;

	snprintf(name, sizeof(names[0][0][0]), "%s, %s %s", cases[i].name,
		 async ? "asynchronous" : "waiting",
		 inflate ? "inflate" : "deflate");
	snprintf(expected, sizeof(expected), "driver %s (program) %s", name,
		 why ? why : "?");
	atomic_store(&warnings, 0);
	atomic_store(&right_ones, 0);
	*driver = driver_of(name, inflate);
	dev.fault = cases[i].fault;
	dev.inflate = inflate;
	dev.opened = dev.closed = dev.submits = 0;
	assert_int_equal(wd_alg_comp_register(driver), 0);
	(async ? run_async : run_waiting)(JOBS);
	assert_int_equal(check(JOBS, name), good);
	/* It is asked once about each, but for one who waits for room. */
	if (async || cases[i].fault != FULL)
		assert_true(dev.submits <= JOBS);
	assert_int_equal(atomic_load(&warnings), why ? 1 : 0);
	/* It works again: but nobody asks it if it was its own fault. */
	dev.fault = NONE;
	dev.submits = 0;
	run_waiting(1);
	assert_int_equal(check(1, name), !why);
	run_async(1);
	assert_int_equal(check(1, name), !why);
	assert_int_equal(dev.submits, why ? 0 : 2);
	wd_alg_async_fini();
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
	assert_int_equal(dev.opened, dev.closed);
	assert_int_equal(atomic_load(&warnings), why ? 1 : 0);
	assert_int_equal(atomic_load(&right_ones), why ? 1 : 0);
}

static void test_deflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, false, false);
}

static void test_inflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, true, false);
}

static void test_async_deflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, false, true);
}

static void test_async_inflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, true, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deflate),
		cmocka_unit_test(test_inflate),
		cmocka_unit_test(test_async_deflate),
		cmocka_unit_test(test_async_inflate),
	};
	struct wd_comp_ctx stored = { .alg_type = WD_COMP_GZIP };
	size_t in = SIZE;

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * i >> 5);
	packed_len = sizeof(packed);
	if (wd_alg_deflate(&stored, data, &in, packed, &packed_len))
		return 1;
	wf_base_log_set_sink(sink);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
