/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Choice by cost. First by simulated time, so that nothing depends on the load
 * of the machine: a device that does one job after the other, one that does many
 * at once and takes long for each, and a library with two threads; who gets a
 * job depends on how many there are. Then asynchronous jobs on real time: none is
 * lost, and the account of what is under way is right.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/choice.h"
#include "alg/wrap.h"
#include "base/clock.h"
#include "chan/uacce.h"

#define SIZE 4000u
#define MOST 200
#define LEVELS 0x3feu

/* -- drivers --------------------------------------------------------------- */

static bool hold;    /* devices finish nothing */
static bool refuses; /* wide has no channels */

static struct wd_comp_job *held[MOST];
static unsigned int n_held;

static int open_any(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	*chan = held;
	return 0;
}

static int open_wide(void **chan, struct wd_chan *ch, unsigned int can)
{
	return refuses ? -ENODEV : open_any(chan, ch, can);
}

static void close_chan(void *chan)
{
	(void)chan;
}

static int store(struct wd_comp_job *job)
{
	job->produced =
		wf_alg_stored_write(job->dst, job->src, job->src_len, true);
	job->consumed = job->src_len;
	job->result = 0;
	return 0;
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	(void)chan;
	for (unsigned int i = 0; i < n; i++) {
		assert_true(n_held < MOST);
		held[n_held++] = jobs[i];
	}
	return (int)n;
}

static int poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	unsigned int count = 0;

	(void)chan;
	while (count < n && n_held && !hold) {
		done[count] = held[--n_held];
		store(done[count++]);
	}
	return (int)count;
}

#define DEVICE(NAME, PRIORITY, OPEN, DEPTH)                                    \
	{                                                                      \
		.name = NAME, .priority = (PRIORITY),                          \
		.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED, .levels = LEVELS,  \
		.min_window = 8, .version = WD_COMP_DRV_VERSION,               \
		.size = sizeof(struct wd_alg_comp),                            \
		.limits = { .in_flight = (DEPTH), .timeout_ms = 60000 },       \
		.open_chan = (OPEN), .close_chan = close_chan,                 \
		.submit = submit, .poll = poll,                                \
	}

/* Its jobs take at least 1 ms. */
static int submit_slow(void *chan, struct wd_comp_job *const *jobs,
		       unsigned int n)
{
	static const struct timespec slow = { .tv_nsec = 1000000 };

	nanosleep(&slow, NULL);
	return submit(chan, jobs, n);
}

static const struct wd_alg_comp serial = DEVICE("serial", 2000, open_any, MOST);
static const struct wd_alg_comp wide = DEVICE("wide", 1900, open_wide, MOST);
static const struct wd_alg_comp narrow = DEVICE("narrow", 2000, open_any, 1);
/* Behind the library by itself; WD_COMP_CONSIDER names it. */
static const struct wd_alg_comp low = DEVICE("low", 1, open_any, MOST);
static const struct wd_alg_comp library = {
	.name = "library",
	.priority = 1000,
	.can = WD_COMP_CAN_DEFLATE,
	.levels = LEVELS,
	.min_window = 8,
	.deflate = store,
};

/* -- simulated time -------------------------------------------------------- */

struct model {
	const char *name;
	uint64_t ns;	     /* for a job */
	unsigned int units;  /* that work at the same time; 0: any number */
	uint64_t free_at[2]; /* of units */
	unsigned int got;
};

static struct model models[3];
static unsigned int n_models, unmeasured;
static uint64_t now = 1000000;

static void add_model(const struct wd_alg_comp *driver, uint64_t ns,
		      unsigned int units)
{
	assert_int_equal(wd_alg_comp_register(driver), 0);
	models[n_models++] = (struct model){ .name = driver->name,
					     .ns = ns,
					     .units = units };
}

static struct model *model_of(const char *name)
{
	for (unsigned int i = 0; i < n_models; i++) {
		if (!strcmp(models[i].name, name))
			return &models[i];
	}
	fail_msg("%s", name);
	return NULL;
}

/* When a job that begins now ends. */
static uint64_t end_of(struct model *m)
{
	unsigned int unit = m->units == 2 && m->free_at[1] < m->free_at[0];
	uint64_t from = now;

	if (m->units && m->free_at[unit] > from)
		from = m->free_at[unit];
	m->free_at[unit] = from + m->ns;
	return from + m->ns;
}

struct event {
	struct wf_alg_cost *cost;
	struct wf_alg_start start;
	uint64_t at;
};

