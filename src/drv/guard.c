/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS, installed and removed under base/fork's lock.
 */
#include "drv/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "base/fork.h"

static const int signals[] = { SIGSEGV, SIGBUS };

#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* Not allocated at the first use: that may be in a handler. */
static _Thread_local sigjmp_buf *volatile escape
	__attribute__((tls_model("initial-exec")));
static unsigned int users;

static void on_fault(int number, siginfo_t *info, void *context)
{
	static const struct sigaction none = { .sa_handler = SIG_DFL };

	(void)context;
	/* A signal that somebody has sent is not about this copy. */
	if (escape && info->si_code > 0)
		siglongjmp(*escape, 1);
	sigaction(number, &none, NULL);
	/* The instruction is repeated, and ends the process where it is. */
	if (info->si_code <= 0)
		raise(number);
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO &&
	       action->sa_sigaction == on_fault;
}

static bool is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) &&
	       action->sa_handler == SIG_DFL;
}

void wf_drv_guard_on(void)
{
	const struct sigaction ours = {
		.sa_sigaction = on_fault,
		/* The handler is left by a jump. */
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};
	struct sigaction now;

	wf_base_fork_hold();
	users++;
	for (size_t i = 0; i < SIGNALS; i++) {
		if (!sigaction(signals[i], NULL, &now) && is_default(&now))
			sigaction(signals[i], &ours, NULL);
	}
	wf_base_fork_release();
}

void wf_drv_guard_off(void)
{
	static const struct sigaction none = { .sa_handler = SIG_DFL };
	struct sigaction now;

	wf_base_fork_hold();
	users--;
	for (size_t i = 0; i < SIGNALS && !users; i++) {
		if (!sigaction(signals[i], NULL, &now) && is_ours(&now))
			sigaction(signals[i], &none, NULL);
	}
	wf_base_fork_release();
}

bool wf_drv_guard_copy(void *to, const void *from, size_t len)
{
	sigjmp_buf here;

	/* Without the mask of signals, which would be a system call: SA_NODEFER
	 * leaves it as it is. */
	if (sigsetjmp(here, 0)) {
		escape = NULL;
		return false;
	}
	escape = &here;
	memcpy(to, from, len);
	escape = NULL;
	return true;
}
