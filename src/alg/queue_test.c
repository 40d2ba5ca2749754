/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that submit and poll, as applications meet them: jobs that overlap, an
 * application's channel, a descriptor to wait on. fault_test.c has drivers that
 * fail, limits_test.c what their tables say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/registry.h"
#include "alg/wrap.h"
#include "base/clock.h"
#include "chan/core.h"

#define SIZE 20000u
#define JOBS 24
#define DEPTH 16

enum fault {
	NONE,
	AT_ONCE,    /* no fault: done by submit() */
	POLL_DIES,  /* with the job */
	ONE_BY_ONE, /* no fault: each takes PACE after the one before it */
};

#define PACE (20 * WF_NS_PER_MS)

/* These say what the driver of these tests is to do, and what it saw. */
static enum fault fault;
static struct wd_comp_job *queue[DEPTH];
static unsigned int queued, most, submits, opened, closed, last_chan;
static atomic_bool hold; /* poll() finds nothing */
static useconds_t delay_us;
static pthread_t submitter;
static uint64_t last_done;

static int t_open(void **chan, struct wd_chan *ch, unsigned int can)
{
	static int chans[64];

	assert_null(ch);
	assert_int_equal(can, WD_COMP_CAN_DEFLATE);
	opened++;
	*chan = &chans[last_chan++ % 64];
	return 0;
}

static void t_close(void *chan)
{
	(void)chan;
	closed++;
	queued = 0;
}

/* A stored block: anybody can read it. */
static void work(struct wd_comp_job *job)
{
	size_t need = wf_alg_stored_size(job->src_len);

	job->result = need > job->dst_len ? -ENOSPC : 0;
	if (!job->result)
		job->produced = wf_alg_stored_write(job->dst, job->src,
						    job->src_len, true);
	job->consumed = job->result ? 0 : job->src_len;
}

static int t_submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	(void)chan;
	submits++;
	submitter = pthread_self();
	if (fault == ONE_BY_ONE && !queued)
		last_done = wf_base_clock_ns();
	for (unsigned int i = 0; i < n; i++) {
		assert_false(jobs[i]->inflate);
		if (fault == AT_ONCE) {
			work(jobs[i]);
			jobs[i]->done = 1;
			continue;
		}
		assert_true(queued < DEPTH);
		queue[queued++] = jobs[i];
		most = queued > most ? queued : most;
	}
	return (int)n;
}

static int t_poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	unsigned int i;

	(void)chan;
	if (!queued || hold)
		return 0;
	if (fault == POLL_DIES)
		return -EIO;
	if (delay_us)
		usleep(delay_us);
	if (fault == ONE_BY_ONE) {
		if (wf_base_clock_ns() < last_done + PACE)
			return 0;
		last_done = wf_base_clock_ns();
		n = 1;
	}
	for (i = 0; i < n && i < queued; i++) {
		done[i] = queue[i];
		work(done[i]);
	}
	queued -= i;
	memmove(queue, queue + i, queued * sizeof(queue[0]));
	return (int)i;
}

static struct wd_alg_comp driver_of(const char *name)
{
	return (struct wd_alg_comp){
		.name = name,
		.priority = 900,
		.node = -1,
		.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,
		.levels = 0x3fe,
		.min_window = 9,
		.version = WD_COMP_DRV_VERSION,
		.size = sizeof(struct wd_alg_comp),
		.limits = { .in_flight = DEPTH, .timeout_ms = 50 },
		.open_chan = t_open,
		.close_chan = t_close,
		.submit = t_submit,
		.poll = t_poll,
	};
}

static uint8_t data[SIZE], out[SIZE + 200], plain[SIZE];

static void begin(const struct wd_alg_comp *driver, enum fault what)
{
	fault = what;
	queued = most = submits = opened = closed = 0;
	hold = false;
	assert_int_equal(wd_alg_comp_register(driver), 0);
}

static void end(const struct wd_alg_comp *driver)
{
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
	assert_int_equal(opened, closed);
}

static void check_unpacks(const uint8_t *packed, size_t len)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP };
	size_t plain_len = sizeof(plain);

	memset(plain, 0, sizeof(plain));
	assert_int_equal(wd_alg_inflate(&ctx, packed, &len, plain, &plain_len),
			 0);
	assert_int_equal(plain_len, SIZE);
	assert_memory_equal(plain, data, SIZE);
}

/* Does one job, and returns the driver that did it. */
static const char *pack(const void *src)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP, .comp_level = 6 };
	size_t in = SIZE, len = sizeof(out);

	assert_int_equal(wd_alg_deflate(&ctx, src, &in, out, &len), 0);
	assert_int_equal(in, SIZE);
	check_unpacks(out, len);
	return ctx.used;
}

