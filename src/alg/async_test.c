/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous calls: every job's callback runs exactly once, with what the
 * synchronous call gives; also when cancelled, at teardown, from a poll thread,
 * from callbacks that submit more, and in a forked child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/crew.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifndef TSAN
#define TSAN 0 /* under it, a forked child must not start threads */
#endif

#define JOBS 64
#define SIZE 40000u

struct job {
	struct wd_comp_ctx ctx;
	uint8_t out[SIZE + 200];
	atomic_int calls;
	int result;
	pthread_t thread;
};

static uint8_t data[SIZE];
static struct job jobs[JOBS];

static void record(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct job *job = arg;

	assert_ptr_equal(ctx, &job->ctx);
	job->result = result;
	job->thread = pthread_self();
	atomic_fetch_add(&job->calls, 1);
}

static void begin(struct job *job)
{
	memset(&job->ctx, 0, sizeof(job->ctx));
	job->ctx.alg_type = WD_COMP_GZIP;
	job->ctx.comp_level = 1 + (int)((job - jobs) % 9);
	atomic_store(&job->calls, 0);
	job->result = 1;
	assert_int_equal(wd_alg_async_deflate(&job->ctx, record, job, data,
					      SIZE, job->out, sizeof(job->out)),
			 0);
}

static void check(struct job *job)
{
	static uint8_t plain[SIZE];
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP };
	size_t in = job->ctx.out_len, out = SIZE;

	assert_int_equal(atomic_load(&job->calls), 1);
	if (job->result == -ECANCELED)
		return;
	assert_int_equal(job->result, 0);
	assert_int_equal(job->ctx.in_len, SIZE);
	assert_int_equal(wd_alg_inflate(&ctx, job->out, &in, plain, &out), 0);
	assert_int_equal(out, SIZE);
	assert_memory_equal(plain, data, SIZE);
}

static void test_poll(void **state)
{
	int done = 0;

	(void)state;
	for (int i = 0; i < JOBS; i++)
		begin(&jobs[i]);
	while (done < JOBS) {
		assert_int_equal(wd_alg_wait(-1), 0);
		done += wd_alg_poll(3);
	}
	for (int i = 0; i < JOBS; i++) {
		check(&jobs[i]);
		assert_true(pthread_equal(jobs[i].thread, pthread_self()));
	}
	assert_int_equal(wd_alg_poll(0), 0);
	assert_int_equal(wd_alg_wait(5), 0);
}

static void test_busy(void **state)
{
	int ret;

	(void)state;
	begin(&jobs[0]);
	/* Until its callback has run the context is the library's. */
	ret = wd_alg_async_deflate(&jobs[0].ctx, record, &jobs[0], data, 1,
				   data, 1);
	assert_int_equal(ret, -EBUSY);
	while (!atomic_load(&jobs[0].calls)) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	check(&jobs[0]);
	assert_int_equal(
		wd_alg_async_deflate(NULL, record, NULL, data, 1, data, 1),
		-EINVAL);
	assert_int_equal(wd_alg_async_deflate(&jobs[0].ctx, NULL, NULL, data, 1,
					      data, 1),
			 -EINVAL);
}

static void test_poll_thread(void **state)
{
	(void)state;
	assert_int_equal(wd_alg_poll_start(), 0);
	assert_int_equal(wd_alg_poll_start(), -EBUSY);
	for (int i = 0; i < JOBS; i++)
		begin(&jobs[i]);
	for (int i = 0; i < JOBS; i++) {
		while (!atomic_load(&jobs[i].calls))
			usleep(100);
	}
	assert_int_equal(wd_alg_poll_stop(), 0);
	assert_int_equal(wd_alg_poll_stop(), -ENOENT);
	for (int i = 0; i < JOBS; i++) {
		check(&jobs[i]);
		assert_false(pthread_equal(jobs[i].thread, pthread_self()));
	}
}

static void test_cancel_and_fini(void **state)
{
	int cancelled = 0;

	(void)state;
	for (int round = 0; round < 10; round++) {
		int asked = 0;

		cancelled = 0;
		if (round & 1)
			wd_alg_poll_start();
		for (int i = 0; i < JOBS; i++)
			begin(&jobs[i]);
		for (int i = JOBS - 1; i >= 0; i -= 3) {
			int ret = wd_alg_cancel(&jobs[i].ctx);

			assert_true(!ret || ret == -EINPROGRESS ||
				    ret == -ENOENT);
			asked += !ret;
		}
		wd_alg_async_fini();
		for (int i = 0; i < JOBS; i++) {
			check(&jobs[i]);
			cancelled += jobs[i].result == -ECANCELED;
		}
		assert_true(cancelled >= asked);
	}
	assert_int_equal(wd_alg_cancel(&jobs[0].ctx), -ENOENT);
	/* And it can be used again. */
	test_poll(NULL);
}

