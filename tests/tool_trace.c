/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft trace` on two processes that were not prepared for it: a file that a
 * parser of JSON takes, with every kind of event, and arrows that lead from each
 * send to its receive (common/timeline.py). Recording ends with the command, also
 * when it is killed, and can begin again.
 */
#include "common/fabric.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/trace_defs.h"

#define MOST (1 << 20)
#define SIZES 3

static const size_t sizes[SIZES] = { 8, 1000, MOST };

static const struct weft_test_opts opts = { .wait_obj = FI_WAIT_UNSPEC };

static void wait_asleep(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_sread(cq, &entry, 1, NULL, 1000);
	} while (ret == -FI_EAGAIN || ret == -FI_EINTR);
	CHECK_EQ(ret, 1);
}

/* Receives asleep, and answers. */
static void answerer(struct weft_test_line *line, void *arg)
{
	static uint8_t buf[MOST];
	struct weft_test t;
	fi_addr_t peer;

	(void)arg;
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (;;) {
		for (size_t i = 0; i < SIZES; i++) {
			CHECK_OK(weft_test_trecv(&t, buf, sizeof(buf), i, 0,
						 NULL));
			wait_asleep(t.rxcq);
		}
		CHECK_OK(weft_test_tsend(&t, buf, 8, peer, 9, NULL));
		weft_test_wait_ok(t.txcq, NULL);
	}
}

static void asker(struct weft_test_line *line, void *arg)
{
	static uint8_t buf[MOST];
	const struct timespec pause = { 0, 1000000 };
	struct weft_test t;
	fi_addr_t peer;

	(void)arg;
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (;;) {
		CHECK_OK(weft_test_trecv(&t, buf, sizeof(buf), 9, 0, NULL));
		for (size_t i = 0; i < SIZES; i++) {
			CHECK_OK(weft_test_tsend(&t, buf, sizes[i], peer, i,
						 NULL));
			weft_test_wait_ok(t.txcq, NULL);
		}
		weft_test_wait_ok(t.rxcq, NULL);
		/* So that the other one falls asleep. */
		nanosleep(&pause, NULL);
	}
}

static int run(const char *command)
{
	int status = system(command);

	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The page of a process, as a reader finds it. */
static const struct wf_trace_page *page_of(pid_t pid)
{
	char path[64], link[64];
	void *page;

	for (int i = 0; i < 256; i++) {
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, i);
		len = readlink(path, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = 0;
		if (strcmp(link, "/memfd:" WF_WAITS_FILE " (deleted)"))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0);
		page = mmap(NULL, WF_TRACE_BYTES, PROT_READ, MAP_SHARED, fd,
			    WF_TRACE_AT);
		CHECK(page != MAP_FAILED);
		close(fd);
		return page;
	}
	FAIL("process %d has no ring of events", (int)pid);
}

/* Nothing is written any more, though messages go on. */
static void check_is_off(const struct wf_trace_page *page)
{
	const struct timespec pause = { 0, 100000000 };
	uint64_t give_up = weft_test_ms() + 60000, head;

	do {
		CHECK(weft_test_ms() < give_up);
		head = page->front.written;
		nanosleep(&pause, NULL);
	} while (page->front.written != head);
}

/* @pids NULL: of all processes. */
static void trace(const pid_t *pids, const char *time)
{
	char command[1024], numbers[32] = "";

	if (pids)
		snprintf(numbers, sizeof(numbers), "%d %d", (int)pids[0],
			 (int)pids[1]);
	snprintf(command, sizeof(command),
		 "%s/tools/weft trace -t %s -o /tmp/trace.json %s "
		 "2>/tmp/trace.said",
		 getenv("WEFT_BUILD"), time, numbers);
	CHECK_EQ(run(command), 0);
}

/* Whether it named the command for a job that hangs. */
static bool said_why(void)
{
	return !run("cat /tmp/trace.said; "
		    "grep -q 'hangs: weft why$' /tmp/trace.said");
}

static bool is_complete(const pid_t *pids)
{
	const char *how = weft_test_by_packets() ? "packets" : "memory";
	char command[1024];

	snprintf(command, sizeof(command),
		 "python3 %s/tests/common/timeline.py /tmp/trace.json %s %d %d",
		 getenv("WEFT_SRC"), how, (int)pids[0], (int)pids[1]);
	return !run(command);
}

/* Every kind of event, and a message from one to the other. On a busy machine not
 * all of them happen within half a second. */
static void check_file(const pid_t *pids)
{
	static const char *const times[] = { "500ms", "2s", "8s" };

	for (unsigned i = 0; i < 3; i++) {
		trace(NULL, times[i]);
		if (!said_why() && is_complete(pids))
			return;
	}
	FAIL("not even in %s", times[2]);
}

/* A reader that is killed leaves nothing on. */
static void check_killed(const pid_t *pids, const struct wf_trace_page *page)
{
	uint64_t head = page->front.written, give_up = weft_test_ms() + 60000;
	const struct timespec pause = { 0, 10000000 };
	char weft[512], number[16];
	pid_t pid;

	snprintf(weft, sizeof(weft), "%s/tools/weft", getenv("WEFT_BUILD"));
	snprintf(number, sizeof(number), "%d", (int)pids[0]);
	pid = fork();
	CHECK_SYS(pid);
	if (!pid) {
		execl(weft, "weft", "trace", "-t", "60s", "-o", "/dev/null",
		      number, NULL);
		_exit(1);
	}
	while (page->front.written == head) {
		CHECK(weft_test_ms() < give_up);
		nanosleep(&pause, NULL);
	}
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	check_is_off(page);
}

/* Both are stopped first: by packets, one of them would notice that the other is
 * gone, and fail. */
static void end(struct weft_test_line lines[2], const pid_t *pids)
{
	int status;

	for (int i = 0; i < 2; i++) {
		CHECK_SYS(kill(lines[i].pid, SIGSTOP));
		CHECK_EQ(waitpid(lines[i].pid, &status, WUNTRACED),
			 lines[i].pid);
		CHECK(WIFSTOPPED(status));
	}
	trace(pids, "50ms");
	CHECK(said_why());
	for (int i = 0; i < 2; i++)
		weft_test_kill(&lines[i]);
}

int main(void)
{
	void (*const sides[])(struct weft_test_line *, void *) = { asker,
								   answerer };
	uint8_t names[2][WEFT_TEST_NAME_MAX];
	struct weft_test_line lines[2];
	const struct wf_trace_page *page;
	pid_t pids[2];

	weft_test_begin(280);
	weft_test_load();
	for (int i = 0; i < 2; i++) {
		weft_test_fork(&lines[i], sides[i], NULL);
		pids[i] = lines[i].pid;
		CHECK(weft_test_get(&lines[i], names[i], sizeof(names[i])));
	}
	for (int i = 0; i < 2; i++)
		weft_test_put(&lines[i], names[!i], sizeof(names[i]));
	page = page_of(pids[0]);
	CHECK_EQ(page->front.written, 0);
	trace(pids, "100ms");
	check_is_off(page);
	check_file(pids);
	check_killed(pids, page);
	end(lines, pids);
	return 0;
}
