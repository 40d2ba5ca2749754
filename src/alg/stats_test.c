/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of counters of drivers, found as `weft stat` finds them: not before
 * the first job, one for each driver, and harmless to programs that close
 * descriptors or fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/stats.h"
#include "alg/wrap.h"

#define SIZE 5000u
#define COPIED 77

static int answer; /* of the driver; 0: the job is done */

static int store(struct wd_comp_job *job)
{
	if (answer)
		return answer;
	job->produced =
		wf_alg_stored_write(job->dst, job->src, job->src_len, true);
	job->consumed = job->src_len;
	job->copied = COPIED;
	return 0;
}

static const struct wd_alg_comp driver = {
	.name = "counted",
	.priority = 1000,
	.can = WD_COMP_CAN_DEFLATE,
	.levels = 0x3fe,
	.min_window = 8,
	.deflate = store,
};

/* Its descriptor, or -1: there is no page of that name with our pid. */
static int find(const char *name, struct wf_stats_page *copy)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	int found = -1;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		char path[300], link[100] = "";
		struct wf_stats_page page;
		int fd = atoi(e->d_name);

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		if (readlink(path, link, sizeof(link) - 1) < 0 ||
		    !strstr(link, "memfd:" WF_STATS_FILE) ||
		    pread(fd, &page, sizeof(page), 0) != sizeof(page) ||
		    page.pid != (uint32_t)getpid() || strcmp(page.name, name))
			continue;
		assert_string_equal(page.kind, "driver");
		assert_int_equal(found, -1);
		found = fd;
		if (copy)
			*copy = page;
	}
	closedir(dir);
	return found;
}

static uint64_t value(const char *name, enum wf_alg_stat item)
{
	struct wf_stats_page page;

	assert_true(find(name, &page) >= 0);
	return page.items[item].value;
}

static int job(const char *name)
{
	static uint8_t in[SIZE], out[2 * SIZE];
	size_t in_len = SIZE, out_len = sizeof(out);
	struct wd_comp_ctx ctx = { .comp_level = 6, .driver = name };

	return wd_alg_deflate(&ctx, in, &in_len, out, &out_len);
}

static int begin(void **state)
{
	(void)state;
	answer = 0;
	return wd_alg_comp_register(&driver);
}

static int end(void **state)
{
	(void)state;
	return wd_alg_comp_unregister(&driver);
}

/* First: nothing else in this process has had a job. */
static void test_counts(void **state)
{
	(void)state;
	assert_int_equal(find("counted", NULL), -1);
	assert_int_equal(job("counted"), 0);
	assert_int_equal(job(NULL), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_jobs), 2);
	assert_int_equal(value("counted", WF_ALG_STAT_bytes_in), 2 * SIZE);
	assert_true(value("counted", WF_ALG_STAT_bytes_out) > 2 * SIZE);
	assert_int_equal(value("counted", WF_ALG_STAT_copied_bytes),
			 2 * COPIED);
	assert_int_equal(value("counted", WF_ALG_STAT_failed), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_handed_on), 0);
}

static struct wd_comp_job *on_channel;
static unsigned int looks;

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	*chan = &on_channel;
	return 0;
}

static void close_chan(void *chan)
{
	(void)chan;
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	(void)chan;
	(void)n;
	on_channel = jobs[0];
	return 1;
}

/* Others see this while the job is there. */
static int poll_chan(void *chan, struct wd_comp_job **done, unsigned int n)
{
	(void)chan;
	(void)n;
	if (!on_channel || ++looks < 3)
		return 0;
	assert_int_equal(value("queued", WF_ALG_STAT_waiting), 1);
	assert_int_equal(value("queued", WF_ALG_STAT_channels), 1);
	done[0] = on_channel;
	done[0]->result = store(on_channel);
	on_channel = NULL;
	return 1;
}

static void test_waiting(void **state)
{
	static const struct wd_alg_comp queued = {
		.name = "queued",
		.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,
		.levels = 0x3fe,
		.version = WD_COMP_DRV_VERSION,
		.size = sizeof(queued),
		.open_chan = open_chan,
		.close_chan = close_chan,
		.submit = submit,
		.poll = poll_chan,
	};

	(void)state;
	assert_int_equal(wd_alg_comp_register(&queued), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		looks = 0;
		assert_int_equal(job("queued"), 0);
		assert_int_equal(value("queued", WF_ALG_STAT_waiting), 0);
		assert_int_equal(value("queued", WF_ALG_STAT_jobs), i);
		assert_int_equal(value("queued", WF_ALG_STAT_bytes_in),
				 i * SIZE);
	}
	assert_int_equal(wd_alg_comp_unregister(&queued), 0);
	assert_int_equal(value("queued", WF_ALG_STAT_channels), 0);
}

