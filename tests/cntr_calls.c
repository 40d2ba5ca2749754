/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of fi_cntr(3) on a counter alone: values, errors, and waiting for
 * thresholds with and without time-outs, while other threads change the
 * counter.
 */
#include "msg_util.h"

#include <pthread.h>
#include <time.h>

static void nap(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static struct fid_cntr *open_cntr(struct weft_test *t, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.wait_obj = wait,
	};
	struct fid_cntr *cntr;

	CHECK_OK(fi_cntr_open(t->domain, &attr, &cntr, NULL));
	return cntr;
}

/* -- values ---------------------------------------------------------------- */

/* "A small, but undefined, delay may occur." */
static void expect(struct fid_cntr *cntr, uint64_t value, uint64_t errors)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;

	while ((fi_cntr_read(cntr) != value ||
		fi_cntr_readerr(cntr) != errors) &&
	       weft_test_ms() < end)
		;
	CHECK_EQ(fi_cntr_read(cntr), value);
	CHECK_EQ(fi_cntr_readerr(cntr), errors);
}

static void test_values(struct weft_test *t)
{
	struct fid_cntr *cntr = open_cntr(t, FI_WAIT_NONE);

	expect(cntr, 0, 0);
	CHECK_OK(fi_cntr_add(cntr, 5));
	expect(cntr, 5, 0);
	CHECK_OK(fi_cntr_add(cntr, 0));
	CHECK_OK(fi_cntr_adderr(cntr, 2));
	expect(cntr, 5, 2);
	CHECK_OK(fi_cntr_set(cntr, 1ull << 40));
	expect(cntr, 1ull << 40, 2);
	CHECK_OK(fi_cntr_seterr(cntr, 7));
	expect(cntr, 1ull << 40, 7);
	CHECK_OK(fi_cntr_adderr(cntr, 1));
	CHECK_OK(fi_cntr_add(cntr, 1));
	expect(cntr, (1ull << 40) + 1, 8);
	CHECK_OK(fi_cntr_set(cntr, 0));
	CHECK_OK(fi_cntr_seterr(cntr, 0));
	expect(cntr, 0, 0);
	CHECK_OK(fi_close(&cntr->fid));
}

/* -- waiting --------------------------------------------------------------- */

/* It ends, though a busy machine may let it end late. */
#define LATE_MS 60000

static void check_time(struct fid_cntr *cntr, uint64_t threshold, int ms)
{
	uint64_t begin = weft_test_ms(), waited;

	CHECK_EQ(fi_cntr_wait(cntr, threshold, ms), -FI_ETIMEDOUT);
	waited = weft_test_ms() - begin;
	CHECK(waited + 1 >= (uint64_t)ms);
	CHECK(waited < (uint64_t)ms + LATE_MS);
}

/* Changes a counter after a short time. */
struct change {
	struct fid_cntr *cntr;
	int (*call)(struct fid_cntr *cntr, uint64_t value);
	uint64_t value;
};

static int add(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_add(cntr, value);
}

static int set(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_set(cntr, value);
}

static int adderr(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_adderr(cntr, value);
}

static int seterr(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_seterr(cntr, value);
}

static void *change_soon(void *arg)
{
	struct change *change = arg;

	nap(30);
	CHECK_OK(change->call(change->cntr, change->value));
	return NULL;
}

/* Waits for @threshold while another thread does @change. */
static int wait_while(struct change change, uint64_t threshold, int ms)
{
	pthread_t thread;
	int ret;

	CHECK_EQ(pthread_create(&thread, NULL, change_soon, &change), 0);
	ret = fi_cntr_wait(change.cntr, threshold, ms);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	return ret;
}

