/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leads a crowd of processes through its three steps (open, exchange names,
 * send) and adds up the results of its members. It must not call libfabric, and
 * leaves no process behind however it ends.
 */
#include "tools/bench/crowd.h"

#include "base/clock.h"
#include "tools/bench/crowd_defs.h"
#include "tools/bench/crowd_member.h"
#include "tools/bench/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRACE_MS 2000

struct member {
	pid_t pid;
	int fd;
	struct wf_tools_crowd_word word; /* the last */
};

static int start_member(struct member *m, const struct wf_tools_plan *plan,
			const char *provider, const char *const *env,
			unsigned i, const char *n)
{
	char *argv[] = {
		"weft", WF_TOOLS_CROWD_COMMAND, (char *)provider, (char *)n,
		NULL,
	};
	struct wf_tools_process process = {
		.argv = argv,
		.cpu = plan->cpus[i % 2],
		.fds = { -1, -1, STDERR_FILENO, -1, -1, -1 },
		.env = env,
	};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	process.fds[WF_TOOLS_CROWD_FD] = pair[1];
	m->fd = pair[0];
	m->pid = wf_tools_process_spawn(&process);
	close(pair[1]);
	return m->pid < 0 ? m->pid : 0;
}

static int fail(struct wf_tools_crowd *crowd, int ret, const char *text)
{
	snprintf(crowd->error, sizeof(crowd->error), "%s", text);
	return ret;
}

/* The next report of each member; the deadline applies to all of them
 * together. */
static int hear_all(struct wf_tools_crowd *crowd,
		    const struct wf_tools_plan *plan, struct member *members,
		    unsigned n)
{
	uint64_t deadline = wf_base_clock_ns() + plan->timeout_s * WF_NS_PER_S;
	struct wf_tools_crowd_word *word;
	unsigned i;
	int ret;

	for (i = 0; i < n; i++) {
		struct pollfd fd = { .fd = members[i].fd, .events = POLLIN };

		ret = wf_tools_process_poll(&fd, 1, deadline);
		if (ret == -EINTR)
			return fail(crowd, ret, "stopped");
		if (ret <= 0)
			return fail(crowd, -ETIMEDOUT,
				    "not all had an answer in time; "
				    "--timeout gives more");
		word = &members[i].word;
		if (recv(members[i].fd, word, sizeof(*word), 0) !=
		    (ssize_t)sizeof(*word))
			return fail(crowd, -ECHILD, "a process died");
		word->text[sizeof(word->text) - 1] = '\0';
		if (word->status)
			return fail(crowd, word->status, word->text);
	}
	return 0;
}

static int tell_all(struct wf_tools_crowd *crowd, struct member *members,
		    unsigned n, const void *message, size_t len)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		if (send(members[i].fd, message, len, MSG_NOSIGNAL) !=
		    (ssize_t)len)
			return fail(crowd, -ECHILD, "a process died");
	}
	return 0;
}

static int introduce(struct wf_tools_crowd *crowd, struct member *members,
		     unsigned n)
{
	struct wf_tools_crowd_name *names = calloc(n, sizeof(*names));
	unsigned i;
	int ret;

	if (!names)
		return fail(crowd, -ENOMEM, "no memory");
	for (i = 0; i < n; i++)
		memcpy(names[i].bytes, members[i].word.name,
		       sizeof(names[i].bytes));
	ret = tell_all(crowd, members, n, names, n * sizeof(*names));
	free(names);
	return ret;
}

static int lead(struct wf_tools_crowd *crowd, const struct wf_tools_plan *plan,
		struct member *members, unsigned n,
		struct wf_tools_crowd_result *result)
{
	uint64_t start, last = 0;
	unsigned i;
	int ret;

	ret = hear_all(crowd, plan, members, n);
	if (!ret)
		ret = introduce(crowd, members, n);
	if (!ret)
		ret = hear_all(crowd, plan, members, n);
	start = wf_base_clock_ns();
	if (!ret)
		ret = tell_all(crowd, members, n, "", 1);
	if (!ret)
		ret = hear_all(crowd, plan, members, n);
	for (i = 0; i < n && !ret; i++) {
		if (members[i].word.now > last)
			last = members[i].word.now;
	}
	result->ns = (double)(last - start);
	/* All members have all messages: count now, while all of them still
	 * exist. */
	if (!ret)
		ret = tell_all(crowd, members, n, "", 1);
	if (!ret)
		ret = hear_all(crowd, plan, members, n);
	result->bytes = 0;
	for (i = 0; i < n && !ret; i++)
		result->bytes += members[i].word.bytes;
	return ret;
}

int wf_tools_crowd_run(struct wf_tools_crowd *crowd,
		       const struct wf_tools_plan *plan, const char *provider,
		       const char *const *env, unsigned n,
		       struct wf_tools_crowd_result *result)
{
	struct member *members = calloc(n, sizeof(*members));
	char count[16];
	unsigned i;
	int ret = 0;

	crowd->error[0] = '\0';
	if (!members)
		return fail(crowd, -ENOMEM, "no memory");
	snprintf(count, sizeof(count), "%u", n);
	for (i = 0; i < n; i++)
		members[i].fd = -1;
	for (i = 0; i < n && !ret; i++) {
		ret = start_member(&members[i], plan, provider, env, i, count);
		if (ret)
			fail(crowd, ret, "cannot start a process");
	}
	if (!ret)
		ret = lead(crowd, plan, members, n, result);
	for (i = 0; i < n; i++) {
		if (members[i].fd >= 0)
			close(members[i].fd);
	}
	for (i = 0; i < n; i++) {
		if (members[i].pid > 0)
			wf_tools_process_end(members[i].pid,
					     ret ? 0 : GRACE_MS);
	}
	free(members);
	return ret;
}
