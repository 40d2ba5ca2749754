/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of request ids.
 */
#include "queue/ids.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_refuses_bad_sizes(void **state)
{
	struct wf_queue_ids ids;

	(void)state;
	assert_int_equal(wf_queue_ids_init(&ids, 0, 16), -EINVAL);
	assert_int_equal(wf_queue_ids_init(&ids, 8, 0), -EINVAL);
	assert_int_equal(wf_queue_ids_init(&ids, 8, 32), -EINVAL);
	assert_int_equal(wf_queue_ids_init(&ids, 9, 3), -EINVAL);
	assert_int_equal(wf_queue_ids_init(&ids, 65537, 16), -EINVAL);
}

static void test_limit(void **state)
{
	struct wf_queue_ids ids;
	uint32_t got[5];

	(void)state;
	assert_int_equal(wf_queue_ids_init(&ids, 5, 16), 0);
	for (int i = 0; i < 5; i++) {
		got[i] = wf_queue_ids_get(&ids);
		assert_int_equal(wf_queue_ids_index(&ids, got[i]), i);
	}
	assert_int_equal(wf_queue_ids_get(&ids), WF_QUEUE_ID_NONE);
	wf_queue_ids_put(&ids, got[3]);
	assert_int_equal(wf_queue_ids_index(&ids, wf_queue_ids_get(&ids)), 3);
	assert_int_equal(wf_queue_ids_get(&ids), WF_QUEUE_ID_NONE);
	wf_queue_ids_fini(&ids);
}

/* A completion that comes twice, or for the holder before, is not taken. */
static void test_stale_ids_are_dead(void **state)
{
	struct wf_queue_ids ids;
	uint32_t first, second;

	(void)state;
	assert_int_equal(wf_queue_ids_init(&ids, 1, 16), 0);
	assert_false(wf_queue_ids_live(&ids, 0));
	first = wf_queue_ids_get(&ids);
	assert_true(wf_queue_ids_live(&ids, first));
	wf_queue_ids_put(&ids, first);
	assert_false(wf_queue_ids_live(&ids, first));
	second = wf_queue_ids_get(&ids);
	assert_int_not_equal(first, second);
	assert_false(wf_queue_ids_live(&ids, first));
	assert_true(wf_queue_ids_live(&ids, second));
	wf_queue_ids_fini(&ids);
}

static void test_foreign_ids_are_dead(void **state)
{
	struct wf_queue_ids ids;

	(void)state;
	/* 5 of 8 indexes exist. */
	assert_int_equal(wf_queue_ids_init(&ids, 5, 16), 0);
	for (int i = 0; i < 5; i++)
		wf_queue_ids_get(&ids);
	for (uint32_t id = 5; id < 1u << 17; id++)
		assert_false(wf_queue_ids_live(&ids, id));
	assert_false(wf_queue_ids_live(&ids, UINT32_MAX));
	wf_queue_ids_fini(&ids);
}

/* Against a model, in random order, until generations have wrapped. */
static void test_random_order(void **state)
{
	enum { COUNT = 12, BITS = 8, ROUNDS = 20000 };
	uint32_t held[COUNT], n = 0;
	struct wf_queue_ids ids;

	(void)state;
	srand(4);
	assert_int_equal(wf_queue_ids_init(&ids, COUNT, BITS), 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (rand() % 2) {
			uint32_t id = wf_queue_ids_get(&ids);

			assert_int_equal(id == WF_QUEUE_ID_NONE, n == COUNT);
			if (id == WF_QUEUE_ID_NONE)
				continue;
			assert_true(id < 1u << BITS);
			for (uint32_t j = 0; j < n; j++)
				assert_int_not_equal(held[j] & ids.mask,
						     id & ids.mask);
			held[n++] = id;
		} else if (n) {
			uint32_t at = (uint32_t)rand() % n;

			assert_true(wf_queue_ids_live(&ids, held[at]));
			wf_queue_ids_put(&ids, held[at]);
			held[at] = held[--n];
		}
		assert_int_equal(ids.in_use, n);
	}
	wf_queue_ids_fini(&ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_sizes),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_stale_ids_are_dead),
		cmocka_unit_test(test_foreign_ids_are_dead),
		cmocka_unit_test(test_random_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