/* @n jobs that begin at once; time goes on until all have ended. */
static void batch(int level, unsigned int n)
{
	struct wd_comp_job job = { .src_len = SIZE, .level = level };
	struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
				    .level = level };
	struct event events[MOST];

	for (unsigned int i = 0; i < n; i++) {
		struct event *e = &events[i];
		struct wf_alg_choice choice;
		struct wf_alg_want behind = want;
		struct wf_alg_seen seen;
		struct model *m;

		wf_alg_choice_later(&want, &job, &choice);
		assert_true(choice.found);
		e->cost = choice.cost;
		unmeasured += !e->cost;
		behind.except |= choice.passed;
		if (choice.slot) {
			m = model_of(wf_alg_registry_driver(choice.slot)->name);
			wf_alg_registry_put(choice.slot);
		} else {
			assert_true(wf_alg_registry_look(&behind, &seen));
			m = model_of(seen.driver->name);
		}
		m->got++;
		if (e->cost)
			e->start = wf_alg_cost_begin(e->cost, &job, now);
		e->at = end_of(m);
	}
	for (unsigned int left = n; left; left--) {
		unsigned int first = 0;

		for (unsigned int i = 1; i < left; i++) {
			if (events[i].at < events[first].at)
				first = i;
		}
		now = events[first].at;
		if (events[first].cost)
			wf_alg_cost_end(events[first].cost, &job,
					events[first].start, true, now);
		events[first] = events[left - 1];
	}
}

/* Jobs that did not go to this driver though it comes first, as `weft stat` has
 * them. */
static uint64_t passed_over(const char *name)
{
	struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
				    .level = 5,
				    .name = name };
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);
	const struct wf_stats_page *page =
		wf_alg_stats_page(wf_alg_registry_stats(slot));

	wf_alg_registry_put(slot);
	return page->items[WF_ALG_STAT_passed_over].value;
}

static void forget(void)
{
	for (unsigned int i = 0; i < n_models; i++)
		models[i].got = 0;
}

static void drop(const struct wd_alg_comp *driver)
{
	wd_alg_async_fini();
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
	n_models = 0;
}

/*
 * Alone, a job ends soonest on the serial device. Of a hundred, few do: most go to
 * the wide one, which at first is known by one job at a time, as one that takes
 * 24 ms for each.
 */
static void test_depth(void **state)
{
	uint64_t began, serial_passed, wide_passed;

	(void)state;
	add_model(&serial, 2 * WF_NS_PER_MS, 1);
	add_model(&wide, 24 * WF_NS_PER_MS, 0);
	add_model(&library, 16 * WF_NS_PER_MS, 2);
	for (int i = 0; i < 24; i++)
		batch(1, 1);
	for (unsigned int i = 0; i < n_models; i++)
		assert_int_equal(models[i].got, 8);
	forget();
	for (int i = 0; i < 64; i++)
		batch(1, 1);
	assert_int_equal(models[0].got, 64);
	for (int i = 0; i < 10; i++)
		batch(1, 100);
	forget();
	began = now;
	serial_passed = passed_over("serial");
	wide_passed = passed_over("wide");
	batch(1, 100);
	assert_true(models[1].got > 70);
	assert_true(models[0].got > 5);
	/* Each job that went to one behind it, and no others. */
	assert_int_equal(passed_over("serial") - serial_passed,
			 100 - models[0].got);
	assert_int_equal(passed_over("wide") - wide_passed, models[2].got);
	/* The serial one alone needs 200 ms, the library 800. */
	assert_true(now - began < 50 * WF_NS_PER_MS);
	/* Single jobs go to the serial one as before. */
	forget();
	for (int i = 0; i < 20; i++)
		batch(1, 1);
	assert_true(models[0].got >= 19);
	drop(&serial);
	drop(&wide);
	drop(&library);
}

/* A device that never wins gets the jobs by which it is known, then so few that
 * they take a 64th of the time, however many there are at a time: here one of
 * 8000. It got one of 64, and a program of single jobs was 2.5 times as slow as
 * without it. When it has become fast, it gets them. */
static void test_kept_out(void **state)
{
	uint64_t passed;

	(void)state;
	add_model(&narrow, 20 * WF_NS_PER_MS, 1);
	add_model(&library, WF_NS_PER_MS / 5, 2);
	for (int i = 0; i < 16; i++)
		batch(2, 1);
	forget();
	passed = passed_over("narrow");
	for (int i = 0; i < 128; i++)
		batch(2, 1);
	assert_int_equal(models[0].got, 0);
	for (int i = 0; i < 32; i++)
		batch(2, 16);
	assert_int_equal(models[0].got, 0);
	for (int i = 0; i < 8000; i++)
		batch(2, 1);
	assert_int_equal(models[0].got, 1);
	/* Compared or not. */
	assert_int_equal(passed_over("narrow") - passed,
			 128 + 32 * 16 + 8000 - 1);
	models[0].ns = WF_NS_PER_MS / 100;
	for (int i = 0; i < 8000 * 3; i++)
		batch(2, 1);
	forget();
	passed = passed_over("narrow");
	for (int i = 0; i < 64; i++)
		batch(2, 1);
	assert_true(models[0].got >= 60);
	assert_int_equal(passed_over("narrow") - passed, 64 - models[0].got);
	drop(&narrow);
	drop(&library);
}

