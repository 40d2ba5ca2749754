/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check which users are let in, also in a user namespace where most
 * users have no number. Needs root; without it, or without user namespaces,
 * nothing is tested there.
 */
#include "shm/user.h"

#include "base/log.h"
#include "base/users.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OVERFLOW 65534
#define SOMEBODY 61003
#define OTHER 61004
#define SKIPPED 77

/* The end of a pair that process of user @uid made. */
static int socket_of(uid_t uid)
{
	int pair[2] = { -1, -1 };

	if (seteuid(uid))
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		pair[0] = -1;
	if (seteuid(0))
		return -1;
	return pair[0];
}

/* Runs @child in a process of its own. */
static void in_child(int (*child)(int fd), int fd)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(child(fd));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_lists(void **state)
{
	struct ucred cred;
	bool ours;
	int own;

	(void)state;
	if (geteuid())
		skip();
	own = socket_of(0);
	assert_int_equal(wf_shm_user_check(NULL, own, &cred, &ours), 0);
	close(own);
	own = socket_of(SOMEBODY);
	assert_int_equal(wf_shm_user_check(NULL, own, &cred, &ours), -EACCES);
	assert_int_equal(cred.uid, SOMEBODY);
	assert_int_equal(wf_shm_user_check("", own, &cred, &ours), -EACCES);
	assert_int_equal(wf_shm_user_check("1,6100", own, &cred, &ours),
			 -EACCES);
	assert_int_equal(wf_shm_user_check("1,61003", own, &cred, &ours), 0);
	assert_int_equal(wf_shm_user_check("any", own, &cred, &ours), 0);
	close(own);
}

static int told;
static char said[512];

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	if (level != WF_LOG_TELL)
		return;
	told++;
	strncpy(said, text, sizeof(said) - 1);
}

/* Bug: refusals were seen only with FI_LOG_LEVEL. Now each user is reported
 * once, although anybody may connect as often as he likes. */
static void test_refusal_reported_once(void **state)
{
	struct ucred cred = { .uid = OTHER };
	bool ours;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	wf_base_log_set_sink(take_line);
	fd = socket_of(OTHER);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wf_shm_user_check("1", fd, &cred, &ours),
				 -EACCES);
	assert_int_equal(told, 1);
	assert_non_null(strstr(said, "FI_WEFT_ALLOW_UID=61004 here"));
	assert_non_null(strstr(said, "FI_WEFT_ALLOW_UID=0 for that process"));
	wf_shm_user_refused(&cred);
	assert_int_equal(told, 1);
	cred.uid++;
	wf_shm_user_refused(&cred);
	wf_shm_user_refused(&cred);
	assert_int_equal(told, 2);
	assert_non_null(strstr(said, "FI_WEFT_ALLOW_UID=0 for that process"));
	/* An attacker with many users does not fill the terminal. */
	for (cred.uid = 70000; cred.uid < 71000; cred.uid++)
		wf_shm_user_refused(&cred);
	assert_in_range(told, 3, 20);
	close(fd);
	wf_base_log_set_sink(NULL);
}

/* We become user 65534 of a namespace that knows no other user. */
static int enter_namespace(void)
{
	static const char map[] = "65534 0 1";
	int fd;

	if (unshare(CLONE_NEWUSER))
		return SKIPPED;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, sizeof(map) - 1) < 0)
		return SKIPPED;
	close(fd);
	return geteuid() == OVERFLOW ? 0 : SKIPPED;
}

static int check_overflow(int fd)
{
	struct ucred cred;
	bool ours;
	int status = enter_namespace();

	if (status)
		return status;
	if (wf_shm_user_check(NULL, fd, &cred, &ours) != -EACCES)
		return 2;
	if (cred.uid != geteuid())
		return 3;
	if (wf_base_users_is_known(OVERFLOW) || wf_shm_user_is_ours(OVERFLOW) ||
	    !wf_base_users_is_known(0))
		return 4;
	return wf_shm_user_check("65534", fd, &cred, &ours) ? 5 : 0;
}

/* Bug: a process that ran as the overflow user in a user namespace took every
 * user without a number there for itself. */
static void test_overflow_user(void **state)
{
	int fd;

	(void)state;
	if (geteuid())
		skip();
	fd = socket_of(SOMEBODY);
	assert_true(fd >= 0);
	in_child(check_overflow, fd);
	close(fd);
}

static int check_nobody(int fd)
{
	unsigned int inside, outside, count = 0;
	FILE *file = fopen("/proc/self/uid_map", "re");
	struct ucred cred;
	bool ours;

	if (!file || fscanf(file, "%u %u %u", &inside, &outside, &count) != 3 ||
	    count != UINT32_MAX || setresuid(OVERFLOW, OVERFLOW, OVERFLOW))
		return SKIPPED;
	fclose(file);
	return wf_shm_user_check(NULL, fd, &cred, &ours) ? 2 : 0;
}

/* Outside of namespaces that number is a user like any other. */
static void test_nobody_is_a_user(void **state)
{
	int fd;

	(void)state;
	if (geteuid())
		skip();
	fd = socket_of(OVERFLOW);
	assert_true(fd >= 0);
	in_child(check_nobody, fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_refusal_reported_once),
		cmocka_unit_test(test_overflow_user),
		cmocka_unit_test(test_nobody_is_a_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
