/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of users: who is in them, and that a list which is not well formed lets
 * nobody in by mistake.
 */
#include "base/users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_lists(void **state)
{
	(void)state;
	assert_true(wf_base_users_have("any", 0));
	assert_true(wf_base_users_have("any", 4711));
	assert_true(wf_base_users_have("7", 7));
	assert_true(wf_base_users_have("1,61003", 61003));
	assert_true(wf_base_users_have("1,61003", 1));
	assert_false(wf_base_users_have("1,6100", 61003));
	assert_false(wf_base_users_have("1,61003", 0));
}

static void test_no_list(void **state)
{
	(void)state;
	assert_false(wf_base_users_have(NULL, 0));
	assert_false(wf_base_users_have("", 0));
}

/* Words and numbers that no user has are not taken for user 0 or another. */
static void test_ill_formed(void **state)
{
	static const char *const lists[] = {
		",",
		"alice",
		"anybody",
		"5,alice",
		"-1",
		"4294967296",
		"18446744073709551616",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_false(wf_base_users_have(lists[i], 0));
	assert_true(wf_base_users_have("5,alice", 5));
	assert_false(wf_base_users_have("-1", UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_no_list),
		cmocka_unit_test(test_ill_formed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