/* Two jobs at once are no queue for a library with two threads: when that is
 * known, neither goes to a device that takes longer. The second one did, and both
 * were waited for. Of twenty, the device gets its part. */
static void test_pool(void **state)
{
	uint64_t began;

	(void)state;
	add_model(&wide, 20 * WF_NS_PER_MS, 0);
	add_model(&library, 16 * WF_NS_PER_MS, 2);
	for (int i = 0; i < 16; i++)
		batch(5, 1);
	for (int i = 0; i < 20; i++)
		batch(5, 20);
	forget();
	began = now;
	batch(5, 20);
	assert_true(model_of("wide")->got > 10);
	assert_true(now - began < 50 * WF_NS_PER_MS);
	forget();
	began = now;
	for (int i = 0; i < 20; i++)
		batch(5, 2);
	assert_int_equal(model_of("wide")->got, 0);
	assert_true(now - began == 20 * 16 * WF_NS_PER_MS);
	drop(&wide);
	drop(&library);
}

/* A single slow job, because the process had lost its processor, does not
 * banish a driver. */
static void test_outlier(void **state)
{
	(void)state;
	add_model(&serial, 2 * WF_NS_PER_MS, 1);
	add_model(&library, 4 * WF_NS_PER_MS, 2);
	for (int i = 0; i < 16; i++)
		batch(3, 1);
	models[0].ns = WF_NS_PER_S;
	batch(3, 1);
	models[0].ns = 2 * WF_NS_PER_MS;
	forget();
	for (int i = 0; i < 20; i++)
		batch(3, 1);
	assert_true(models[0].got >= 19);
	drop(&serial);
	drop(&library);
}

/* By priority it would never be asked. */
static void test_considered(void **state)
{
	(void)state;
	add_model(&low, WF_NS_PER_MS, 1);
	add_model(&library, 20 * WF_NS_PER_MS, 2);
	for (int i = 0; i < 16; i++)
		batch(4, 1);
	forget();
	for (int i = 0; i < 64; i++)
		batch(4, 1);
	assert_int_equal(model_of("low")->got, 64);
	drop(&low);
	drop(&library);
}

static uint64_t backlog_of(const char *name);

/* Small jobs that a device is far from winning: most of them are not measured, and
 * the account is right nevertheless. If there are so many that it wins, it gets
 * its part. */
static void test_small(void **state)
{
	(void)state;
	add_model(&wide, 10 * WF_NS_PER_MS, 0);
	add_model(&library, WF_NS_PER_MS / 100, 2);
	for (int i = 0; i < 16; i++)
		batch(6, 1);
	for (int i = 0; i < 20; i++)
		batch(6, 100);
	forget();
	unmeasured = 0;
	for (int i = 0; i < 16; i++)
		batch(6, 100);
	assert_int_equal(model_of("wide")->got, 0);
	assert_in_range(unmeasured, 1400, 1550);
	assert_int_equal(backlog_of("library"), 0);
	drop(&wide);
	drop(&library);
	/* 200 jobs are 1 ms of the library's. */
	add_model(&wide, WF_NS_PER_MS / 3, 0);
	add_model(&library, WF_NS_PER_MS / 100, 2);
	for (int i = 0; i < 16; i++)
		batch(8, 1);
	for (int i = 0; i < 60; i++)
		batch(8, 200);
	forget();
	batch(8, 200);
	assert_true(model_of("wide")->got > 50);
	assert_int_equal(backlog_of("library"), 0);
	drop(&wide);
	drop(&library);
}

/* The times of a driver are kept apart for threads near to its device and far
 * from it: no machine of one node would show it, so the device moves. */
