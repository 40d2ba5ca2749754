/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle items of drivers. The bug it guards against: eight were kept, so that the
 * other threads of a machine with more processors mapped and unmapped hundreds of
 * KiB for each job.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "drv/shelf.h"

#define THREADS 24
#define ROUNDS 2000

static struct wf_drv_shelf shelf;
static atomic_uint made, freed;
static pthread_barrier_t all;

static void *take(void)
{
	void *item = wf_drv_shelf_take(&shelf);

	if (item)
		return item;
	atomic_fetch_add(&made, 1);
	item = malloc(1);
	assert_non_null(item);
	return item;
}

static void drop(void *item)
{
	atomic_fetch_add(&freed, 1);
	free(item);
}

/* All have one at the same time, again and again. */
static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		void *item = take();

		*(char *)item = 1;
		if (i % 100 == 0)
			pthread_barrier_wait(&all);
		wf_drv_shelf_put(&shelf, item, drop);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	pthread_barrier_init(&all, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL),
				 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all);
	assert_int_equal(atomic_load(&made), THREADS);
	assert_int_equal(atomic_load(&freed), 0);
	wf_drv_shelf_clear(&shelf, drop);
	assert_int_equal(atomic_load(&freed), THREADS);
	assert_null(wf_drv_shelf_take(&shelf));
}

static void *once(void *arg)
{
	void *item = take();

	(void)arg;
	wf_drv_shelf_put(&shelf, item, drop);
	return NULL;
}

/* Threads that come and go use what those before them have left. */
static void test_one_by_one(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&made, 0);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(pthread_create(&thread, NULL, once, NULL), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(atomic_load(&made), 1);
	wf_drv_shelf_clear(&shelf, drop);
}

static void test_full(void **state)
{
	void *items[WF_DRV_SHELF_PLACES + 1];

	(void)state;
	atomic_store(&freed, 0);
	for (unsigned int i = 0; i < WF_DRV_SHELF_PLACES + 1; i++)
		items[i] = take();
	for (unsigned int i = 0; i < WF_DRV_SHELF_PLACES + 1; i++)
		wf_drv_shelf_put(&shelf, items[i], drop);
	assert_int_equal(atomic_load(&freed), 1);
	wf_drv_shelf_clear(&shelf, drop);
	assert_int_equal(atomic_load(&freed), WF_DRV_SHELF_PLACES + 1);
}

/* The bug it guards against: 64 working states of 9 MiB were kept. */
static void test_large(void **state)
{
	static struct wf_drv_shelf large = { .large = 9u << 20 },
				   other = { .large = 9u << 20 };
	void *items[8];

	(void)state;
	atomic_store(&freed, 0);
	for (int i = 0; i < 8; i++)
		items[i] = take();
	/* 27 MiB of 32, on all shelves together. */
	for (int i = 0; i < 8; i++)
		wf_drv_shelf_put(i % 2 ? &large : &other, items[i], drop);
	assert_int_equal(atomic_load(&freed), 5);
	items[0] = wf_drv_shelf_take(&large);
	assert_non_null(items[0]);
	wf_drv_shelf_put(&other, items[0], drop);
	assert_int_equal(atomic_load(&freed), 5);
	wf_drv_shelf_clear(&large, drop);
	wf_drv_shelf_clear(&other, drop);
	assert_int_equal(atomic_load(&freed), 8);
	/* Nothing counts any more. */
	for (int i = 0; i < 3; i++)
		wf_drv_shelf_put(&large, take(), drop);
	assert_int_equal(atomic_load(&freed), 8);
	wf_drv_shelf_clear(&large, drop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