struct chain {
	struct wd_comp_ctx ctx;
	uint8_t out[1000];
	int left;
};

static void again(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct chain *chain = arg;

	assert_int_equal(result, 0);
	if (--chain->left)
		assert_int_equal(wd_alg_async_deflate(ctx, again, chain, data,
						      900, chain->out, 1000),
				 0);
}

static void test_chain(void **state)
{
	static struct chain chain;

	(void)state;
	chain.left = 200;
	assert_int_equal(wd_alg_async_deflate(&chain.ctx, again, &chain, data,
					      900, chain.out, 1000),
			 0);
	while (chain.left) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
}

/* The bug it guards against: state after fork. */
static void test_fork(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		int status;
		pid_t pid;

		for (int i = 0; i < JOBS / 2; i++)
			begin(&jobs[i]);
		pid = fork();
		if (!pid) {
			/* The parent's jobs are not ours; new ones work. */
			int none = wd_alg_poll(0);
			struct job *job = &jobs[JOBS - 1];

			memset(&job->ctx, 0, sizeof(job->ctx));
			atomic_store(&job->calls, 0);
			if (TSAN)
				_exit(none);
			if (none || wd_alg_async_deflate(&job->ctx, record, job,
							 data, SIZE, job->out,
							 sizeof(job->out)))
				_exit(2);
			wd_alg_wait(-1);
			wd_alg_poll(0);
			_exit(atomic_load(&job->calls) != 1 || job->result);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		for (int i = 0; i < JOBS / 2; i++) {
			while (!atomic_load(&jobs[i].calls)) {
				wd_alg_wait(-1);
				wd_alg_poll(0);
			}
			check(&jobs[i]);
		}
	}
}

static pid_t forked;

static void fork_inside(struct wd_comp_ctx *ctx, int result, void *arg)
{
	record(ctx, result, arg);
	forked = fork();
}

/* The child returns from the callback that it was born in, and ends its own use
 * of jobs. */
