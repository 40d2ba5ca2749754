/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes that cannot outlive the parent, and the parent's signals.
 */
#ifndef WF_TOOLS_BENCH_PROCESS_H
#define WF_TOOLS_BENCH_PROCESS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WF_TOOLS_PROCESS_FDS = 6 };

struct wf_tools_process {
	const char *path; /* NULL: this very program */
	char *const *argv;
	int cpu;
	int netns; /* a network namespace to run in; 0: ours */
	/* The child's descriptors 0 to 5; -1: /dev/null below 3, else none. */
	int fds[WF_TOOLS_PROCESS_FDS];
	/* name, value, name, value, NULL; a NULL value unsets. May be NULL. */
	const char *const *env;
};

/* Blocks SIGINT, SIGTERM and SIGHUP except while waiting below. Once. */
void wf_tools_process_catch(void);

/* Ends this program by the signal that asked it to stop, if one did. */
void wf_tools_process_die(void);

/* Returns the pid or -errno. A failing exec shows as exit status 127. */
pid_t wf_tools_process_spawn(const struct wf_tools_process *process);

/*
 * poll() until the deadline of the monotonic clock in ns. Returns what poll
 * does, 0 at the deadline, -EINTR once a signal asked us to stop.
 */
int wf_tools_process_poll(struct pollfd *fds, unsigned n, uint64_t deadline);

/*
 * Ends a child: waits grace_ms for it to go by itself, then SIGTERM, then
 * SIGKILL. Reaps it and removes what libfabric's shm left in /dev/shm. Returns
 * the status as of waitpid.
 */
int wf_tools_process_end(pid_t pid, unsigned grace_ms);

/* How often something else was given the CPU of a child that wanted it. */
unsigned long wf_tools_process_preempted(pid_t pid);

/* Says how a child ended: "exited with status 1", "killed by signal 9". */
void wf_tools_process_describe(int status, char *buf, size_t len);

#endif
