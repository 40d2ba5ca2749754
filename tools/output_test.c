/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is left at the path of an output file: nothing of ours where there is no
 * result, and whatever somebody else has put there.
 */
#include "tools/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool no_memory;
static char folder[32], path[64], other[64];

FILE *__real_fopencookie(void *cookie, const char *mode,
			 cookie_io_functions_t functions);
FILE *__wrap_fopencookie(void *cookie, const char *mode,
			 cookie_io_functions_t functions);

FILE *__wrap_fopencookie(void *cookie, const char *mode,
			 cookie_io_functions_t functions)
{
	return no_memory ? NULL : __real_fopencookie(cookie, mode, functions);
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/weft-output-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/result", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void test_empty(void **state)
{
	struct wf_tools_output out;

	(void)state;
	assert_int_equal(wf_tools_output_open(&out, path), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(wf_tools_output_close(&out), 0);
	assert_int_equal(access(path, F_OK), -1);
}

/* Bug: the empty file stayed. */
static void test_no_memory(void **state)
{
	struct wf_tools_output out;

	(void)state;
	no_memory = true;
	assert_int_equal(wf_tools_output_open(&out, path), -ENOMEM);
	no_memory = false;
	assert_int_equal(access(path, F_OK), -1);
}

/* Bug: a file that had been renamed to the path meanwhile was removed. */
static void test_replaced(void **state)
{
	struct wf_tools_output out;
	FILE *file;

	(void)state;
	assert_int_equal(wf_tools_output_open(&out, path), 0);
	file = fopen(other, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(wf_tools_output_close(&out), 0);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
