/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of memory keys: bounds to the byte, access, stale and guessed keys.
 */
#include "nic/mr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define READ 0x2u
#define WRITE 0x4u

static void test_bounds(void **state)
{
	struct wf_nic_mr_table t;
	uint32_t lkey, rkey;

	(void)state;
	assert_int_equal(wf_nic_mr_table_init(&t), 0);
	assert_int_equal(
		wf_nic_mr_table_add(&t, 0x1000, 100, READ, &lkey, &rkey), 0);
	assert_true(wf_nic_mr_local(&t, lkey, 0x1000, 100, 0));
	assert_true(wf_nic_mr_local(&t, lkey, 0x1063, 1, 0));
	assert_true(wf_nic_mr_local(&t, lkey, 0x1064, 0, 0));
	assert_false(wf_nic_mr_local(&t, lkey, 0x0fff, 1, 0));
	assert_false(wf_nic_mr_local(&t, lkey, 0x1064, 1, 0));
	assert_false(wf_nic_mr_local(&t, lkey, 0x1000, 101, 0));
	assert_false(wf_nic_mr_local(&t, lkey, 0x1001, UINT64_MAX, 0));
	assert_false(wf_nic_mr_local(&t, lkey, UINT64_MAX, 2, 0));
	assert_false(wf_nic_mr_local(&t, lkey, 0x1000, 1, WRITE));
	assert_true(wf_nic_mr_remote(&t, rkey, 0x1000, 100, READ));
	assert_false(wf_nic_mr_remote(&t, rkey, 0x1000, 100, WRITE));
	assert_false(wf_nic_mr_remote(&t, rkey, 0x1000, 100, READ | WRITE));
	assert_false(wf_nic_mr_remote(&t, rkey, 0x1001, 100, READ));
	assert_true(wf_nic_mr_remote(&t, 0, 0, 0, WRITE));
	wf_nic_mr_table_fini(&t);
}

static void test_refuses(void **state)
{
	struct wf_nic_mr_table t;
	uint32_t l, r;

	(void)state;
	assert_int_equal(wf_nic_mr_table_init(&t), 0);
	assert_int_equal(wf_nic_mr_table_add(&t, 16, 0, 0, &l, &r), -EINVAL);
	assert_int_equal(wf_nic_mr_table_add(&t, 16, UINT64_MAX, 0, &l, &r),
			 -EINVAL);
	assert_int_equal(wf_nic_mr_table_del(&t, 0), -EINVAL);
	assert_int_equal(wf_nic_mr_table_del(&t, 5), -EINVAL);
	assert_false(wf_nic_mr_local(&t, 0, 0, 0, 0));
	assert_false(wf_nic_mr_local(&t, UINT32_MAX, 0, 1, 0));
	assert_false(wf_nic_mr_remote(&t, UINT32_MAX, 0, 1, 0));
	wf_nic_mr_table_fini(&t);
}

/* A key that was given back is dead, whoever has its place now. */
static void test_stale(void **state)
{
	struct wf_nic_mr_table t;
	uint32_t old_l, old_r, l = 0, r = 0;

	(void)state;
	assert_int_equal(wf_nic_mr_table_init(&t), 0);
	assert_int_equal(wf_nic_mr_table_add(&t, 64, 64, READ, &old_l, &old_r),
			 0);
	assert_int_equal(wf_nic_mr_table_del(&t, old_l), 0);
	assert_int_equal(wf_nic_mr_table_del(&t, old_l), -EINVAL);
	assert_false(wf_nic_mr_local(&t, old_l, 64, 1, 0));
	assert_false(wf_nic_mr_remote(&t, old_r, 64, 1, READ));
	/* Others have their turn first. */
	for (unsigned i = 0; i < t.count - 1; i++)
		assert_int_equal(wf_nic_mr_table_add(&t, 64, 64, READ, &l, &r),
				 0);
	assert_int_equal(l & 0xffff, old_l & 0xffff);
	assert_int_not_equal(l, old_l);
	assert_int_not_equal(r, old_r);
	assert_false(wf_nic_mr_local(&t, old_l, 64, 1, 0));
	assert_false(wf_nic_mr_remote(&t, old_r, 64, 1, READ));
	wf_nic_mr_table_fini(&t);
}

static void test_many(void **state)
{
	static uint32_t lkeys[WF_NIC_MR_MAX];
	struct wf_nic_mr_table t;
	uint32_t r;

	(void)state;
	assert_int_equal(wf_nic_mr_table_init(&t), 0);
	for (uint32_t i = 0; i < WF_NIC_MR_MAX; i++) {
		assert_int_equal(wf_nic_mr_table_add(&t, 4096ull * i, 4096, 0,
						     &lkeys[i], &r),
				 0);
		assert_true(lkeys[i] && lkeys[i] <= 0xffffff);
	}
	assert_int_equal(wf_nic_mr_table_add(&t, 0, 1, 0, &lkeys[0], &r),
			 -ENOSPC);
	for (uint32_t i = 1; i < WF_NIC_MR_MAX; i++) {
		assert_true(
			wf_nic_mr_local(&t, lkeys[i], 4096ull * i, 4096, 0));
		assert_false(
			wf_nic_mr_local(&t, lkeys[i], 4096ull * i - 1, 1, 0));
	}
	wf_nic_mr_table_fini(&t);
}

/* Keys that were given back do not come back while anybody may remember them:
 * one buffer registered over and over once had its 257th key equal its first. */
static void test_keys_rest(void **state)
{
	struct wf_nic_mr_table table;
	uint32_t first, lkey, rkey, before = 0;

	(void)state;
	assert_int_equal(wf_nic_mr_table_init(&table), 0);
	assert_int_equal(
		wf_nic_mr_table_add(&table, 4096, 64, 0, &first, &rkey), 0);
	assert_int_equal(wf_nic_mr_table_del(&table, first), 0);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(
			wf_nic_mr_table_add(&table, 4096, 64, 0, &lkey, &rkey),
			0);
		assert_int_not_equal(lkey, first);
		assert_int_not_equal(rkey, before);
		assert_false(wf_nic_mr_local(&table, first, 4096, 64, 0));
		assert_int_equal(wf_nic_mr_table_del(&table, lkey), 0);
		before = rkey;
	}
	assert_int_equal(table.count, 64);
	wf_nic_mr_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_stale),  cmocka_unit_test(test_keys_rest),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
