/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds names that no provider has before anything is measured. A child asks
 * libfabric, because `weft bench` itself must not load it, and prints a line for each
 * provider, also for those that do not work on this machine: a measurement says why.
 * Without an answer the measurement finds out.
 */
#include "tools/bench/names.h"

#include "base/clock.h"
#include "tools/bench/mpi.h"
#include "tools/bench/process.h"
#include "tools/near.h"
#include "tools/options.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ANSWER = 8192, GRACE_MS = 100, PATIENCE_S = 10 };

/* Old enough for Debian 12, as in fabric.c. */
#define API FI_VERSION(1, 17)

int wf_tools_names_main(int argc, char **argv)
{
	struct fi_info *all = NULL, *one;

	(void)argc;
	(void)argv;
	wf_tools_process_follow();
	if (fi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &all))
		return 1;
	for (one = all; one; one = one->next)
		puts(one->fabric_attr->prov_name);
	fi_freeinfo(all);
	return 0;
}

/* Those of libfabric; weft may still have to be found, and says so by itself. */
static bool is_asked(const char *name)
{
	return strcmp(name, "weft") && strcmp(name, "ucx") &&
	       strcmp(name, "socket") &&
	       strncmp(name, WF_TOOLS_MPI_PREFIX, strlen(WF_TOOLS_MPI_PREFIX));
}

static void read_answer(int fd, char *text, size_t room)
{
	uint64_t deadline = wf_base_clock_ns() + PATIENCE_S * WF_NS_PER_S;
	struct pollfd poll = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < room - 1 &&
	       wf_tools_process_poll(&poll, 1, deadline) > 0) {
		ssize_t got = read(fd, text + len, room - 1 - len);

		if (got <= 0)
			break;
		len += (size_t)got;
	}
	text[len] = '\0';
}

static void ask(int cpu, char *text, size_t room)
{
	static const char *const env[] = { "FI_PROVIDER", NULL, NULL };
	char *argv[] = { (char *)"weft", (char *)WF_TOOLS_NAMES_COMMAND, NULL };
	struct wf_tools_process process = {
		.argv = argv,
		.cpu = cpu,
		.fds = { -1, -1, -1, -1, -1, -1 },
		.env = env,
	};
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return;
	process.fds[STDOUT_FILENO] = fds[1];
	pid = wf_tools_process_spawn(&process);
	close(fds[1]);
	if (pid > 0) {
		read_answer(fds[0], text, room);
		wf_tools_process_end(pid, GRACE_MS);
	}
	close(fds[0]);
}

/* A line of @text; libfabric ignores case. */
static bool has_line(const char *text, const char *name, size_t len)
{
	for (; *text; text += strcspn(text, "\n")) {
		text += strspn(text, "\n");
		if (strcspn(text, "\n") == len && !strncasecmp(text, name, len))
			return true;
	}
	return false;
}

/* Whether @text has the provider @name; of one that works on another one, such as
 * udp;ofi_rxd, both. */
static bool is_there(const char *text, const char *name)
{
	bool found = true;

	for (;;) {
		size_t len = strcspn(name, ";");

		found = found && has_line(text, name, len);
		if (!name[len])
			return found;
		name += len + 1;
	}
}

/* "shm, tcp, ...": those that move messages by themselves. Lines are cut in @text,
 * and @near learns of them. */
static void list(char *text, struct wf_tools_near *near, char *names,
		 size_t room)
{
	size_t at = 0;
	char *line;

	*names = '\0';
	while ((line = strsep(&text, "\n"))) {
		if (!*line || strncmp(line, "of", 2) == 0)
			continue;
		wf_tools_near_try(near, line);
		if (at < room)
			at += (size_t)snprintf(names + at, room - at, "%s%s",
					       at ? ", " : "", line);
	}
}

static int complain(const char *name, char *text)
{
	static const char *const more[] = { "ucx", "socket", "weft" };
	struct wf_tools_near near = { .word = name };
	char names[1024];

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		wf_tools_near_try(&near, more[i]);
	list(text, &near, names, sizeof(names));
	wf_tools_complain("bench",
			  "libfabric has no provider '%s'%s (it has %s; "
			  "--against also takes socket, ucx, mpi:NAME)",
			  name, wf_tools_near_text(&near), names);
	return -ENOENT;
}

int wf_tools_names_check(const struct wf_tools_plan *plan)
{
	char text[ANSWER] = "";
	bool asked = is_asked(plan->provider);

	for (unsigned i = 0; i < plan->n_named; i++)
		asked = asked || is_asked(plan->against[i]);
	if (asked)
		ask(plan->cpus[0], text, sizeof(text));
	if (!*text)
		return 0;
	if (is_asked(plan->provider) && !is_there(text, plan->provider))
		return complain(plan->provider, text);
	for (unsigned i = 0; i < plan->n_named; i++) {
		if (is_asked(plan->against[i]) &&
		    !is_there(text, plan->against[i]))
			return complain(plan->against[i], text);
	}
	return 0;
}
