/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A synchronous call keeps the driver that the call before it found, and the
 * channel that is idle now. These tests check that both are not used where it
 * is no longer right: when drivers come and go or fail, and by other threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/wrap.h"

#define SIZE 1000u /* small ones have another order of drivers */
#define THREADS 4
#define CALLS 500

static int store(struct wd_comp_job *job)
{
	job->produced =
		wf_alg_stored_write(job->dst, job->src, job->src_len, true);
	job->consumed = job->src_len;
	return 0;
}

static bool lies;

static int lie(struct wd_comp_job *job)
{
	store(job);
	job->consumed += lies;
	return 0;
}

#define DRIVER(NAME, PRIORITY)                                                 \
	.name = NAME, .priority = PRIORITY, .node = -1,                        \
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED, .levels = 0x3fe,           \
	.version = WD_COMP_DRV_VERSION, .size = sizeof(struct wd_alg_comp)

static const struct wd_alg_comp low = { DRIVER("low", 1000), .deflate = store };
static const struct wd_alg_comp high = { DRIVER("high", 2000),
					 .deflate = store };

/* Returns the name of the driver that did it, at @level. */
static const char *call(const char *name, int level)
{
	struct wd_comp_ctx ctx = { .comp_level = level, .driver = name };
	uint8_t in[SIZE] = { 0 }, out[2 * SIZE];
	size_t in_len = sizeof(in), out_len = sizeof(out);

	if (wd_alg_deflate(&ctx, in, &in_len, out, &out_len))
		return "nobody";
	return ctx.used;
}

static void test_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(wd_alg_comp_register(&low), 0);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(call(NULL, 6), "low");
		assert_int_equal(wd_alg_comp_register(&high), 0);
		assert_string_equal(call(NULL, 6), "high");
		assert_string_equal(call(NULL, 6), "high");
		assert_int_equal(wd_alg_comp_unregister(&high), 0);
	}
	assert_string_equal(call(NULL, 6), "low");
	assert_int_equal(wd_alg_comp_unregister(&low), 0);
	assert_string_not_equal(call(NULL, 6), "low");
}

/* Names that differ, at one address, and other levels. */
static void test_names(void **state)
{
	struct wd_alg_comp few = low;
	char name[8];

	(void)state;
	few.levels = 1u << 6;
	assert_int_equal(wd_alg_comp_register(&few), 0);
	assert_int_equal(wd_alg_comp_register(&high), 0);
	for (int i = 0; i < 4; i++) {
		strcpy(name, i & 1 ? "low" : "high");
		assert_string_equal(call(name, 6), name);
		assert_string_equal(call(NULL, 6), "high");
		assert_string_equal(call(name, 2), i & 1 ? "nobody" : "high");
	}
	assert_int_equal(wd_alg_comp_unregister(&few), 0);
	assert_int_equal(wd_alg_comp_unregister(&high), 0);
}

/* A driver's name is its own, and goes with it: no later search looks at it. The
 * sanitizer finds out who does. */
static void test_name_goes(void **state)
{
	char *name = strdup("gone");
	struct wd_alg_comp gone = { DRIVER(name, 2000), .deflate = store };

	(void)state;
	assert_non_null(name);
	assert_int_equal(wd_alg_comp_register(&gone), 0);
	assert_string_equal(call("gone", 6), "gone");
	assert_int_equal(wd_alg_comp_unregister(&gone), 0);
	memset(name, 'x', strlen(name));
	free(name);
	assert_string_not_equal(call("libdeflate", 6), "gone");
	assert_string_equal(call("gone", 6), "nobody");
}

/* One that returns what cannot be is not asked by the next call. */
static void test_distrusted(void **state)
{
	struct wd_alg_comp bad = high;

	(void)state;
	bad.name = "bad";
	bad.deflate = lie;
	assert_int_equal(wd_alg_comp_register(&low), 0);
	assert_int_equal(wd_alg_comp_register(&bad), 0);
	assert_string_equal(call(NULL, 6), "bad");
	lies = true;
	assert_string_equal(call(NULL, 6), "low");
	lies = false;
	assert_string_equal(call(NULL, 6), "low");
	assert_int_equal(wd_alg_comp_unregister(&bad), 0);
	assert_int_equal(wd_alg_comp_unregister(&low), 0);
}

/* -- channels --------------------------------------------------------------- */

struct channel {
	atomic_bool busy;
	struct wd_comp_job *job;
};

static atomic_uint opened, closed, shared;

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	atomic_fetch_add(&opened, 1);
	*chan = calloc(1, sizeof(struct channel));
	return *chan ? 0 : -ENOMEM;
}

static void close_chan(void *chan)
{
	atomic_fetch_add(&closed, 1);
	free(chan);
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	struct channel *c = chan;

	(void)n;
	if (atomic_exchange(&c->busy, true))
		atomic_fetch_add(&shared, 1);
	c->job = jobs[0];
	return 1;
}

/* At the first look, or later. */
static int poll_chan(void *chan, struct wd_comp_job **done, unsigned int n)
{
	static atomic_uint looks;
	struct channel *c = chan;

	(void)n;
	if (!c->job || atomic_fetch_add(&looks, 1) % 3 == 0)
		return 0;
	done[0] = c->job;
	done[0]->result = store(done[0]);
	c->job = NULL;
	atomic_store(&c->busy, false);
	return 1;
}

static const struct wd_alg_comp queued = {
	DRIVER("queued", 3000),	  .open_chan = open_chan,
	.close_chan = close_chan, .submit = submit,
	.poll = poll_chan,
};

static void *many_calls(void *arg)
{
	(void)arg;
	for (int i = 0; i < CALLS; i++) {
		if (strcmp(call("queued", 6), "queued") != 0)
			return "a call failed";
	}
	return NULL;
}

/* Each has a channel of its own during a call; no more are opened than that. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	void *why;

	(void)state;
	assert_int_equal(wd_alg_comp_register(&queued), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, many_calls, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &why);
		assert_null(why);
	}
	assert_int_equal(shared, 0);
	assert_in_range(opened, 1, THREADS);
	assert_int_equal(closed, 0);
	/* Idle channels are no use of a driver. */
	assert_int_equal(wd_alg_comp_unregister(&queued), 0);
	assert_int_equal(opened, closed);
}

/* A child opens a channel of its own and leaves the parent's alone. */
static void test_fork(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(wd_alg_comp_register(&queued), 0);
	assert_string_equal(call("queued", 6), "queued");
	opened = 0;
	closed = 0;
	pid = fork();
	if (!pid) {
		bool good = !strcmp(call("queued", 6), "queued") &&
			    opened == 1 && !closed &&
			    !wd_alg_comp_unregister(&queued) && closed == 1;

		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(call("queued", 6), "queued");
	assert_int_equal(opened, 0);
	assert_int_equal(wd_alg_comp_unregister(&queued), 0);
	assert_int_equal(closed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_name_goes),
		cmocka_unit_test(test_distrusted),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
