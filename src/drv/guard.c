/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS, installed and removed under base/fork's lock.
 */
#include "drv/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/fork.h"

/* x86: addresses from here on may be no addresses at all; then the kernel does
 * not say which one it was. */
#define HIGH ((uint64_t)1 << 47)

static const int signals[] = { SIGSEGV, SIGBUS };

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

struct copy {
	sigjmp_buf escape;
	uintptr_t to, from;
	size_t len;
};

/* Not allocated at the first use: that may be in a handler. */
static _Thread_local struct copy *volatile current
	__attribute__((tls_model("initial-exec")));
static unsigned int users;

static bool is_within(uintptr_t at, uintptr_t from, size_t len)
{
	return at - from < len;
}

static bool is_high(uintptr_t from, size_t len)
{
	return (uint64_t)from >= HIGH || (uint64_t)from + len > HIGH;
}

/* A handler of the program may have interrupted the copy, and may have faults of
 * its own; and signals may be sent. */
static bool is_about(const struct copy *copy, const siginfo_t *info)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	if (info->si_code == SI_KERNEL)
		return is_high(copy->to, copy->len) ||
		       is_high(copy->from, copy->len);
	return info->si_code > 0 && (is_within(at, copy->to, copy->len) ||
				     is_within(at, copy->from, copy->len));
}

static const struct sigaction none = { .sa_handler = SIG_DFL };

static void on_fault(int number, siginfo_t *info, void *context)
{
	const ucontext_t *before = context;
	struct copy *copy = current;

	if (copy && is_about(copy, info)) {
		/* A handler that passes on to us may have signals blocked. */
		pthread_sigmask(SIG_SETMASK, &before->uc_sigmask, NULL);
		siglongjmp(copy->escape, 1);
	}
	/* The same again, which ends the process. The instruction would not
	 * always be repeated: the signal may have been sent, or be about another
	 * one. */
	sigaction(number, &none, NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number,
		info);
}

/* -- installing ------------------------------------------------------------ */

static const struct sigaction ours = {
	.sa_sigaction = on_fault,
	/* The handler is left by a jump. */
	.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
};

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
	if ((a->sa_flags ^ b->sa_flags) & SA_SIGINFO)
		return false;
	return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction :
					  a->sa_handler == b->sa_handler;
}

/* Another thread of the program may install a handler at any time: a handler
 * that was replaced by mistake is put back. */
static void replace(int number, const struct sigaction *old,
		    const struct sigaction *new)
{
	struct sigaction expected = *old, put = *new, now;

	if (sigaction(number, NULL, &now) || !is_same(&now, old))
		return;
	while (!sigaction(number, &put, &now) && !is_same(&now, &expected)) {
		expected = put;
		put = now;
	}
}

void wf_drv_guard_on(void)
{
	wf_base_fork_hold();
	users++;
	for (size_t i = 0; i < SIGNALS; i++)
		replace(signals[i], &none, &ours);
	wf_base_fork_release();
}

void wf_drv_guard_off(void)
{
	wf_base_fork_hold();
	users--;
	for (size_t i = 0; i < SIGNALS && !users; i++)
		replace(signals[i], &ours, &none);
	wf_base_fork_release();
}

/* -- copies ---------------------------------------------------------------- */

bool wf_drv_guard_copy(void *to, const void *from, size_t len)
{
	struct copy copy = { .to = (uintptr_t)to,
			     .from = (uintptr_t)from,
			     .len = len };
	/* Of a call that a handler of the program has interrupted. */
	struct copy *outer = current;

	if (!len)
		return true;
	if (!to || !from) /* memcpy() must not see them */
		return false;
	/* Without the mask of signals, which would be a system call: the handler
	 * puts it right. */
	if (sigsetjmp(copy.escape, 0)) {
		current = outer;
		return false;
	}
	current = &copy;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(to, from, len);
	atomic_signal_fence(memory_order_seq_cst);
	current = outer;
	return true;
}