static void test_sync(void **state)
{
	static struct wd_alg_comp driver;

	(void)state;
	driver = driver_of("sync");
	begin(&driver, NONE);
	for (int i = 0; i < 3; i++)
		assert_string_equal(pack(data), "sync");
	assert_int_equal(submits, 3);
	assert_int_equal(opened, 1); /* the channel is kept */
	fault = AT_ONCE;
	assert_string_equal(pack(data), "sync");
	/* No room: stored blocks of ours would not fit either. */
	end(&driver);
}

static int calls[JOBS];
static struct wd_comp_ctx slow_ctx[JOBS];
static uint8_t slow_outs[JOBS][SIZE + 200];

static void count(struct wd_comp_ctx *ctx, int result, void *arg)
{
	int *call = arg;

	assert_int_equal(result, 0);
	assert_null(ctx->job);
	++*call;
}

/* More jobs than a channel takes: as many as it takes are on it at once, and the
 * caller's thread has put them there. */
static void test_async(void **state)
{
	static struct wd_alg_comp driver;
	static struct wd_comp_ctx ctx[JOBS];
	static uint8_t outs[JOBS][SIZE + 200];
	int by_driver = 0;

	(void)state;
	driver = driver_of("async");
	driver.limits.timeout_ms = 60000;
	begin(&driver, NONE);
	hold = true;
	memset(ctx, 0, sizeof(ctx));
	memset(calls, 0, sizeof(calls));
	for (int i = 0; i < DEPTH; i++) {
		ctx[i].alg_type = WD_COMP_GZIP;
		ctx[i].comp_level = 6;
		ctx[i].driver = "async"; /* else cost decides */
		assert_int_equal(wd_alg_async_deflate(&ctx[i], count, &calls[i],
						      data, SIZE, outs[i],
						      sizeof(outs[i])),
				 0);
		assert_true(pthread_equal(submitter, pthread_self()));
	}
	assert_int_equal(most, DEPTH);
	assert_int_equal(opened, 1);
	assert_int_equal(wd_alg_poll(0), 0);
	assert_int_equal(wd_alg_wait(5), -ETIMEDOUT);
	assert_int_equal(wd_alg_cancel(&ctx[0]), -EINPROGRESS);
	hold = false;
	for (int done = 0; done < DEPTH; done += wd_alg_poll(0))
		assert_int_equal(wd_alg_wait(-1), 0);
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(calls[i], 1);
		assert_int_equal(ctx[i].in_len, SIZE);
		check_unpacks(outs[i], ctx[i].out_len);
		by_driver += !strcmp(ctx[i].used, "async");
	}
	assert_int_equal(by_driver, DEPTH);
	wd_alg_async_fini();
	end(&driver);
}

/* A driver dies with jobs on it: others do them. */
static void test_async_dies(void **state)
{
	static struct wd_alg_comp driver;
	static struct wd_comp_ctx ctx[4];
	static uint8_t outs[4][SIZE + 200];

	(void)state;
	driver = driver_of("async-dies");
	begin(&driver, NONE);
	hold = true;
	memset(calls, 0, sizeof(calls));
	for (int i = 0; i < 4; i++) {
		ctx[i] = (struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP,
					       .comp_level = 6 };
		assert_int_equal(wd_alg_async_deflate(&ctx[i], count, &calls[i],
						      data, SIZE, outs[i],
						      sizeof(outs[i])),
				 0);
	}
	hold = false;
	fault = POLL_DIES;
	/* The poll thread sees to them, too. */
	assert_int_equal(wd_alg_poll_start(), 0);
	wd_alg_async_fini();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(calls[i], 1);
		assert_string_not_equal(ctx[i].used, "async-dies");
		check_unpacks(outs[i], ctx[i].out_len);
	}
	end(&driver);
}

static void start(int n, const char *by)
{
	memset(calls, 0, sizeof(calls));
	for (int i = 0; i < n; i++) {
		slow_ctx[i] = (struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP,
						    .comp_level = 6,
						    .driver = by };
		assert_int_equal(wd_alg_async_deflate(&slow_ctx[i], count,
						      &calls[i], data, SIZE,
						      slow_outs[i],
						      sizeof(slow_outs[i])),
				 0);
	}
}

static void await(int n, const char *by)
{
	for (int done = 0; done < n; done += wd_alg_poll(0))
		assert_int_equal(wd_alg_wait(-1), 0);
	for (int i = 0; i < n; i++) {
		assert_int_equal(calls[i], 1);
		assert_string_equal(slow_ctx[i].used, by);
	}
	wd_alg_async_fini();
}

/* A device is not late because many jobs are before one, nor because nobody
 * has looked at it: all of that takes longer than the time-out of one job. */
