/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit test of copying: every length, nothing beside it.
 */
#include "op/copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#ifdef WF_OP_COPY_SMALL_MAX
#define LONGEST WF_OP_COPY_SMALL_MAX
#else
#define LONGEST 128
#endif

static void test_every_length(void **state)
{
	uint8_t from[LONGEST], to[LONGEST + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t len = 0; len <= LONGEST; len++) {
		memset(to, 0xee, sizeof(to));
		wf_op_copy_small(to + 1, from, len);
		assert_int_equal(to[0], 0xee);
		assert_memory_equal(to + 1, from, len);
		for (size_t i = len + 1; i < sizeof(to); i++)
			assert_int_equal(to[i], 0xee);
	}
	/* No message, no buffer. */
	wf_op_copy_small(to, NULL, 0);
}

static void test_around(void **state)
{
	static uint8_t from[1100], to[1100 + 64] __attribute__((aligned(64)));

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 3 + 1);
	for (size_t len = 0; len < 1090; len++) {
		memset(to, 0xee, sizeof(to));
		wf_op_copy_around(to, from + len % 9, len);
		assert_memory_equal(to, from + len % 9, len);
		for (size_t i = len; i < len + 64; i++)
			assert_int_equal(to[i], 0xee);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
