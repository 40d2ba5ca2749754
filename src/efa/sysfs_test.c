/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder with the files of /sys: it is made once, and one that somebody else
 * has made first, or can change, is refused. This program runs itself again with
 * another XDG_RUNTIME_DIR: the library looks at it when it is loaded.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "efa/efa.h"

#define CHILD "sysfs-child"
#define TEXT 4096

static char root[64] = "/tmp/weft-sysfs-XXXXXX";
static char dir[128];

/* The child is a program that looks at its devices, and at what it is told on
 * standard error. */
static int child(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return 2;
	ibv_free_device_list(list);
	return strcmp(getenv("SYSFS_PATH"), getenv("WEFT_TEST_DIR")) ? 3 : 0;
}

static int run(char text[TEXT])
{
	int fds[2], status = 0;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], 2);
		setenv("XDG_RUNTIME_DIR", root, 1);
		setenv("WEFT_TEST_DIR", dir, 1);
		unsetenv("SYSFS_PATH");
		execl("/proc/self/exe", CHILD, (char *)NULL);
		_exit(9);
	}
	close(fds[1]);
	while ((got = read(fds[0], text + len, TEXT - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect_good(void)
{
	char text[TEXT];

	assert_int_equal(run(text), 0);
	assert_string_equal(text, "");
}

static void expect_refused(const char *why)
{
	char text[TEXT];

	assert_int_equal(run(text), 2);
	assert_non_null(strstr(text, dir));
	assert_non_null(strstr(text, why));
}

static void move_away(void)
{
	char away[160];

	snprintf(away, sizeof(away), "%s.away.%d", dir, rand());
	assert_int_equal(rename(dir, away), 0);
}

static void test_made_once(void **state)
{
	struct stat first, again;

	(void)state;
	expect_good();
	assert_int_equal(lstat(dir, &first), 0);
	assert_int_equal(first.st_mode & 07777, 0755);
	expect_good();
	assert_int_equal(lstat(dir, &again), 0);
	assert_true(first.st_ino == again.st_ino);
	move_away();
}

/* Everything is right but who can write to it. */
static void test_mode(void **state)
{
	(void)state;
	expect_good();
	assert_int_equal(chmod(dir, 0777), 0);
	expect_refused("others can write to it");
	assert_int_equal(chmod(dir, 0775), 0);
	expect_refused("others can write to it");
	assert_int_equal(chmod(dir, 0755), 0);
	expect_good();
	move_away();
}

/* ... but whose it is. Only root can play the other user. */
static void test_owner(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	expect_good();
	if (lchown(dir, 12345, 12345)) {
		move_away();
		skip();
	}
	expect_refused("it belongs to another user");
	move_away();
}

/* A name that leads elsewhere, even to a folder that is good now. */
static void test_link(void **state)
{
	char to[160];
	int fd;

	(void)state;
	expect_good();
	snprintf(to, sizeof(to), "%s.real", dir);
	assert_int_equal(rename(dir, to), 0);
	assert_int_equal(symlink(to, dir), 0);
	expect_refused("it is not a folder");
	assert_int_equal(unlink(dir), 0);
	fd = open(dir, O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	expect_refused("it is not a folder");
	assert_int_equal(unlink(dir), 0);
	expect_good();
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(dir, sizeof(dir), "%s/weft-efa-%u", root, (unsigned)geteuid());
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_once),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_link),
	};

	(void)argc;
	if (!strcmp(argv[0], CHILD))
		return child();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