static void test_busy(void **state)
{
	static struct wd_alg_comp driver;

	(void)state;
	driver = driver_of("busy");
	begin(&driver, ONE_BY_ONE);
	start(DEPTH, "busy");
	await(DEPTH, "busy");
	fault = NONE;
	hold = true;
	start(1, "busy");
	usleep(3000 * driver.limits.timeout_ms);
	assert_int_equal(wd_alg_poll(0), 0);
	hold = false;
	await(1, "busy");
	end(&driver);
}

/* -- a driver that sleeps --------------------------------------------------- */

static atomic_bool waiting, may_return;
static atomic_uint waits, disturbed;

/* The device has done its jobs when this returns, and not before. */
static int t_wait(void *chan, int timeout_ms)
{
	(void)chan;
	disturbed += timeout_ms < 1;
	waits++;
	waiting = true;
	while (!may_return)
		sched_yield();
	hold = false;
	waiting = false;
	return 0;
}

static int t_poll_awake(void *chan, struct wd_comp_job **done, unsigned int n)
{
	disturbed += waiting;
	return t_poll(chan, done, n);
}

static void *wait_for_one(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)wd_alg_wait(-1);
}

/* A thread that waits for a job sleeps in the driver; meanwhile others submit,
 * and nobody polls. */
static void test_wait(void **state)
{
	static struct wd_alg_comp driver;
	pthread_t thread;
	void *result;

	(void)state;
	driver = driver_of("wait");
	driver.limits.timeout_ms = 60000;
	driver.poll = t_poll_awake;
	driver.wait = t_wait;
	begin(&driver, NONE);
	hold = may_return = true;
	assert_string_equal(pack(data), "wait");
	assert_int_equal(waits, 1);
	hold = true;
	may_return = false;
	start(1, "wait");
	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, NULL), 0);
	while (!waiting)
		sched_yield();
	slow_ctx[1] = (struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP,
					    .comp_level = 6,
					    .driver = "wait" };
	assert_int_equal(wd_alg_async_deflate(&slow_ctx[1], count, &calls[1],
					      data, SIZE, slow_outs[1],
					      sizeof(slow_outs[1])),
			 0);
	assert_int_equal(wd_alg_poll(0), 0);
	assert_true(waiting);
	assert_int_equal(most, 2);
	may_return = true;
	pthread_join(thread, &result);
	assert_null(result);
	await(2, "wait");
	assert_int_equal(disturbed, 0);
	end(&driver);
}

/* -- an application's channel ---------------------------------------------- */

static unsigned int opened_for, inflates;
static bool both;

static int ch_open(void **chan, struct wd_chan *ch, unsigned int can)
{
	static int channel;

	assert_non_null(ch);
	if (!both && can != WD_COMP_CAN_DEFLATE && can != WD_COMP_CAN_INFLATE)
		return -ENOTSUP;
	opened++;
	opened_for = can;
	*chan = &channel;
	return 0;
}

static int ch_submit(void *chan, struct wd_comp_job *const *jobs,
		     unsigned int n)
{
	(void)chan;
	for (unsigned int i = 0; i < n; i++) {
		jobs[i]->done = 1;
		if (!jobs[i]->inflate) {
			work(jobs[i]);
			continue;
		}
		inflates++;
		jobs[i]->result = -ENOTSUP;
	}
	return (int)n;
}

/* A channel gets the jobs for which it was opened, and no others. */
static void test_directions(void **state)
{
	static struct wd_alg_comp driver;

	(void)state;
	driver = driver_of("directions");
	driver.can |= WD_COMP_CAN_INFLATE;
	driver.api = "directions";
	driver.open_chan = ch_open;
	driver.submit = ch_submit;
	for (int i = 0; i < 2; i++) {
		struct uacce_dev_info info = { 0 };
		struct wf_chan_core core = { 0 };
		struct wd_chan ch = { .core = &core, .dev_info = &info };
		struct wd_comp_ctx ctx = { .ch = &ch, .comp_level = 6 };
		size_t in = SIZE, len = sizeof(out), room = sizeof(plain);

		strcpy(info.api, driver.api);
		both = i;
		inflates = 0;
		begin(&driver, NONE);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, out, &len), 0);
		assert_string_equal(ctx.used, "directions");
		assert_int_equal(opened_for,
				 WD_COMP_CAN_DEFLATE |
					 (both ? WD_COMP_CAN_INFLATE : 0));
		assert_int_equal(wd_alg_inflate(&ctx, out, &len, plain, &room),
				 0);
		assert_int_equal(room, SIZE);
		assert_int_equal(inflates, both);
		assert_int_equal(opened, 1);
		core.user_close(core.user);
		end(&driver);
	}
}

/* The channel is released with jobs on it, which resets the device: other drivers
 * do them, and nobody looks at the channel any more, which may be gone. */
