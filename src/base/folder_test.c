/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which folders are used: those of root and of the own user in which nobody
 * else can replace anything.
 */
#include "base/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[32];

static int make_top(void **state)
{
	(void)state;
	strcpy(top, "/tmp/weft-folder-XXXXXX");
	return !mkdtemp(top);
}

static int remove_top(void **state)
{
	(void)state;
	return rmdir(top);
}

static void check(const char *path, bool good, const char *word)
{
	char why[224];

	assert_int_equal(wf_base_folder_judge(path, why, sizeof(why)), good);
	if (good)
		assert_string_equal(why, "");
	else
		assert_non_null(strstr(why, word));
}

static void test_modes(void **state)
{
	(void)state;
	assert_int_equal(chmod(top, 0700), 0);
	check(top, true, NULL);
	assert_int_equal(chmod(top, 01777), 0);
	check(top, true, NULL);
	assert_int_equal(chmod(top, 0777), 0);
	check(top, false, "other users can write");
	assert_int_equal(chmod(top, 0770), 0);
	check(top, false, "other users can write");
	assert_int_equal(chmod(top, 0700), 0);
}

static void test_paths(void **state)
{
	char link[48], longer[64];

	(void)state;
	check("run/weft", false, "begins with /");
	check("/nowhere/at/all", false, "No such file");
	check("/etc/passwd", false, "not a folder");
	snprintf(longer, sizeof(longer), "%s%030d", top, 0);
	check(longer, false, "longer than");
	snprintf(link, sizeof(link), "%s/link", top);
	assert_int_equal(symlink("/", link), 0);
	check(link, false, "not a folder");
	assert_int_equal(unlink(link), 0);
}

static void test_strangers(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chown(top, 61003, 0), 0);
	assert_int_equal(chmod(top, 01777), 0);
	check(top, false, "user 61003");
	assert_int_equal(chown(top, 0, 0), 0);
	assert_int_equal(chmod(top, 0755), 0);
	check(top, true, NULL);
	/* Root's, and not open to others. */
	assert_int_equal(seteuid(61003), 0);
	check(top, false, "cannot write");
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(top, 01777), 0);
	assert_int_equal(seteuid(61003), 0);
	check(top, true, NULL);
	assert_int_equal(seteuid(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_strangers),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
