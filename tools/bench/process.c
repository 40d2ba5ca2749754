/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts, ends and reaps children. However this program ends, no child and no
 * file in /dev/shm may be left. It knows nothing of what the children measure.
 */
#include "tools/bench/process.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above every descriptor that a child is given by number. */
#define FD_ASIDE 32

/*
 * A child of this program gets it when its parent dies. Not SIGTERM: libraries that
 * providers load have handlers for that one, and libinfinipath's calls exit(), which
 * waits for ever if the signal came while a library was being loaded. Without our
 * handler this one ends the process.
 */
#define ORPHANED (SIGRTMIN + 1)

#define SHM_FOLDER "/dev/shm"

static volatile sig_atomic_t caught;
static sigset_t waiting_mask; /* the mask before wf_tools_process_catch() */

static void on_signal(int number)
{
	caught = number;
}

void wf_tools_process_catch(void)
{
	static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t mask;
	size_t i;

	sigemptyset(&mask);
	for (i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		sigaction(stops[i], &action, NULL);
		sigaddset(&mask, stops[i]);
	}
	/* We notice the death of a worker by its socket, so ignore SIGPIPE. */
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &mask, &waiting_mask);
}

void wf_tools_process_die(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
	sigprocmask(SIG_SETMASK, &waiting_mask, NULL);
}

void wf_tools_process_limit(unsigned seconds)
{
	/* SIGXCPU, and SIGKILL if that does not help. Children inherit it. */
	const struct rlimit limit = {
		.rlim_cur = seconds * (WF_NS_PER_S / WF_NS_PER_US),
		.rlim_max = (seconds + 1) * (WF_NS_PER_S / WF_NS_PER_US),
	};
	struct rlimit now;

	/* An administrator's that is lower stays. */
	if (!getrlimit(RLIMIT_RTTIME, &now) && now.rlim_max > limit.rlim_max)
		setrlimit(RLIMIT_RTTIME, &limit);
}

static int child_fds(const int fds[WF_TOOLS_PROCESS_FDS])
{
	int aside[WF_TOOLS_PROCESS_FDS];
	int i;

	/* Move all of them away first: a source may be at another one's target
	 * number. */
	for (i = 0; i < WF_TOOLS_PROCESS_FDS; i++) {
		if (fds[i] >= 0)
			aside[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_ASIDE);
		else
			aside[i] = i < 3 ? open("/dev/null", O_RDWR) : -1;
		if (aside[i] < 0 && (i < 3 || fds[i] >= 0))
			return -errno;
	}
	for (i = 0; i < WF_TOOLS_PROCESS_FDS; i++) {
		if (aside[i] >= 0 && dup2(aside[i], i) < 0)
			return -errno;
	}
	return 0;
}

static void child_env(const char *const *env)
{
	for (; env && env[0]; env += 2) {
		if (env[1])
			setenv(env[0], env[1], 1);
		else
			unsetenv(env[0]);
	}
}

static void child_run(const struct wf_tools_process *process, pid_t parent)
{
	cpu_set_t set;

	/* Other programs end what they have started (mpirun) when they are asked
	 * to. The parent may have died before this request took effect. */
	prctl(PR_SET_PDEATHSIG, process->path ? SIGTERM : ORPHANED);
	/* Signals to our process group reach only the parent, which ends us
	 * properly. */
	setpgid(0, 0);
	if (getppid() != parent)
		_exit(127);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(ORPHANED, SIG_DFL);
	sigprocmask(SIG_SETMASK, &waiting_mask, NULL);
	if (process->netns && setns(process->netns, CLONE_NEWNET))
		_exit(127);
	CPU_ZERO(&set);
	CPU_SET(process->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || child_fds(process->fds))
		_exit(127);
	child_env(process->env);
	if (process->path)
		execvp(process->path, process->argv);
	else
		execv("/proc/self/exe", process->argv);
	_exit(127);
}

pid_t wf_tools_process_spawn(const struct wf_tools_process *process)
{
	pid_t parent = getpid();
	pid_t pid;

	fflush(NULL); /* a child that fails must not print our buffered text again */
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child_run(process, parent);
	return pid;
}

int wf_tools_process_poll(struct pollfd *fds, unsigned n, uint64_t deadline)
{
	struct timespec ts;
	uint64_t now, left;
	int ret;

	do {
		now = wf_base_clock_ns();
		left = deadline > now ? deadline - now : 0;
		ts.tv_sec = (time_t)(left / WF_NS_PER_S);
		ts.tv_nsec = (long)(left % WF_NS_PER_S);
		/* EINTR also comes when we were stopped and continued: go on
		 * then. */
		ret = ppoll(fds, n, &ts, &waiting_mask);
	} while (ret < 0 && errno == EINTR && !caught);
	return ret < 0 ? -errno : ret;
}

static bool reap(pid_t pid, unsigned wait_ms, int *status)
{
	const struct timespec pause = { .tv_nsec = WF_NS_PER_MS };
	unsigned waited;

	for (waited = 0;; waited++) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		if (waited >= wait_ms)
			return false;
		nanosleep(&pause, NULL);
	}
}

/* "PID:" */
static void put_prefix(char prefix[24], pid_t pid)
{
	snprintf(prefix, 24, "%d:", (int)pid);
}

/* As getdents64() has it. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * libfabric's shm names its regions PID:UID:N. A worker that was killed could
 * not unlink them; the pid was ours, so the files are. Async-signal-safe, which
 * readdir() is not.
 */
static void sweep_shm(const char *prefix)
{
	_Alignas(struct entry) char buf[4096];
	int fd = open(SHM_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got;

	if (fd < 0)
		return;
	while ((got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < got;) {
			const struct entry *entry = (void *)(buf + at);

			if (!strncmp(entry->name, prefix, strlen(prefix)))
				unlinkat(fd, entry->name, 0);
			at += entry->len;
		}
	}
	close(fd);
}

static char own_prefix[24];

static void on_orphaned(int number)
{
	(void)number;
	sweep_shm(own_prefix);
	kill(getpid(), SIGKILL);
}

void wf_tools_process_follow(void)
{
	struct sigaction action = { .sa_handler = on_orphaned };

	put_prefix(own_prefix, getpid());
	sigaction(ORPHANED, &action, NULL);
}

int wf_tools_process_end(pid_t pid, unsigned grace_ms)
{
	char prefix[24];
	int status = 0;

	if (reap(pid, grace_ms, &status))
		goto reaped;
	kill(pid, SIGTERM);
	if (reap(pid, 500, &status))
		goto reaped;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
reaped:
	put_prefix(prefix, pid);
	sweep_shm(prefix);
	return status;
}

unsigned long wf_tools_process_preempted(pid_t pid)
{
	unsigned long count = 0;
	char line[256];
	FILE *in;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	in = fopen(line, "re");
	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "nonvoluntary_ctxt_switches: %lu", &count))
			break;
	}
	fclose(in);
	return count;
}

void wf_tools_process_describe(int status, char *buf, size_t len)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		snprintf(buf, len,
			 "kept its processor at real-time priority for "
			 "longer than a run may take (--timeout)");
	else if (WIFSIGNALED(status))
		snprintf(buf, len, "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == 127)
		snprintf(buf, len, "could not be started");
	else
		snprintf(buf, len, "exited with status %d",
			 WEXITSTATUS(status));
}