static void test_reset(void **state)
{
	static struct wd_alg_comp driver;
	static struct wd_comp_ctx ctx[4];
	static uint8_t outs[4][SIZE + 200];
	struct uacce_dev_info info = { .api = "reset" };
	struct wf_chan_core core = { 0 };
	struct wd_chan ch = { .core = &core, .dev_info = &info };

	(void)state;
	driver = driver_of("reset");
	driver.api = "reset";
	driver.open_chan = ch_open;
	both = true;
	begin(&driver, NONE);
	hold = true;
	memset(calls, 0, sizeof(calls));
	for (int i = 0; i < 4; i++) {
		ctx[i] = (struct wd_comp_ctx){ .ch = &ch,
					       .alg_type = WD_COMP_GZIP,
					       .comp_level = 6 };
		assert_int_equal(wd_alg_async_deflate(&ctx[i], count, &calls[i],
						      data, SIZE, outs[i],
						      sizeof(outs[i])),
				 0);
	}
	assert_int_equal(queued, 4);
	core.user_close(core.user);
	assert_int_equal(closed, 1);
	memset(&ch, 0, sizeof(ch));
	for (int done = 0; done < 4; done += wd_alg_poll(0))
		assert_int_equal(wd_alg_wait(-1), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(calls[i], 1);
		assert_string_not_equal(ctx[i].used, "reset");
		check_unpacks(outs[i], ctx[i].out_len);
	}
	wd_alg_async_fini();
	end(&driver);
}

/* -- a descriptor to wait on ----------------------------------------------- */

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

/* A job on a device, and one of a library: nobody but the library looks at the
 * device, and the descriptor tells of both. */
static void test_event(void **state)
{
	static struct wd_alg_comp driver;
	struct wd_comp_ctx ctx;
	int fd, status;
	pid_t pid;

	(void)state;
	driver = driver_of("event");
	driver.limits.timeout_ms = 60000;
	begin(&driver, NONE);
	fd = wd_alg_event_fd();
	assert_true(fd >= 0);
	assert_int_equal(wd_alg_event_fd(), fd);
	for (int library = 0; library < 2; library++) {
		ctx = (struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP,
					    .comp_level = 6,
					    .driver = library ? "zlib" :
								"event" };
		calls[0] = 0;
		hold = true;
		assert_int_equal(wd_alg_async_deflate(&ctx, count, &calls[0],
						      data, SIZE, out,
						      sizeof(out)),
				 0);
		if (!library)
			assert_false(is_readable(fd, 20));
		hold = false;
		assert_true(is_readable(fd, 60000));
		assert_int_equal(calls[0], 0); /* ours to run */
		assert_int_equal(wd_alg_poll(0), 1);
		assert_int_equal(calls[0], 1);
		assert_false(is_readable(fd, 0));
	}
	pid = fork();
	if (!pid)
		_exit(fcntl(fd, F_GETFD) >= 0); /* the parent's */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	wd_alg_async_fini();
	assert_true(wd_alg_event_fd() >= 0);
	wd_alg_async_fini();
	end(&driver);
}

/* -- registration ---------------------------------------------------------- */

static struct wd_alg_comp second;
static int second_result;
static const char *used_in_init;

static int calling_init(void)
{
	second_result = wd_alg_comp_register(&second);
	used_in_init = pack(data);
	return 0;
}

/* A driver that calls back while it is registered is told so; it does not stop
 * the process. */
static void test_calls_back(void **state)
{
	static struct wd_alg_comp driver;

	(void)state;
	second = driver_of("second");
	driver = driver_of("calls back");
	driver.init = calling_init;
	begin(&driver, NONE);
	assert_int_equal(second_result, -EDEADLK);
	assert_string_not_equal(used_in_init, "calls back");
	assert_string_equal(pack(data), "calls back");
	end(&driver);
}

/* A device that is asked first and is slow gets jobs only so that it is known; it
 * gets all of them when it has become fast. */
static void test_cost(void **state)
{
	static struct wd_alg_comp driver;
	int by_device = 0, in_a_row = 0;

	(void)state;
	driver = driver_of("slow");
	driver.limits.timeout_ms = 60000;
	begin(&driver, NONE);
	delay_us = 2000;
	for (int i = 0; i < 60; i++)
		by_device += !strcmp(pack(data), "slow");
	assert_in_range(by_device, 8, 30);
	delay_us = 0;
	for (int i = 0; i < 1000000 && in_a_row < 20; i++)
		in_a_row = strcmp(pack(data), "slow") ? 0 : in_a_row + 1;
	assert_int_equal(in_a_row, 20);
	end(&driver);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_async),
		cmocka_unit_test(test_async_dies),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_calls_back),
		cmocka_unit_test(test_cost),
	};

	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * i >> 5);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