static void test_wait(struct fid_cntr *cntr)
{
	/* Reached already. */
	CHECK_OK(fi_cntr_wait(cntr, 0, 0));
	CHECK_OK(fi_cntr_wait(cntr, 0, -1));
	CHECK_OK(fi_cntr_add(cntr, 10));
	CHECK_OK(fi_cntr_wait(cntr, 10, -1));
	CHECK_OK(fi_cntr_wait(cntr, 3, 100));
	/* Not reached. */
	check_time(cntr, 11, 0);
	check_time(cntr, 11, 20);
	check_time(cntr, ~0ull, 1);
	expect(cntr, 10, 0);
	/* Reached while waiting, exactly or exceeded. */
	CHECK_OK(wait_while((struct change){ cntr, add, 1 }, 11, 20000));
	CHECK_OK(wait_while((struct change){ cntr, add, 100 }, 12, -1));
	CHECK_OK(wait_while((struct change){ cntr, set, 500 }, 499, -1));
	/* Increased, but not to the threshold. */
	CHECK_EQ(wait_while((struct change){ cntr, add, 1 }, 502, 80),
		 -FI_ETIMEDOUT);
	expect(cntr, 501, 0);
	/* A new error ends the wait; an old one does not. */
	CHECK_EQ(wait_while((struct change){ cntr, adderr, 1 }, 600, 20000),
		 -FI_EAVAIL);
	CHECK_EQ(wait_while((struct change){ cntr, adderr, 1 }, 600, -1),
		 -FI_EAVAIL);
	CHECK_EQ(wait_while((struct change){ cntr, seterr, 9 }, 600, 20000),
		 -FI_EAVAIL);
	expect(cntr, 501, 9);
	check_time(cntr, 600, 20);
	/* Errors do not hide a threshold that was reached. */
	CHECK_OK(fi_cntr_wait(cntr, 501, 0));
	CHECK_OK(fi_close(&cntr->fid));
}

/* Two threads wait for two thresholds. */
static void *wait_for_100(void *arg)
{
	CHECK_OK(fi_cntr_wait(arg, 100, 20000));
	return NULL;
}

static void test_two(struct weft_test *t)
{
	struct fid_cntr *cntr = open_cntr(t, FI_WAIT_UNSPEC);
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_100, cntr),
			 0);
	nap(20);
	for (int i = 0; i < 100; i++)
		CHECK_OK(fi_cntr_add(cntr, 1));
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_OK(fi_close(&cntr->fid));
}

/* -- opening --------------------------------------------------------------- */

static void test_attributes(struct weft_test *t)
{
	struct fi_cntr_attr attr = { .events = 77 };
	struct fid_cntr *cntr;

	CHECK(fi_cntr_open(t->domain, &attr, &cntr, NULL) < 0);
	attr = (struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP,
				      .flags = 1 };
	CHECK(fi_cntr_open(t->domain, &attr, &cntr, NULL) < 0);
	attr = (struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP,
				      .wait_obj = 77 };
	CHECK(fi_cntr_open(t->domain, &attr, &cntr, NULL) < 0);
	/* Without a wait object a thread cannot wait. */
	cntr = open_cntr(t, FI_WAIT_NONE);
	CHECK(fi_cntr_wait(cntr, 1, 1) < 0);
	CHECK_EQ(fi_close(&t->domain->fid), -FI_EBUSY);
	CHECK_OK(fi_close(&cntr->fid));
	CHECK(t->info->domain_attr->cntr_cnt >= 16);
}

int main(void)
{
	const struct weft_test_opts opts = { .threading = FI_THREAD_SAFE };
	struct fi_cntr_attr other = { .wait_obj = FI_WAIT_MUTEX_COND };
	struct fid_cntr *cntr;
	struct weft_test t;

	weft_test_begin(60);
	weft_test_open(&t, &opts);
	test_values(&t);
	test_wait(open_cntr(&t, FI_WAIT_UNSPEC));
	test_wait(open_cntr(&t, FI_WAIT_FD));
	test_wait(open_cntr(&t, FI_WAIT_YIELD));
	/* A provider need not implement this one. */
	if (!fi_cntr_open(t.domain, &other, &cntr, NULL))
		test_wait(cntr);
	test_two(&t);
	test_attributes(&t);
	weft_test_close(&t);
	return 0;
}
