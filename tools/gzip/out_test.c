/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output file that has a name from the start, because /proc is not there,
 * and a signal that comes at the moment when the file appears.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/gzip/gzip.h"

static int signal_at_open;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_access(const char *path, int mode);

int __wrap_open64(const char *path, int flags, ...)
{
	int fd = __real_open64(path, flags, 0600);

	if (flags & O_CREAT)
		raise(signal_at_open);
	return fd;
}

int __wrap_access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return -1;
}

static void test_signal(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	char folder[] = "/tmp/weft-out-XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.gz", folder);
	for (size_t i = 0; i < 3; i++) {
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			struct wf_gzip_out out = { .fd = -1 };

			/* Whoever runs the tests may ignore it. */
			signal(signals[i], SIG_DFL);
			signal_at_open = signals[i];
			wf_tools_gzip_out_catch_signals();
			wf_tools_gzip_out_open(&out, path, false);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_int_equal(open(path, O_RDONLY), -1);
	}
	/* Nothing else was left either. */
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
