/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check which folders are used: those of root and of the own user
 * in which nobody else can replace anything.
 */
#include "base/folder.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

	assert_int_equal(wf_base_folder_check(path, why, sizeof(why)), good);
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

/* Whoever can rename a folder above can put another one in its place. */
static void test_parents(void **state)
{
	char path[40], link[40], below[48];

	(void)state;
	snprintf(path, sizeof(path), "%s/in", top);
	snprintf(link, sizeof(link), "%s/to", top);
	snprintf(below, sizeof(below), "%s/in", link);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(top, 0755), 0);
	check(path, true, NULL);
	assert_int_equal(chmod(top, 01777), 0);
	check(path, true, NULL);
	assert_int_equal(chmod(top, 0777), 0);
	check(path, false, "other users can write to /tmp/weft-folder-");
	assert_int_equal(chmod(top, 0755), 0);
	assert_int_equal(symlink(".", link), 0);
	check(below, false, "is a symbolic link");
	snprintf(below, sizeof(below), "%s/", link);
	check(below, false, "is a symbolic link");
	assert_int_equal(unlink(link), 0);
	if (!geteuid()) {
		assert_int_equal(chown(top, 61003, 0), 0);
		check(path, false, "belongs to user 61003, who could");
		assert_int_equal(chown(top, 0, 0), 0);
	}
	assert_int_equal(rmdir(path), 0);
}

/* Becomes root of a user namespace, as in a rootless container. */
static bool become_rootless(void)
{
	static const char map[] = "0 61003 1";
	bool written;
	int fd;

	if (setuid(61003) || prctl(PR_SET_DUMPABLE, 1) ||
	    unshare(CLONE_NEWUSER))
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	written = fd >= 0 &&
		  write(fd, map, sizeof(map) - 1) == (ssize_t)sizeof(map) - 1;
	if (fd >= 0)
		close(fd);
	return written && !geteuid();
}

/* There the root of the host, who has / and /tmp, has no number. */
static void test_rootless(void **state)
{
	char why[224];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chown(top, 61003, 0), 0);
	assert_int_equal(chmod(top, 0700), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!become_rootless())
			_exit(77);
		_exit(!wf_base_folder_check(top, why, sizeof(why)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chown(top, 0, 0), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_rootless),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
