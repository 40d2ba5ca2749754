/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single-steps through one call. The child stops itself, calls, and exits; the
 * parent starts counting at the function's first instruction.
 */
#include "wqe_step.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

#define STEPS_MOST 100000

/* call rel32, or call r/m64 (0xff /2) with an optional prefix. */
static bool is_call(unsigned long code)
{
	unsigned char op = code & 0xff;

	if ((op & 0xf0) == 0x40) {
		code >>= 8;
		op = code & 0xff;
	}
	return op == 0xe8 || (op == 0xff && (code >> 8 & 0x38) == 0x10);
}

static int step(pid_t pid, struct user_regs_struct *regs)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) ||
	    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, pid, NULL, regs))
		return -ENOTSUP;
	return 0;
}

static int count(pid_t pid, wqe_post_fn post, struct wqe_steps *steps)
{
	struct user_regs_struct regs = { .rip = 0 };
	unsigned long long lowest, top;
	int left = STEPS_MOST;

	while (regs.rip != (unsigned long long)(uintptr_t)post) {
		if (!left-- || step(pid, &regs))
			return -ENOTSUP;
	}
	top = lowest = regs.rsp;
	*steps = (struct wqe_steps){ .instructions = 0 };
	/* The return moves the stack pointer above its value at the entry. */
	while (regs.rsp <= top) {
		errno = 0;
		steps->calls += is_call((unsigned long)ptrace(
			PTRACE_PEEKTEXT, pid, regs.rip, NULL));
		if (errno || !left-- || step(pid, &regs))
			return -ENOTSUP;
		steps->instructions++;
		if (regs.rsp < lowest)
			lowest = regs.rsp;
	}
	steps->stack = (long)(top - lowest);
	return 0;
}

int wqe_step_count(wqe_post_fn post, struct wqe_queue *q, bool ring,
		   struct wqe_steps *steps)
{
	int status, ret = -ENOTSUP;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		/* Once before, so that lazy binding and first page faults are
		 * not counted. */
		post(q, ring);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		post(q, ring);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		ret = count(pid, post, steps);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return ret;
}

#else

int wqe_step_count(wqe_post_fn post, struct wqe_queue *q, bool ring,
		   struct wqe_steps *steps)
{
	(void)post;
	(void)q;
	(void)ring;
	(void)steps;
	return -ENOTSUP;
}

#endif
