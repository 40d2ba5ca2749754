/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of sizes and times as people write them. The bug: 8K was read as
 * 8 by libfabric's parser, which stops at the first letter.
 */
#include "base/amount.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t value;
		const char *rest;
	} cases[] = {
		{ "0", 0, 0, "" },
		{ "8192", 0, 8192, "" },
		{ "010", 0, 10, "" },
		{ "0x2000", 0, 8192, "" },
		{ "8K", 0, 8192, "" },
		{ "8k", 0, 8192, "" },
		{ "8KiB", 0, 8192, "" },
		{ "8kb", 0, 8192, "" },
		{ "1M,", 0, 1 << 20, "," },
		{ "2G", 0, (uint64_t)2 << 30, "" },
		{ "7B", 0, 7, "" },
		{ "8Ki", 0, 8192, "i" },
		{ "8X", 0, 8, "X" },
		{ "1.5K", 0, 1, ".5K" },
		{ "18446744073709551615", 0, UINT64_MAX, "" },
		{ "18446744073709551616", -ERANGE, UINT64_MAX, "" },
		{ "18446744073709551615K", -ERANGE, UINT64_MAX, "" },
		{ "99999999999999999999999G", -ERANGE, UINT64_MAX, "" },
		{ "", -EINVAL, 0, "" },
		{ "K", -EINVAL, 0, "" },
		{ "-1", -EINVAL, 0, "" },
		{ "+1", -EINVAL, 0, "" },
		{ " 1", -EINVAL, 0, "" },
		{ "0x", -EINVAL, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *end = NULL;
		uint64_t value = 0;

		assert_int_equal(
			wf_base_amount_bytes(cases[i].text, &end, &value),
			cases[i].err);
		if (cases[i].err == -EINVAL)
			continue;
		assert_int_equal(value, cases[i].value);
		assert_string_equal(end, cases[i].rest);
	}
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t unit_ms;
		int err;
		uint64_t value;
		const char *rest;
	} cases[] = {
		{ "5000", 1, 0, 5000, "" },
		{ "5s", 1, 0, 5000, "" },
		{ "500ms", 1, 0, 500, "" },
		{ "2MIN", 1, 0, 120000, "" },
		{ "900", 1000, 0, 900, "" },
		{ "15min", 1000, 0, 900, "" },
		{ "1500ms", 1000, 0, 2, "" },
		{ "1h", 1000, 0, 3600, "" },
		{ "5m", 1, 0, 5, "m" },
		{ "18446744073709551615h", 1, -ERANGE, UINT64_MAX, "" },
		{ "-1", 1, -EINVAL, 0, "" },
		{ "soon", 1, -EINVAL, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *end = NULL;
		uint64_t value = 0;

		assert_int_equal(wf_base_amount_time(cases[i].text, &end,
						     cases[i].unit_ms, &value),
				 cases[i].err);
		if (cases[i].err == -EINVAL)
			continue;
		assert_int_equal(value, cases[i].value);
		assert_string_equal(end, cases[i].rest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
