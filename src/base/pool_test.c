/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of pools.
 */
#include "base/pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_limit_is_hard(void **state)
{
	struct wf_pool pool;
	void *objs[10];

	(void)state;
	/* 4 to a slab: the last slab must not go past the limit. */
	wf_base_pool_init(&pool, 40, 4, 10);
	for (int i = 0; i < 10; i++) {
		objs[i] = wf_base_pool_get(&pool);
		assert_non_null(objs[i]);
	}
	assert_null(wf_base_pool_get(&pool));
	assert_int_equal(wf_base_pool_grow(&pool), -EAGAIN);
	assert_int_equal(pool.in_use, 10);
	assert_int_equal(pool.total, 10);
	wf_base_pool_put(&pool, objs[3]);
	assert_ptr_equal(wf_base_pool_get(&pool), objs[3]);
	assert_null(wf_base_pool_get(&pool));
	wf_base_pool_fini(&pool);
}

static void test_objects_do_not_overlap(void **state)
{
	enum { COUNT = 500, SIZE = 72 };
	unsigned char *objs[COUNT];
	struct wf_pool pool;

	(void)state;
	wf_base_pool_init(&pool, SIZE, 7, 0);
	for (int i = 0; i < COUNT; i++) {
		objs[i] = wf_base_pool_get(&pool);
		assert_non_null(objs[i]);
		assert_int_equal((uintptr_t)objs[i] % sizeof(void *), 0);
		memset(objs[i], i & 0xff, SIZE);
	}
	for (int i = 0; i < COUNT; i++) {
		for (int j = 0; j < SIZE; j++)
			assert_int_equal(objs[i][j], i & 0xff);
	}
	assert_int_equal(pool.in_use, COUNT);
	for (int i = 0; i < COUNT; i++)
		wf_base_pool_put(&pool, objs[i]);
	assert_int_equal(pool.in_use, 0);
	wf_base_pool_fini(&pool);
}

static void test_reuse_does_not_grow(void **state)
{
	struct wf_pool pool;
	size_t total;

	(void)state;
	wf_base_pool_init(&pool, 64, 8, 0);
	wf_base_pool_put(&pool, wf_base_pool_get(&pool));
	total = pool.total;
	for (int i = 0; i < 100000; i++) {
		void *a = wf_base_pool_get(&pool), *b = wf_base_pool_get(&pool);

		wf_base_pool_put(&pool, a);
		wf_base_pool_put(&pool, b);
	}
	assert_int_equal(pool.total, total);
	wf_base_pool_fini(&pool);
}

static void test_small_objects(void **state)
{
	struct wf_pool pool;
	char *a, *b;

	(void)state;
	/* Smaller than the link of the free list. */
	wf_base_pool_init(&pool, 1, 4, 4);
	a = wf_base_pool_get(&pool);
	b = wf_base_pool_get(&pool);
	assert_non_null(a);
	assert_non_null(b);
	assert_true((a > b ? a - b : b - a) >= (ptrdiff_t)sizeof(void *));
	wf_base_pool_fini(&pool);
}

/* Memory of the caller's is used up to the limit, in order, and is not freed. */
static void test_fed(void **state)
{
	_Alignas(64) char memory[64 * 7];
	struct wf_pool pool;

	(void)state;
	wf_base_pool_init(&pool, 128, 2, 2);
	wf_base_pool_feed(&pool, memory, sizeof(memory));
	assert_ptr_equal(wf_base_pool_get(&pool), memory);
	assert_ptr_equal(wf_base_pool_get(&pool), memory + 128);
	assert_null(wf_base_pool_get(&pool));
	wf_base_pool_fini(&pool);
	/* Further objects come from slabs. */
	wf_base_pool_init(&pool, 128, 2, 4);
	wf_base_pool_feed(&pool, memory, sizeof(memory));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(wf_base_pool_get(&pool), memory + i * 128);
	assert_non_null(wf_base_pool_get(&pool));
	assert_null(wf_base_pool_get(&pool));
	wf_base_pool_fini(&pool);
}

static void test_fini_unused(void **state)
{
	struct wf_pool pool;

	(void)state;
	wf_base_pool_init(&pool, 64, 8, 8);
	wf_base_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_is_hard),
		cmocka_unit_test(test_objects_do_not_overlap),
		cmocka_unit_test(test_reuse_does_not_grow),
		cmocka_unit_test(test_small_objects),
		cmocka_unit_test(test_fed),
		cmocka_unit_test(test_fini_unused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
