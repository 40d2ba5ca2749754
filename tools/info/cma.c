/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out whether processes may read each other's memory here, by doing it:
 * settings alone do not show it (containers, security modules). The same word
 * has another value in each process, so that a wrong read is noticed.
 */
#include "tools/info/facts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cma.h"
#include "base/setting.h"

#define SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define CAP_SYS_PTRACE_BIT 19 /* linux/capability.h */

enum { WE = 0x7765, PASSIVE = 0x7061, ACTIVE = 0x6163 };

/* At the same address in parent and children. */
static volatile uint64_t word;

struct answers {
	int parent;
	int sibling;
};

/* 0, or errno. */
static int try_both(pid_t pid, uint64_t expected)
{
	uint64_t seen = ~expected;
	struct iovec local = { &seen, sizeof(seen) };
	struct iovec remote = { (void *)(uintptr_t)&word, sizeof(word) };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	/* Another namespace's process: as good as no permission. */
	if (seen != expected)
		return ESRCH;
	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	return 0;
}

static bool get(int fd, void *buf, size_t len)
{
	ssize_t got;

	do {
		got = read(fd, buf, len);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)len;
}

/* The provider does this in every process if the setting says so; the trial
 * must do the same. */
static void allow_tracers(void)
{
	const struct wf_setting *s = wf_base_setting_find("ptracer");
	const char *given = getenv(WF_SETTING_PREFIX "PTRACER");
	char note[WF_SETTING_NOTE];
	uint64_t value = 0;

	if (given && wf_base_setting_read(s, given, &value, note) && value)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

static _Noreturn void be_passive(int ready, int end)
{
	char mark = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	allow_tracers();
	word = PASSIVE;
	if (write(ready, &mark, 1) == 1)
		(void)get(end, &mark, 1);
	_exit(0);
}

static _Noreturn void be_active(int answer, pid_t parent, pid_t sibling)
{
	struct answers answers;

	word = ACTIVE;
	answers.parent = try_both(parent, WE);
	answers.sibling = try_both(sibling, PASSIVE);
	_exit(write(answer, &answers, sizeof(answers)) !=
	      (ssize_t)sizeof(answers));
}

static void close_pair(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void ask_active(struct wf_tools_cma *cma, pid_t passive)
{
	struct answers answers;
	pid_t parent = getpid();
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		close(pipes[0]);
		be_active(pipes[1], parent, passive);
	}
	close(pipes[1]);
	if (pid > 0 && get(pipes[0], &answers, sizeof(answers))) {
		cma->parent = answers.parent;
		cma->sibling = answers.sibling;
	}
	close(pipes[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void probe_others(struct wf_tools_cma *cma)
{
	int ready[2], end[2];
	pid_t passive;
	char mark;

	if (pipe(ready))
		return;
	if (pipe(end)) {
		close_pair(ready);
		return;
	}
	passive = fork();
	if (!passive) {
		close(ready[0]);
		close(end[1]);
		be_passive(ready[1], end[0]);
	}
	close(ready[1]);
	close(end[0]);
	if (passive > 0 && get(ready[0], &mark, 1)) {
		cma->child = try_both(passive, PASSIVE);
		ask_active(cma, passive);
	}
	close(ready[0]);
	close(end[1]); /* lets it go */
	if (passive > 0)
		waitpid(passive, NULL, 0);
}

/* -- why not --------------------------------------------------------------- */

static void read_status(struct wf_tools_cma *cma)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[256];

	cma->seccomp = -1;
	if (!status)
		return;
	while (fgets(line, sizeof(line), status)) {
		(void)sscanf(line, "Seccomp: %d", &cma->seccomp);
		(void)sscanf(line, "CapEff: %llx", &caps);
	}
	fclose(status);
	cma->capable = caps >> CAP_SYS_PTRACE_BIT & 1;
}

static void read_scope(struct wf_tools_cma *cma)
{
	FILE *scope = fopen(SCOPE, "re");

	cma->ptrace_scope = -1;
	if (!scope)
		return;
	if (fscanf(scope, "%d", &cma->ptrace_scope) != 1)
		cma->ptrace_scope = -1;
	fclose(scope);
}

static void explain_call(struct wf_tools_cma *cma)
{
	bool filtered = cma->seccomp == 2;

	snprintf(cma->why, sizeof(cma->why), "%s (%s)",
		 filtered ? "a seccomp filter forbids the call even to the "
			    "own process" :
			    "the kernel has no such call "
			    "(CONFIG_CROSS_MEMORY_ATTACH)",
		 strerror(cma->self));
	if (filtered)
		snprintf(cma->advice, sizeof(cma->advice),
			 "allow process_vm_readv and process_vm_writev in the "
			 "container's seccomp profile, or start it with "
			 "--cap-add=SYS_PTRACE");
}

static void explain_others(struct wf_tools_cma *cma, int err)
{
	if (cma->ptrace_scope > 0 && !cma->capable) {
		snprintf(cma->why, sizeof(cma->why),
			 "kernel.yama.ptrace_scope is %d: %s (%s)",
			 cma->ptrace_scope,
			 cma->ptrace_scope == 1 ? "only a process's own "
						  "descendants" :
			 cma->ptrace_scope == 2 ? "only with CAP_SYS_PTRACE" :
						  "nobody",
			 strerror(err));
		snprintf(cma->advice, sizeof(cma->advice), "%s",
			 cma->ptrace_scope == 3 ?
				 "it cannot be lowered before the next boot" :
			 cma->ptrace_scope == 2 ?
				 "sysctl kernel.yama.ptrace_scope=0, or give "
				 "the program CAP_SYS_PTRACE" :
				 "FI_WEFT_PTRACER=1 for all processes "
				 "(fi_weft(7) says what that opens), or sysctl "
				 "kernel.yama.ptrace_scope=0, or "
				 "CAP_SYS_PTRACE");
	} else if (!cma->dumpable) {
		snprintf(cma->why, sizeof(cma->why),
			 "this program is not dumpable: it changed its user or "
			 "has capabilities (%s)",
			 strerror(err));
	} else if (cma->seccomp == 2) {
		snprintf(cma->why, sizeof(cma->why),
			 "perhaps a seccomp filter (%s)", strerror(err));
	} else {
		snprintf(cma->why, sizeof(cma->why),
			 "a security module or a namespace (%s)",
			 strerror(err));
	}
}

static void explain(struct wf_tools_cma *cma)
{
	int err = cma->sibling ? cma->sibling :
		  cma->parent  ? cma->parent :
				 cma->child;

	if (cma->self)
		explain_call(cma);
	else if (err)
		explain_others(cma, err);
}

void wf_tools_cma_probe(struct wf_tools_cma *cma)
{
	memset(cma, 0, sizeof(*cma));
	read_status(cma);
	read_scope(cma);
	cma->dumpable = prctl(PR_GET_DUMPABLE) == 1;
	allow_tracers();
	word = WE;
	cma->self = try_both(getpid(), WE);
	cma->call_ns = wf_base_cma_call_ns();
	/* Until somebody has tried it. */
	cma->child = cma->parent = cma->sibling = ECHILD;
	probe_others(cma);
	explain(cma);
}
