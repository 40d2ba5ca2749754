/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers in other processes, and checks of what a test leaves behind.
 */
#include "common/fabric.h"

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/net.h"
#include "common/space.h"

/* -- children -------------------------------------------------------------- */

void weft_test_fork(struct weft_test_line *line,
		    void (*child)(struct weft_test_line *line, void *arg),
		    void *arg)
{
	unsigned int left = alarm(0);
	int ends[2];
	pid_t pid;

	alarm(left); /* not inherited: the child sets its own */
	fflush(NULL);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	pid = space_is_on() ? space_fork() : fork();
	CHECK_SYS(pid);
	if (pid) {
		close(ends[1]);
		*line = (struct weft_test_line){ .fd = ends[0], .pid = pid };
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(left);
	weft_test_forget_all();
	if (net_is_on())
		net_enter(!net_here());
	else if (space_is_on())
		space_enter();
	close(ends[0]);
	*line = (struct weft_test_line){ .fd = ends[1] };
	child(line, arg);
	fflush(NULL);
	_exit(0);
}

void weft_test_join(struct weft_test_line *line)
{
	int status;

	CHECK_EQ(waitpid(line->pid, &status, 0), line->pid);
	close(line->fd);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		FAIL("child %d: %s %d", (int)line->pid,
		     WIFEXITED(status) ? "exit code" : "signal",
		     WIFEXITED(status) ? WEXITSTATUS(status) :
					 WTERMSIG(status));
}

void weft_test_kill(struct weft_test_line *line)
{
	int status;

	CHECK_SYS(kill(line->pid, SIGKILL));
	CHECK_EQ(waitpid(line->pid, &status, 0), line->pid);
	close(line->fd);
	/* It may have ended before, but not with a failed check. */
	CHECK(WIFSIGNALED(status) || !WEXITSTATUS(status));
}

void weft_test_put(struct weft_test_line *line, const void *buf, size_t len)
{
	CHECK_EQ(send(line->fd, buf, len, MSG_NOSIGNAL), (ssize_t)len);
}

static bool get(struct weft_test_line *line, void *buf, size_t len, bool drive)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct pollfd pfd = { .fd = line->fd, .events = POLLIN };
	size_t have = 0;

	while (have < len) {
		ssize_t got;

		if (weft_test_ms() >= end)
			FAIL("the other process says nothing");
		if (drive)
			weft_test_progress();
		if (poll(&pfd, 1, drive ? 0 : 100) <= 0)
			continue;
		got = recv(line->fd, (char *)buf + have, len - have, 0);
		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

bool weft_test_get(struct weft_test_line *line, void *buf, size_t len)
{
	return get(line, buf, len, false);
}

bool weft_test_get_driving(struct weft_test_line *line, void *buf, size_t len)
{
	return get(line, buf, len, true);
}

fi_addr_t weft_test_meet(struct weft_test *t, struct weft_test_line *line)
{
	uint8_t name[WEFT_TEST_NAME_MAX];

	weft_test_put(line, t->name, sizeof(t->name));
	CHECK(weft_test_get(line, name, sizeof(name)));
	return weft_test_insert(t, name);
}

void weft_test_sync(struct weft_test_line *line)
{
	char mark = 's';

	weft_test_put(line, &mark, 1);
	CHECK(weft_test_get_driving(line, &mark, 1));
	CHECK_EQ(mark, 's');
}

struct pair {
	const struct weft_test_opts *opts;
	weft_test_side side;
	void *arg;
};

static void run_side(struct weft_test_line *line, void *arg)
{
	const struct pair *pair = arg;
	struct weft_test t;

	weft_test_open(&t, pair->opts);
	pair->side(&t, weft_test_meet(&t, line), line, pair->arg);
	weft_test_close(&t);
}

void weft_test_pair(const struct weft_test_opts *opts, weft_test_side child,
		    weft_test_side parent, void *arg)
{
	struct pair in_child = { opts, child, arg };
	struct pair in_parent = { opts, parent, arg };
	struct weft_test_line line;

	weft_test_fork(&line, run_side, &in_child);
	run_side(&line, &in_parent);
	weft_test_join(&line);
}

/* -- what is left behind --------------------------------------------------- */

static int count_entries(const char *path, const char *containing)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.' &&
			 strstr(entry->d_name, containing);
	closedir(dir);
	return count;
}

static int count_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:weft-ring") != NULL;
	fclose(maps);
	return count;
}

static size_t private_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	CHECK(status);
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %zu kB", &kib) == 1)
			break;
	fclose(status);
	return kib * 1024;
}

void weft_test_look(struct weft_test_traces *traces)
{
	*traces = (struct weft_test_traces){
		.descriptors = count_entries("/proc/self/fd", ""),
		.rings = count_rings(),
		.private = private_bytes(),
		.files = count_entries("/dev/shm", "weft") +
			 count_entries("/tmp", "weft"),
	};
}

void weft_test_check_clean(const struct weft_test_traces *before)
{
	struct weft_test_traces after;
	int status;

	weft_test_look(&after);
	CHECK_EQ(after.descriptors, before->descriptors);
	CHECK_EQ(after.rings, before->rings);
	CHECK_EQ(after.files, before->files);
	CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
}
