/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of intrusive lists.
 */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
	int value;
	struct wf_list link;
};

static int value_of(struct wf_list *pos)
{
	return wf_container_of(pos, struct item, link)->value;
}

static void test_order(void **state)
{
	struct item items[4] = {
		{ .value = 1 }, { .value = 2 }, { .value = 3 }, { .value = 0 }
	};
	struct wf_list head, *pos, *tmp;
	int expect = 0;

	(void)state;
	wf_base_list_init(&head);
	assert_true(wf_base_list_empty(&head));
	for (int i = 0; i < 3; i++)
		wf_base_list_add_tail(&head, &items[i].link);
	wf_base_list_add_head(&head, &items[3].link);
	assert_false(wf_base_list_empty(&head));
	wf_list_for_each (pos, tmp, &head)
		assert_int_equal(value_of(pos), expect++);
	assert_int_equal(expect, 4);
}

static void test_delete_while_walking(void **state)
{
	struct item items[5];
	struct wf_list head, *pos, *tmp;
	int seen = 0;

	(void)state;
	wf_base_list_init(&head);
	for (int i = 0; i < 5; i++) {
		items[i].value = i;
		wf_base_list_add_tail(&head, &items[i].link);
	}
	wf_list_for_each (pos, tmp, &head) {
		seen++;
		if (value_of(pos) % 2 == 0)
			wf_base_list_del(pos);
	}
	assert_int_equal(seen, 5);
	assert_int_equal(value_of(head.next), 1);
	assert_int_equal(value_of(head.prev), 3);
	wf_list_for_each (pos, tmp, &head)
		wf_base_list_del(pos);
	assert_true(wf_base_list_empty(&head));
}

static void test_second_delete_is_harmless(void **state)
{
	struct item a = { .value = 1 }, b = { .value = 2 };
	struct wf_list head;

	(void)state;
	wf_base_list_init(&head);
	wf_base_list_add_tail(&head, &a.link);
	wf_base_list_add_tail(&head, &b.link);
	wf_base_list_del(&a.link);
	wf_base_list_del(&a.link);
	assert_ptr_equal(head.next, &b.link);
	assert_ptr_equal(head.prev, &b.link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_delete_while_walking),
		cmocka_unit_test(test_second_delete_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
