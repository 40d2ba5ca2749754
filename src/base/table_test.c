/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the table of operations: numbers are unique, stay what they
 * are while it grows, and end at WF_TABLE_MAX.
 */
#include "base/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int things[WF_TABLE_MAX + 1];

static void test_empty(void **state)
{
	struct wf_table table = { 0 };

	(void)state;
	assert_null(wf_base_table_get(&table, 0));
	assert_null(wf_base_table_get(&table, UINT32_MAX));
	wf_base_table_fini(&table);
	wf_base_table_fini(&table);
}

/* Up to the limit, none twice, and after it what was given back. */
static void test_add_until_full(void **state)
{
	struct wf_table table = { 0 };

	(void)state;
	for (uint32_t i = 0; i < WF_TABLE_MAX; i++) {
		int64_t number = wf_base_table_add(&table, &things[i]);

		assert_in_range(number, 0, WF_TABLE_MAX - 1);
		assert_int_equal(number, i);
		assert_true(table.room <= WF_TABLE_MAX);
	}
	assert_int_equal(table.count, WF_TABLE_MAX);
	assert_int_equal(wf_base_table_add(&table, &things[0]), -ENOSPC);
	for (uint32_t i = 0; i < WF_TABLE_MAX; i++)
		assert_ptr_equal(wf_base_table_get(&table, i), &things[i]);
	wf_base_table_del(&table, 4711);
	assert_null(wf_base_table_get(&table, 4711));
	assert_int_equal(wf_base_table_add(&table, &things[1]), 4711);
	assert_int_equal(wf_base_table_add(&table, &things[0]), -ENOSPC);
	wf_base_table_fini(&table);
}

static void test_random(void **state)
{
	enum { KEPT = 500 };
	struct wf_table table = { 0 };
	int64_t numbers[KEPT];
	uint64_t random = 1;
	uint32_t count = 0;

	(void)state;
	for (int i = 0; i < KEPT; i++)
		numbers[i] = -1;
	for (int round = 0; round < 200000; round++) {
		uint32_t i;

		random = random * 6364136223846793005u + 1442695040888963407u;
		i = (uint32_t)(random >> 33) % KEPT;
		if (numbers[i] >= 0) {
			assert_ptr_equal(
				wf_base_table_get(&table, (uint32_t)numbers[i]),
				&things[i]);
			wf_base_table_del(&table, (uint32_t)numbers[i]);
			numbers[i] = -1;
			count--;
		} else {
			numbers[i] = wf_base_table_add(&table, &things[i]);
			assert_true(numbers[i] >= 0);
			count++;
		}
		assert_int_equal(table.count, count);
	}
	assert_true(table.room <= 512); /* it does not grow for nothing */
	for (int i = 0; i < KEPT; i++) {
		if (numbers[i] >= 0)
			assert_ptr_equal(
				wf_base_table_get(&table, (uint32_t)numbers[i]),
				&things[i]);
	}
	wf_base_table_fini(&table);
}

/* Numbers that the peer chose, in any order, up to the last one. */
static void test_put(void **state)
{
	static const uint32_t chosen[] = { 15,	  16, 0, 1000, WF_TABLE_MAX - 1,
					   40000, 1,  17 };
	const size_t count = sizeof(chosen) / sizeof(chosen[0]);
	struct wf_table table = { 0 };

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_null(wf_base_table_get(&table, chosen[i]));
		assert_int_equal(
			wf_base_table_put(&table, chosen[i], &things[i]), 0);
		assert_int_equal(table.count, i + 1);
	}
	assert_int_equal(table.room, WF_TABLE_MAX);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(wf_base_table_get(&table, chosen[i]),
				 &things[i]);
	assert_null(wf_base_table_get(&table, 2));
	assert_null(wf_base_table_get(&table, WF_TABLE_MAX));
	for (size_t i = 0; i < count; i++)
		wf_base_table_del(&table, chosen[i]);
	assert_int_equal(table.count, 0);
	wf_base_table_fini(&table);
}

/* A name is a number and something that makes it differ. */
static void test_number_of_name(void **state)
{
	(void)state;
	assert_int_equal(wf_base_table_number(7), 7);
	assert_int_equal(wf_base_table_number(7 + 3 * WF_TABLE_MAX), 7);
	assert_int_equal(wf_base_table_number(UINT32_MAX), WF_TABLE_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_add_until_full),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_number_of_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