static void test_distance(void **state)
{
	static struct wf_alg_cost cost, other;
	struct wd_comp_job job = { .src_len = SIZE, .level = 1 };
	uint64_t near;

	(void)state;
	cost.node = wf_chan_uacce_here();
	other.node = -1;
	for (int i = 0; i < 8; i++) {
		assert_true(wf_alg_cost_is_new(&cost, &job));
		wf_alg_cost_end(&cost, &job,
				wf_alg_cost_begin(&cost, &job, now), true,
				now + WF_NS_PER_MS);
		now += 2 * WF_NS_PER_MS;
		wf_alg_cost_note(&other, &job, 2 * WF_NS_PER_MS);
	}
	assert_false(wf_alg_cost_is_new(&cost, &job));
	near = wf_alg_cost_expect(&cost, &job);
	assert_in_range(near, WF_NS_PER_MS * 9 / 10, WF_NS_PER_MS * 11 / 10);
	assert_int_equal(wf_alg_cost_prefers_next(&cost, &other, &job, false),
			 0);
	cost.node++;
	assert_true(wf_alg_cost_is_new(&cost, &job));
	for (int i = 0; i < 8; i++) {
		wf_alg_cost_end(&cost, &job,
				wf_alg_cost_begin(&cost, &job, now), true,
				now + 3 * WF_NS_PER_MS);
		now += 4 * WF_NS_PER_MS;
	}
	assert_true(wf_alg_cost_expect(&cost, &job) > 2 * near);
	assert_int_equal(wf_alg_cost_prefers_next(&cost, &other, &job, false),
			 1);
	cost.node--;
	assert_int_equal(wf_alg_cost_expect(&cost, &job), near);
	assert_int_equal(wf_alg_cost_prefers_next(&cost, &other, &job, false),
			 0);
}

static struct wf_alg_cost slow_cost = { .node = -1 },
			  quick_cost = { .node = -1 };

static void *probe_once(void *arg)
{
	struct wd_comp_job *job = arg;

	return (void *)(uintptr_t)(!wf_alg_cost_is_settled(&slow_cost, job) &&
				   !wf_alg_cost_prefers_next(
					   &slow_cost, &quick_cost, job, true));
}

/* The slower one gets a small part of the time, also where a thread does a single
 * job: nothing is counted in advance. */
static void test_probes(void **state)
{
	struct wd_comp_job job = { .src_len = 4096, .level = 1 };
	unsigned int probes = 0;
	pthread_t thread;
	void *probe;

	(void)state;
	for (int i = 0; i < 8; i++) {
		wf_alg_cost_note(&slow_cost, &job, 100 * WF_NS_PER_US);
		wf_alg_cost_note(&quick_cost, &job, 10 * WF_NS_PER_US);
	}
	/* A probe is due after 64 * 100 us, which are 640 jobs. */
	for (int i = 0; i < 600; i++) {
		assert_int_equal(
			pthread_create(&thread, NULL, probe_once, &job), 0);
		pthread_join(thread, &probe);
		probes += !!probe;
	}
	assert_int_equal(probes, 0);
	/* In one thread, 15 of 16 jobs are settled, and count nevertheless. */
	for (int i = 0; i < 6400; i++)
		probes += !!probe_once(&job);
	assert_in_range(probes, 8, 11);
	/* Two kinds in turn do not disturb each other. */
	for (int level = 1; level < 10; level += 8) {
		job.level = level;
		for (int i = 0; i < 8; i++) {
			wf_alg_cost_note(&slow_cost, &job, 100 * WF_NS_PER_US);
			wf_alg_cost_note(&quick_cost, &job, 10 * WF_NS_PER_US);
		}
		wf_alg_cost_prefers_next(&slow_cost, &quick_cost, &job, true);
	}
	assert_true(wf_alg_cost_is_settled(&slow_cost, &job));
	job.level = 1;
	assert_true(wf_alg_cost_is_settled(&slow_cost, &job));
}

/* -- asynchronous jobs ----------------------------------------------------- */

static uint8_t data[SIZE];
static struct wd_comp_ctx ctxs[MOST];
static uint8_t outs[MOST][2 * SIZE];
static atomic_int failed, over;

static void is_over(struct wd_comp_ctx *ctx, int result, void *arg)
{
	(void)arg;
	atomic_fetch_add(&failed, result || ctx->in_len != SIZE);
	atomic_fetch_add(&over, 1);
}

static void start(int level, unsigned int n, const char *name)
{
	atomic_store(&over, 0);
	atomic_store(&failed, 0);
	for (unsigned int i = 0; i < n; i++) {
		ctxs[i] = (struct wd_comp_ctx){ .comp_level = level,
						.driver = name };
		assert_int_equal(wd_alg_async_deflate(&ctxs[i], is_over, NULL,
						      data, SIZE, outs[i],
						      sizeof(outs[i])),
				 0);
	}
}

static void await(unsigned int n)
{
	while (atomic_load(&over) < (int)n) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	assert_int_equal(atomic_load(&failed), 0);
}