static void test_failures(void **state)
{
	uint64_t jobs = value("counted", WF_ALG_STAT_jobs);

	(void)state;
	answer = -ENODEV; /* another one does it */
	assert_int_equal(job(NULL), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_handed_on), 1);
	assert_int_equal(value("counted", WF_ALG_STAT_jobs), jobs);
	answer = -ENOSPC; /* the library stores it */
	assert_int_equal(job(NULL), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_failed), 0);
	answer = -ENOMEM;
	assert_int_equal(job(NULL), -ENOMEM);
	assert_int_equal(value("counted", WF_ALG_STAT_failed), 1);
	assert_int_equal(value("counted", WF_ALG_STAT_jobs), jobs + 2);
}

static int in_child(void (*work)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* cmocka's assertions are for its own process. */
static void must(bool good)
{
	if (!good)
		abort();
}

static void child_once(void)
{
	must(find("counted", NULL) < 0);
	must(!job(NULL));
	must(value("counted", WF_ALG_STAT_jobs) == 1);
}

static void test_fork(void **state)
{
	uint64_t jobs = value("counted", WF_ALG_STAT_jobs);

	(void)state;
	assert_int_equal(in_child(child_once), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_jobs), jobs);
	assert_int_equal(job(NULL), 0);
	assert_int_equal(value("counted", WF_ALG_STAT_jobs), jobs + 1);
}

static int taken = -1; /* the number that our descriptor had */
static struct stat file;

/* The program's file has the number now: it must stay open. */
static void child_keeps(void)
{
	struct stat st;

	must(!fstat(taken, &st) && st.st_ino == file.st_ino &&
	     st.st_dev == file.st_dev);
	child_once();
}

static void test_closed(void **state)
{
	char name[] = "/tmp/weft-stats-XXXXXX";
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(fstat(fd, &file), 0);
	taken = find("counted", NULL);
	assert_int_equal(dup2(fd, taken), taken);
	assert_int_equal(job(NULL), 0); /* counts where nobody looks */
	assert_int_equal(find("counted", NULL), -1);
	assert_int_equal(in_child(child_keeps), 0);
	close(taken);
	close(fd);
}

/* A number below 3 would be taken for the program's standard input. */
static void child_without_input(void)
{
	close(STDIN_FILENO);
	must(!job(NULL));
	must(find("counted", NULL) > STDERR_FILENO);
	must(open("/dev/null", O_RDONLY) == STDIN_FILENO);
}

static void test_standard_input(void **state)
{
	(void)state;
	assert_int_equal(in_child(child_without_input), 0);
}

static void child_without_descriptors(void)
{
	struct rlimit none = { 0, 0 };

	must(!setrlimit(RLIMIT_NOFILE, &none));
	must(!job(NULL));
	must(!job(NULL));
}

static void test_no_descriptor(void **state)
{
	(void)state;
	assert_int_equal(in_child(child_without_descriptors), 0);
}

static void child_off(void)
{
	must(!setenv("WD_STATS", "0", 1));
	must(!job(NULL));
	must(find("counted", NULL) < 0);
}

static void test_off(void **state)
{
	(void)state;
	assert_int_equal(in_child(child_off), 0);
}

/* Decompression without a driver: a page once it is worth one. */
static void test_inflated(void **state)
{
	(void)state;
	wf_alg_stats_inflated(1, 10, 1000);
	assert_int_equal(find("weft", NULL), -1);
	wf_alg_stats_inflated(1, 10, 2 << 20);
	assert_int_equal(value("weft", WF_ALG_STAT_jobs), 2);
	assert_int_equal(value("weft", WF_ALG_STAT_bytes_in), 20);
	assert_int_equal(value("weft", WF_ALG_STAT_bytes_out),
			 (2 << 20) + 1000);
	wf_alg_stats_inflated(0, 1, 1);
	assert_int_equal(value("weft", WF_ALG_STAT_bytes_in), 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, begin, end),
		cmocka_unit_test_setup_teardown(test_waiting, begin, end),
		cmocka_unit_test_setup_teardown(test_failures, begin, end),
		cmocka_unit_test_setup_teardown(test_fork, begin, end),
		cmocka_unit_test_setup_teardown(test_standard_input, begin,
						end),
		cmocka_unit_test_setup_teardown(test_no_descriptor, begin, end),
		cmocka_unit_test_setup_teardown(test_off, begin, end),
		cmocka_unit_test_setup_teardown(test_closed, begin, end),
		cmocka_unit_test(test_inflated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
