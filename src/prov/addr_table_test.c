/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the table behind an AV.
 */
#include "prov/addr_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/place.h"

static struct wf_addr number(uint32_t n)
{
	struct wf_addr addr;

	memset(&addr, 0, sizeof(addr));
	addr.in.sin_family = AF_INET;
	addr.in.sin_addr.s_addr = htonl(0x0a000000u + n / 1000);
	addr.in.sin_port = htons((uint16_t)(1 + n % 1000));
	return addr;
}

static uint32_t insert(struct wf_prov_addr_table *table, uint32_t n,
		       bool expect_new)
{
	struct wf_addr addr = number(n);
	uint32_t index;
	bool is_new;

	assert_int_equal(
		wf_prov_addr_table_insert(table, &addr, &index, &is_new), 0);
	assert_int_equal(is_new, expect_new);
	return index;
}

static bool removed(struct wf_prov_addr_table *table, uint32_t index)
{
	bool is_gone;

	assert_int_equal(wf_prov_addr_table_remove(table, index, &is_gone), 0);
	return is_gone;
}

static uint32_t find(struct wf_prov_addr_table *table, uint32_t n)
{
	struct wf_addr addr = number(n);

	return wf_prov_addr_table_find(table, &addr);
}

static void test_grows(void **state)
{
	enum { COUNT = 20000 };
	struct wf_prov_addr_table table;

	(void)state;
	assert_int_equal(wf_prov_addr_table_init(&table, 0), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(insert(&table, i, true), i);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_addr addr = number(i);

		assert_int_equal(find(&table, i), i);
		assert_true(wf_base_addr_equal(
			wf_prov_addr_table_get(&table, i), &addr));
	}
	assert_int_equal(find(&table, COUNT), WF_PROV_ADDR_NONE);
	assert_null(wf_prov_addr_table_get(&table, COUNT));
	assert_null(wf_prov_addr_table_get(&table, UINT64_MAX));
	wf_prov_addr_table_fini(&table);
}

static void test_duplicates_are_counted(void **state)
{
	struct wf_prov_addr_table table;
	bool is_gone;

	(void)state;
	assert_int_equal(wf_prov_addr_table_init(&table, 4), 0);
	assert_int_equal(insert(&table, 1, true), 0);
	assert_int_equal(insert(&table, 1, false), 0);
	assert_int_equal(insert(&table, 2, true), 1);
	assert_false(removed(&table, 0));
	assert_int_equal(find(&table, 1), 0);
	assert_true(removed(&table, 0));
	assert_int_equal(find(&table, 1), WF_PROV_ADDR_NONE);
	assert_int_equal(wf_prov_addr_table_remove(&table, 0, &is_gone),
			 -EINVAL);
	assert_int_equal(find(&table, 2), 1);
	wf_prov_addr_table_fini(&table);
}

/* FI_AV_TABLE: "at the lowest index that corresponds to an unused table
 * location". */
static void test_lowest_index_first(void **state)
{
	struct wf_prov_addr_table table;

	(void)state;
	assert_int_equal(wf_prov_addr_table_init(&table, 0), 0);
	for (uint32_t i = 0; i < 40; i++)
		insert(&table, i, true);
	assert_true(removed(&table, 30));
	assert_true(removed(&table, 5));
	assert_true(removed(&table, 17));
	assert_int_equal(insert(&table, 100, true), 5);
	assert_int_equal(insert(&table, 101, true), 17);
	assert_int_equal(insert(&table, 102, true), 30);
	assert_int_equal(insert(&table, 103, true), 40);
	wf_prov_addr_table_fini(&table);
}

/* As a reader of another table does it. */
static void test_placed_by_index(void **state)
{
	struct wf_prov_addr_table table;
	struct wf_addr one = number(1), two = number(2);

	(void)state;
	assert_int_equal(wf_prov_addr_table_init(&table, 0), 0);
	assert_int_equal(wf_prov_addr_table_place(&table, 5000, &one), 0);
	assert_int_equal(find(&table, 1), 5000);
	assert_int_equal(wf_prov_addr_table_place(&table, 5000, &two), -EEXIST);
	assert_int_equal(wf_prov_addr_table_place(&table, 1, &one), -EEXIST);
	assert_int_equal(wf_prov_addr_table_place(&table, 1, &two), 0);
	assert_int_equal(wf_prov_addr_table_place(&table, UINT32_MAX, &two),
			 -ENOMEM);
	assert_true(removed(&table, 5000));
	assert_int_equal(wf_prov_addr_table_place(&table, 0, &one), 0);
	assert_int_equal(find(&table, 1), 0);
	assert_int_equal(find(&table, 2), 1);
	wf_prov_addr_table_fini(&table);
}

/* Against a plain array, at random. */
static void test_model(void **state)
{
	enum { NUMBERS = 300, STEPS = 50000 };
	unsigned int uses[NUMBERS] = { 0 }, seed = 1;
	uint32_t where[NUMBERS];
	struct wf_prov_addr_table table;

	(void)state;
	assert_int_equal(wf_prov_addr_table_init(&table, 0), 0);
	for (int step = 0; step < STEPS; step++) {
		uint32_t n = (uint32_t)rand_r(&seed) % NUMBERS;

		if (rand_r(&seed) & 1) {
			uint32_t at = insert(&table, n, !uses[n]);

			assert_true(!uses[n] || where[n] == at);
			where[n] = at;
			uses[n]++;
		} else if (uses[n]) {
			uses[n]--;
			assert_int_equal(removed(&table, where[n]), !uses[n]);
		}
		assert_int_equal(find(&table, n),
				 uses[n] ? where[n] : WF_PROV_ADDR_NONE);
	}
	wf_prov_addr_table_fini(&table);
}

/* 127.0.0.1 of two namespaces is two peers. An address that came by packets
 * names no place, and so does one that an application makes of an IP
 * address. */
static void test_places(void **state)
{
	struct wf_addr bare = number(1), one = bare, two = bare, three = bare;
	struct wf_prov_addr_table table;
	uint32_t at_one, at_two, at_bare;
	bool is_new;

	(void)state;
	wf_base_place_put(&one, 0x1000001);
	wf_base_place_put(&two, 0x1000002);
	wf_base_place_put(&three, 0x1000003);
	assert_int_equal(wf_prov_addr_table_init(&table, 0), 0);
	assert_int_equal(
		wf_prov_addr_table_insert(&table, &one, &at_one, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(wf_prov_addr_table_find(&table, &bare), at_one);
	assert_int_equal(wf_prov_addr_table_find(&table, &two),
			 WF_PROV_ADDR_NONE);
	assert_int_equal(
		wf_prov_addr_table_insert(&table, &two, &at_two, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(
		wf_prov_addr_table_insert(&table, &bare, &at_bare, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(wf_prov_addr_table_find(&table, &one), at_one);
	assert_int_equal(wf_prov_addr_table_find(&table, &two), at_two);
	assert_int_equal(wf_prov_addr_table_find(&table, &bare), at_bare);
	assert_int_equal(wf_prov_addr_table_find(&table, &three), at_bare);
	assert_true(removed(&table, at_bare));
	assert_int_equal(wf_prov_addr_table_find(&table, &three),
			 WF_PROV_ADDR_NONE);
	wf_prov_addr_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_duplicates_are_counted),
		cmocka_unit_test(test_lowest_index_first),
		cmocka_unit_test(test_placed_by_index),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
