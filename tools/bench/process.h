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
	const char *path; /* NULL: this program */
	char *const *argv;
	int cpu;
	int netns; /* a network namespace to run in; 0: ours */
	/* The child's descriptors 0 to 5; -1: /dev/null below 3, otherwise
	 * none. */
	int fds[WF_TOOLS_PROCESS_FDS];
	/* name, value, name, value, NULL; a NULL value unsets. May be NULL. */
	const char *const *env;
};

/* Blocks SIGINT, SIGTERM and SIGHUP except while waiting below. Once. */
void wf_tools_process_catch(void);

/* Ends this program by the signal that asked it to stop, if one did. */
void wf_tools_process_die(void);

/*
 * Limits what our children may compute at real-time priority before they sleep
 * once. Two that wait for each other for ever leave no processor to us, and then
 * our own deadlines are of no use.
 */
void wf_tools_process_limit(unsigned seconds);

/*
 * In a child of this program, before it loads libraries: when the parent dies,
 * whatever the way, the child removes what libfabric's shm has made in /dev/shm for it,
 * and ends.
 */
void wf_tools_process_follow(void);

/* Returns the pid or -errno. A failing exec gives exit status 127. */
pid_t wf_tools_process_spawn(const struct wf_tools_process *process);

/*
 * poll() until the deadline of the monotonic clock in ns. Returns the result of
 * poll, 0 at the deadline, -EINTR after a signal that asks us to stop.
 */
int wf_tools_process_poll(struct pollfd *fds, unsigned n, uint64_t deadline);

/*
 * Ends a child: waits grace_ms until it ends by itself, then sends SIGTERM,
 * then SIGKILL. Reaps it and removes what libfabric's shm left in /dev/shm.
 * Returns the status of waitpid.
 */
int wf_tools_process_end(pid_t pid, unsigned grace_ms);

/* How often another process got the CPU while the child wanted it. */
unsigned long wf_tools_process_preempted(pid_t pid);

/* Describes how a child ended: "exited with status 1", "killed by signal 9". */
void wf_tools_process_describe(int status, char *buf, size_t len);

#endif