static void test_fork_inside(void **state)
{
	struct job *job = &jobs[0];
	int status;

	(void)state;
	memset(&job->ctx, 0, sizeof(job->ctx));
	atomic_store(&job->calls, 0);
	assert_int_equal(wd_alg_async_deflate(&job->ctx, fork_inside, job, data,
					      SIZE, job->out, sizeof(job->out)),
			 0);
	while (!atomic_load(&job->calls)) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	if (!forked) {
		alarm(100);
		if (!TSAN)
			wd_alg_async_fini();
		_exit(0);
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * i >> 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wd_alg_async_fini();
	return 0;
}

static sem_t under_way, go_on;

static int slow_deflate(struct wd_comp_job *job)
{
	sem_post(&under_way);
	sem_wait(&go_on);
	job->consumed = job->src_len;
	job->produced = 1;
	job->dst[0] = 3;
	return 0;
}

static const struct wd_alg_comp slow = {
	.name = "slow",
	.priority = 1,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE,
	.levels = 0x3fe,
	.deflate = slow_deflate,
};

/* A job under way goes on, and says so; after its callback there is none. */
static void test_cancel_under_way(void **state)
{
	struct job *job = &jobs[0];
	int answers[4];
	size_t len;

	(void)state;
	sem_init(&under_way, 0, 0);
	sem_init(&go_on, 0, 0);
	assert_int_equal(wd_alg_comp_register(&slow), 0);
	memset(&job->ctx, 0, sizeof(job->ctx));
	job->ctx.comp_level = 1;
	job->ctx.driver = "slow";
	atomic_store(&job->calls, 0);
	assert_int_equal(wd_alg_cancel(&job->ctx), -ENOENT);
	assert_int_equal(wd_alg_async_deflate(&job->ctx, record, job, data, 10,
					      job->out, sizeof(job->out)),
			 0);
	sem_wait(&under_way);
	/* Looked at only after it may go on, lest a failure leave it there. */
	answers[0] = wd_alg_cancel(&job->ctx);
	answers[1] = wd_alg_comp_unregister(&slow);
	answers[2] = wd_alg_poll(0);
	answers[3] = wd_alg_wait(1);
	sem_post(&go_on);
	assert_int_equal(answers[0], -EINPROGRESS);
	assert_int_equal(answers[1], -EBUSY);
	assert_int_equal(answers[2], 0);
	assert_int_equal(answers[3], -ETIMEDOUT);
	while (!atomic_load(&job->calls)) {
		assert_int_equal(wd_alg_wait(-1), 0);
		wd_alg_poll(0);
	}
	len = job->ctx.in_len;
	assert_int_equal(job->result, 0);
	assert_int_equal(atomic_load(&job->calls), 1);
	assert_int_equal(len, 10);
	assert_int_equal(wd_alg_cancel(&job->ctx), -ENOENT);
	assert_int_equal(wd_alg_comp_unregister(&slow), 0);
	sem_destroy(&under_way);
	sem_destroy(&go_on);
}

#define SUBMITTERS 3
#define ENDS 200

static atomic_bool enough;

struct submitter {
	pthread_t thread;
	struct wd_comp_ctx ctx;
	uint8_t out[2000];
	unsigned int accepted;
	atomic_uint called;
};

static void count_call(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct submitter *s = arg;

	(void)ctx;
	if (!result || result == -ECANCELED)
		atomic_fetch_add(&s->called, 1);
}

static void *submit_on(void *arg)
{
	struct submitter *s = arg;

	while (!atomic_load(&enough)) {
		int ret = wd_alg_async_deflate(&s->ctx, count_call, s, data,
					       1000, s->out, sizeof(s->out));

		s->accepted += !ret;
		if (ret == -EBUSY)
			wd_alg_poll(1);
	}
	return NULL;
}

/* The bug it guards against: a job that came to the crew while that was stopped
 * was done by nobody, and wd_alg_async_fini() waited for it forever. */
static void test_fini_while_submitting(void **state)
{
	static struct submitter all[SUBMITTERS];

	(void)state;
	for (int i = 0; i < SUBMITTERS; i++) {
		all[i].ctx.comp_level = 1;
		assert_int_equal(pthread_create(&all[i].thread, NULL, submit_on,
						&all[i]),
				 0);
	}
	for (int i = 0; i < ENDS; i++) {
		usleep(i % 7 * 50);
		wd_alg_async_fini();
	}
	atomic_store(&enough, true);
	for (int i = 0; i < SUBMITTERS; i++)
		pthread_join(all[i].thread, NULL);
	wd_alg_async_fini();
	for (int i = 0; i < SUBMITTERS; i++)
		assert_int_equal(atomic_load(&all[i].called), all[i].accepted);
}

/* One task comes to the crew at the moment when the crew has just been stopped, or
 * when ->sleeper is about to sleep. */
static struct {
	atomic_bool on, asleep;
	pthread_t sleeper;
	sem_t arrived, go_on, added;
} late;

int __real_wf_alg_crew_add(struct wf_crew_task *task);
int __wrap_wf_alg_crew_add(struct wf_crew_task *task);
void __real_wf_alg_crew_stop(void);
void __wrap_wf_alg_crew_stop(void);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int __wrap_wf_alg_crew_add(struct wf_crew_task *task)
{
	int ret;

	if (!atomic_load(&late.on))
		return __real_wf_alg_crew_add(task);
	sem_post(&late.arrived);
	sem_wait(&late.go_on);
	ret = __real_wf_alg_crew_add(task);
	sem_post(&late.added);
	return ret;
}

void __wrap_wf_alg_crew_stop(void)
{
	__real_wf_alg_crew_stop();
	if (!atomic_load(&late.on) || atomic_load(&late.asleep))
		return;
	sem_post(&late.go_on);
	sem_wait(&late.added);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (atomic_load(&late.asleep) &&
	    pthread_equal(late.sleeper, pthread_self()))
		sem_post(&late.go_on);
	return __real_pthread_cond_wait(cond, mutex);
}

static void prepare_late(void)
{
	sem_init(&late.arrived, 0, 0);
	sem_init(&late.go_on, 0, 0);
	sem_init(&late.added, 0, 0);
	atomic_store(&late.on, true);
}

static unsigned int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void *begin_one(void *arg)
{
	begin(arg);
	return NULL;
}

/* The bug: a job that came to the crew after that had been stopped started a thread,
 * which was still there when wd_alg_async_fini() returned. */
static void test_fini_starts_nothing(void **state)
{
	pthread_t thread;
	unsigned int before;

	(void)state;
	wd_alg_async_fini();
	before = count_threads();
	prepare_late();
	assert_int_equal(pthread_create(&thread, NULL, begin_one, &jobs[0]), 0);
	sem_wait(&late.arrived);
	wd_alg_async_fini();
	atomic_store(&late.on, false);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&jobs[0].calls), 1);
	assert_int_equal(jobs[0].result, -ECANCELED);
	/* One that was joined may be listed for a moment. */
	for (int i = 0; i < 1000 && count_threads() > before; i++)
		usleep(10000);
	assert_true(count_threads() <= before);
	/* The next job starts anew. */
	begin(&jobs[0]);
	assert_int_equal(wd_alg_wait(-1), 0);
	wd_alg_poll(0);
	check(&jobs[0]);
	assert_int_equal(jobs[0].result, 0);
}