static unsigned int count(unsigned int n, const char *name)
{
	unsigned int by = 0;

	for (unsigned int i = 0; i < n; i++)
		by += !strcmp(ctxs[i].used, name);
	return by;
}

static uint64_t backlog_of(const char *name)
{
	struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
				    .level = 5,
				    .name = name };
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);
	uint64_t backlog = wf_alg_registry_cost(slot)->backlog;

	wf_alg_registry_put(slot);
	return backlog;
}

/* Jobs of a thread that waits: a device that cannot win at their size is not asked,
 * and most of the jobs are neither compared nor measured. */
static void test_small_now(void **state)
{
	struct wd_alg_comp slow = serial;
	struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
				    .level = 9,
				    .name = "library" };
	unsigned int by_device = 0, measured = 0;
	struct wf_alg_slot *slot;
	uint64_t passed;

	(void)state;
	slow.submit = submit_slow;
	assert_int_equal(wd_alg_comp_register(&slow), 0);
	assert_int_equal(wd_alg_comp_register(&library), 0);
	slot = wf_alg_registry_get(&want);
	passed = passed_over("serial");
	for (int i = 0; i < 1000; i++) {
		struct wd_comp_ctx ctx = { .comp_level = 9 };
		size_t in = SIZE, out = sizeof(outs[0]);

		assert_int_equal(wd_alg_deflate(&ctx, data, &in, outs[0], &out),
				 0);
		by_device += !strcmp(ctx.used, "serial");
	}
	for (int size = 0; size < WF_ALG_COST_SIZES; size++)
		measured += wf_alg_registry_cost(slot)->of[0][9][size].jobs;
	/* Eight to know it; a slow machine may give it a few more. */
	assert_in_range(by_device, 8, 40);
	assert_int_equal(passed_over("serial") - passed, 1000 - by_device);
	assert_in_range(measured, 8, 300);
	wf_alg_registry_put(slot);
	assert_int_equal(wd_alg_comp_unregister(&slow), 0);
	assert_int_equal(wd_alg_comp_unregister(&library), 0);
}

/* One that has room for a single job, and one whose channels cannot be opened:
 * the rest goes to the library, and nothing waits. The name decides where there
 * is one. */
static void test_full(void **state)
{
	(void)state;
	refuses = true;
	hold = true;
	assert_int_equal(wd_alg_comp_register(&narrow), 0);
	assert_int_equal(wd_alg_comp_register(&wide), 0);
	assert_int_equal(wd_alg_comp_register(&library), 0);
	start(5, 40, NULL);
	assert_int_equal(backlog_of("narrow"), SIZE);
	while (atomic_load(&over) < 39) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	hold = false;
	await(40);
	assert_int_equal(count(40, "narrow"), 1);
	assert_int_equal(count(40, "library"), 39);
	assert_int_equal(backlog_of("narrow"), 0);
	assert_int_equal(backlog_of("wide"), 0);
	assert_int_equal(backlog_of("library"), 0);
	refuses = false;
	start(5, 10, "library");
	await(10);
	assert_int_equal(count(10, "library"), 10);
	start(5, 10, "wide");
	await(10);
	assert_int_equal(count(10, "wide"), 10);
	drop(&narrow);
	drop(&wide);
	drop(&library);
}

/* Jobs under way are the parent's; else a child would avoid the device
 * forever. */
static void test_fork(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	hold = true;
	assert_int_equal(wd_alg_comp_register(&serial), 0);
	assert_int_equal(wd_alg_comp_register(&library), 0);
	start(6, 1, NULL);
	assert_int_equal(backlog_of("serial"), SIZE);
	pid = fork();
	if (!pid)
		_exit(backlog_of("serial") != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hold = false;
	await(1);
	assert_int_equal(backlog_of("serial"), 0);
	drop(&serial);
	drop(&library);
}

/* Jobs that are cancelled before they begin leave nothing in the account. */
static void test_cancelled(void **state)
{
	(void)state;
	hold = true;
	assert_int_equal(wd_alg_comp_register(&narrow), 0);
	assert_int_equal(wd_alg_comp_register(&library), 0);
	start(7, 60, NULL);
	for (unsigned int i = 0; i < 60; i++)
		wd_alg_cancel(&ctxs[i]);
	hold = false;
	wd_alg_async_fini();
	assert_int_equal(atomic_load(&over), 60);
	assert_int_equal(backlog_of("library"), 0);
	assert_int_equal(backlog_of("narrow"), 0);
	drop(&narrow);
	drop(&library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_kept_out),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_outlier),
		cmocka_unit_test(test_considered),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_small_now),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_cancelled),
	};

	setenv("WD_COMP_CONSIDER", "narrower,low", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
