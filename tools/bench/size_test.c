/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the sizes on the command line.
 */
#include "tools/bench/size.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void list_reads_numbers_units_and_ranges(void **state)
{
	static const size_t want[] = { 8, 64, 1024, 2048, 4096, 1 << 20 };
	struct wf_tools_sizes sizes;
	unsigned i;

	(void)state;
	/* Unsorted and with duplicates; the result has neither. */
	assert_int_equal(wf_tools_size_list("1M,64,8,1K-4KiB,2k", &sizes), 0);
	assert_int_equal(sizes.n, 6);
	for (i = 0; i < sizes.n; i++)
		assert_int_equal(sizes.v[i], want[i]);
}

static void range_keeps_its_end(void **state)
{
	struct wf_tools_sizes sizes;

	(void)state;
	assert_int_equal(wf_tools_size_list("100..300", &sizes), 0);
	assert_int_equal(sizes.n, 3);
	assert_int_equal(sizes.v[1], 200);
	assert_int_equal(sizes.v[2], 300);
}

static void list_refuses_what_it_cannot_read(void **state)
{
	static const struct {
		const char *text;
		int ret;
	} bad[] = {
		{ "", -EINVAL },       { ",8", -EINVAL },
		{ "8,", -EINVAL },     { "8;9", -EINVAL },
		{ "-8", -EINVAL },     { "9-8", -EINVAL },
		{ "8x", -EINVAL },     { "0", -ERANGE },
		{ "2G", -ERANGE },     { "1-2G", -ERANGE },
		{ "1024M0", -EINVAL }, { "99999999999999999999", -ERANGE },
	};
	struct wf_tools_sizes sizes;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wf_tools_size_list(bad[i].text, &sizes),
				 bad[i].ret);
}

static void list_refuses_too_many(void **state)
{
	char text[WF_TOOLS_MAX_SIZES * 8 + 8];
	struct wf_tools_sizes sizes;
	size_t at = 0;
	int i;

	(void)state;
	for (i = 1; i <= WF_TOOLS_MAX_SIZES + 1; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d",
				       i > 1 ? "," : "", i);
	assert_int_equal(wf_tools_size_list(text, &sizes), -E2BIG);
}

static void text_is_read_back(void **state)
{
	static const size_t values[] = { 1,    1000,	1024,	 1536,
					 4096, 1 << 20, 3 << 20, 1 << 30 };
	struct wf_tools_sizes sizes;
	char text[WF_TOOLS_SIZE_TEXT];
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		wf_tools_size_text(values[i], text);
		assert_int_equal(wf_tools_size_list(text, &sizes), 0);
		assert_int_equal(sizes.n, 1);
		assert_int_equal(sizes.v[0], values[i]);
	}
	assert_string_equal(wf_tools_size_text(64 << 10, text), "64K");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_reads_numbers_units_and_ranges),
		cmocka_unit_test(range_keeps_its_end),
		cmocka_unit_test(list_refuses_what_it_cannot_read),
		cmocka_unit_test(list_refuses_too_many),
		cmocka_unit_test(text_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