/* A device that has one job and fails when it is asked for it. */
static struct {
	struct wd_comp_job *job;
	atomic_bool fails;
} device;

static int open_device(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	*chan = &device;
	return 0;
}

static void close_device(void *chan)
{
	(void)chan;
	device.job = NULL;
}

static int submit_to_device(void *chan, struct wd_comp_job *const *all,
			    unsigned int n)
{
	(void)chan;
	assert_int_equal(n, 1);
	device.job = all[0];
	return 1;
}

static int poll_device(void *chan, struct wd_comp_job **done, unsigned int n)
{
	(void)chan;
	(void)done;
	(void)n;
	return device.job && atomic_load(&device.fails) ? -EIO : 0;
}

static const struct wd_alg_comp failing = {
	.name = "failing",
	.priority = 900,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,
	.levels = 0x3fe,
	.min_window = 9,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.limits = { .in_flight = 4 },
	.open_chan = open_device,
	.close_chan = close_device,
	.submit = submit_to_device,
	.poll = poll_device,
};

static void *poll_all(void *arg)
{
	(void)arg;
	wd_alg_poll(0);
	return NULL;
}

static void *fini_all(void *arg)
{
	(void)arg;
	late.sleeper = pthread_self();
	atomic_store(&late.asleep, true);
	wd_alg_async_fini();
	return NULL;
}

/* Another thread finds that the device has failed, and gives the job to the crew
 * when that has been stopped and fini sleeps: fini must hear of it. */
static void test_fini_hears_of_failure(void **state)
{
	struct timespec end;
	pthread_t poller, ender;

	(void)state;
	wd_alg_async_fini();
	assert_int_equal(wd_alg_comp_register(&failing), 0);
	begin(&jobs[0]);
	assert_non_null(device.job);
	prepare_late();
	atomic_store(&device.fails, true);
	assert_int_equal(pthread_create(&poller, NULL, poll_all, NULL), 0);
	sem_wait(&late.arrived);
	assert_int_equal(pthread_create(&ender, NULL, fini_all, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 100;
	assert_int_equal(pthread_timedjoin_np(ender, NULL, &end), 0);
	pthread_join(poller, NULL);
	atomic_store(&late.asleep, false);
	atomic_store(&late.on, false);
	check(&jobs[0]);
	assert_int_equal(jobs[0].result, 0);
	assert_int_equal(wd_alg_comp_unregister(&failing), 0);
}

#define MANY 300

struct turn {
	struct wd_comp_ctx ctx;
	uint8_t out[200];
};

static struct turn turns[MANY];
static unsigned int in_turn;

static void check_turn(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct turn *turn = arg;

	(void)ctx;
	assert_int_equal(result, 0);
	assert_ptr_equal(turn, &turns[in_turn]);
	in_turn++;
}

/* With one thread, small jobs end in the order of their submission, however many
 * of them the thread takes at once; and wd_alg_wait() returns for one that
 * wd_alg_poll() then finds. */
static void test_order(void **state)
{
	(void)state;
	wd_alg_async_fini();
	assert_int_equal(wd_alg_async_threads(1), 0);
	in_turn = 0;
	for (int i = 0; i < MANY; i++) {
		turns[i].ctx = (struct wd_comp_ctx){ .comp_level = 1 };
		assert_int_equal(wd_alg_async_deflate(&turns[i].ctx, check_turn,
						      &turns[i], data, 100,
						      turns[i].out,
						      sizeof(turns[i].out)),
				 0);
	}
	while (in_turn < MANY) {
		assert_int_equal(wd_alg_wait(-1), 0);
		assert_int_equal(wd_alg_poll(1), 1);
	}
	wd_alg_async_fini();
	assert_int_equal(wd_alg_async_threads(4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_poll),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_poll_thread),
		cmocka_unit_test(test_cancel_and_fini),
		cmocka_unit_test(test_cancel_under_way),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_inside),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_fini_while_submitting),
		cmocka_unit_test(test_fini_starts_nothing),
		cmocka_unit_test(test_fini_hears_of_failure),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
