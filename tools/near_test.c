/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check that a misspelt word leads to the right one, and a word
 * that is like no other to none.
 */
#include "tools/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void test_distance(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int distance;
	} cases[] = {
		{ "", "", 0 },		{ "shm", "shm", 0 },
		{ "shm", "smh", 1 },	{ "shm", "sh", 1 },
		{ "shm", "shmm", 1 },	{ "shm", "sxm", 1 },
		{ "", "shm", 3 },	{ "latency", "latncy", 1 },
		{ "abcd", "badc", 2 },	{ "gzip", "gunzip", 2 },
		{ "stat", "trace", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wf_tools_near_distance(cases[i].a, cases[i].b),
				 cases[i].distance);
		assert_int_equal(wf_tools_near_distance(cases[i].b, cases[i].a),
				 cases[i].distance);
	}
}

static void test_long(void **state)
{
	char a[300], b[300];

	(void)state;
	memset(a, 'a', sizeof(a) - 1);
	memset(b, 'b', sizeof(b) - 1);
	a[sizeof(a) - 1] = b[sizeof(b) - 1] = '\0';
	assert_int_equal(wf_tools_near_distance(a, b), 63);
}

static const char *meant(const char *word)
{
	static const char *const words[] = { "info",   "bench", "gzip",
					     "gunzip", "stat",	"why",
					     "trace",  "devd",	"efa",
					     "version" };
	struct wf_tools_near near = { .word = word };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		wf_tools_near_try(&near, words[i]);
	return near.best ? near.best : "";
}

static void test_best(void **state)
{
	(void)state;
	assert_string_equal(meant("bnech"), "bench");
	assert_string_equal(meant("gzp"), "gzip");
	assert_string_equal(meant("gunzp"), "gunzip");
	assert_string_equal(meant("stats"), "stat");
	assert_string_equal(meant("wyh"), "why");
	assert_string_equal(meant("ver"), "version");
	assert_string_equal(meant("x"), "");
	assert_string_equal(meant(""), "");
	assert_string_equal(meant("install"), "");
	assert_string_equal(meant("version"), "");
}

static void test_text(void **state)
{
	struct wf_tools_near near = { .word = "smh" };

	(void)state;
	assert_string_equal(wf_tools_near_text(&near), "");
	wf_tools_near_try(&near, "shm");
	assert_string_equal(wf_tools_near_text(&near), "; did you mean shm?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
