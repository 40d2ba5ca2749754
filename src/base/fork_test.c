/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what forked children do with the parent's objects.
 */
#include "base/fork.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct owner {
	struct wf_fork_watch watch;
	int fd;
	int calls;
};

static void close_fd(struct wf_fork_watch *watch)
{
	struct owner *owner = wf_container_of(watch, struct owner, watch);

	close(owner->fd);
	owner->calls++;
}

static int status_of(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct owner open_owner(void)
{
	struct owner owner = { .watch.in_child = close_fd };

	owner.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(owner.fd >= 0);
	return owner;
}

static void test_child_closes(void **state)
{
	struct owner a = open_owner(), b = open_owner();
	pid_t pid;

	(void)state;
	wf_base_fork_watch(&a.watch);
	wf_base_fork_watch(&b.watch);
	pid = fork();
	if (!pid)
		_exit(a.calls == 1 && b.calls == 1 &&
				      fcntl(a.fd, F_GETFD) < 0 &&
				      fcntl(b.fd, F_GETFD) < 0 ?
			      0 :
			      1);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(a.calls + b.calls, 0);
	assert_true(fcntl(a.fd, F_GETFD) >= 0);
	wf_base_fork_unwatch(&a.watch);
	wf_base_fork_unwatch(&b.watch);
	close(a.fd);
	close(b.fd);
}

static void test_unwatched_stays_open(void **state)
{
	struct owner a = open_owner();
	pid_t pid;

	(void)state;
	wf_base_fork_watch(&a.watch);
	wf_base_fork_unwatch(&a.watch);
	pid = fork();
	if (!pid)
		_exit(a.calls == 0 && fcntl(a.fd, F_GETFD) >= 0 ? 0 : 1);
	assert_int_equal(status_of(pid), 0);
	close(a.fd);
}

/* A child that opens objects of its own, and forks again. */
static void test_grandchild(void **state)
{
	struct owner a = open_owner();
	pid_t pid;

	(void)state;
	wf_base_fork_watch(&a.watch);
	pid = fork();
	if (!pid) {
		struct owner b = { .watch.in_child = close_fd, .fd = dup(0) };
		int status = 0;

		/* Unwatching what the fork has dealt with must do no harm. */
		wf_base_fork_unwatch(&a.watch);
		wf_base_fork_watch(&b.watch);
		pid = fork();
		if (!pid)
			_exit(b.calls == 1 && a.calls == 1 ? 0 : 1);
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_int_equal(status_of(pid), 0);
	wf_base_fork_unwatch(&a.watch);
	close(a.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_closes),
		cmocka_unit_test(test_unwatched_stays_open),
		cmocka_unit_test(test_grandchild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
