/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of memory that is not there, and all other faults and handlers of a
 * program, which stay as they are.
 */
#include "drv/guard.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096

static uint8_t good[PAGE], other[PAGE];
static uint8_t *bad, *nowhere;

static void *map_nothing(void)
{
	return mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Another thread installs this just before the next call that sets a
 * handler. */
static const struct sigaction *meanwhile;

int sigaction(int number, const struct sigaction *restrict act,
	      struct sigaction *restrict old)
{
	static int (*real)(int, const struct sigaction *, struct sigaction *);
	const struct sigaction *first = meanwhile;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sigaction");
	if (first && act && number == SIGSEGV) {
		meanwhile = NULL;
		real(number, first, NULL);
	}
	return real(number, act, old);
}

static int setup(void **state)
{
	(void)state;
	bad = map_nothing();
	nowhere = map_nothing();
	return 0;
}

/* cmocka installs its own for each test, and what was there before after it. */
static void no_handlers(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

static void *handler_of(int number)
{
	struct sigaction now;

	sigaction(number, NULL, &now);
	return (void *)now.sa_sigaction;
}

/* The status of a child that runs @body. */
static int in_child(void (*body)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_DUMPABLE, 0);
		no_handlers();
		body();
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void check_killed(void (*body)(void), int number)
{
	int status = in_child(body);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), number);
}

/* -- copies ---------------------------------------------------------------- */

static void test_copy(void **state)
{
	int fd = memfd_create("guard", MFD_CLOEXEC);
	uint8_t *file;

	(void)state;
	no_handlers();
	assert_int_equal(ftruncate(fd, PAGE), 0);
	file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	wf_drv_guard_on();
	for (int i = 0; i < 3; i++) {
		memset(good, i + 1, PAGE);
		assert_true(wf_drv_guard_copy(other, good, PAGE));
		assert_memory_equal(other, good, PAGE);
		assert_false(wf_drv_guard_copy(good, bad, PAGE));
		assert_false(wf_drv_guard_copy(bad, good, 1));
		assert_false(wf_drv_guard_copy(good, NULL, 10));
	}
	/* On x86 it may be no address, and then the kernel does not name it. */
	assert_false(wf_drv_guard_copy(good, (void *)((uintptr_t)1 << 50), 8));
	/* A file that was mapped and is now shorter: SIGBUS. */
	assert_true(wf_drv_guard_copy(file, good, PAGE));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(wf_drv_guard_copy(good, file, 64));
	assert_false(wf_drv_guard_copy(file + 100, good, 64));
	wf_drv_guard_off();
	assert_ptr_equal(handler_of(SIGSEGV), SIG_DFL);
	assert_ptr_equal(handler_of(SIGBUS), SIG_DFL);
	munmap(file, PAGE);
	close(fd);
}

/* -- faults that are not of a copy ----------------------------------------- */

static void fault(void)
{
	wf_drv_guard_on();
	if (handler_of(SIGSEGV) != SIG_DFL)
		*(volatile uint8_t *)nowhere = 1;
}

static void send(void)
{
	wf_drv_guard_on();
	raise(SIGSEGV);
}

/* About memory that has gone bad and that nobody has read yet: no instruction is
 * repeated. */
static void send_about(void)
{
	siginfo_t info = { .si_signo = SIGBUS, .si_code = BUS_MCEERR_AO };

	wf_drv_guard_on();
	syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGBUS, &info);
}

static void test_others(void **state)
{
	(void)state;
	check_killed(fault, SIGSEGV);
	check_killed(send, SIGSEGV);
	check_killed(send_about, SIGBUS);
}

/* -- handlers of the program that come before ours -------------------------- */

static struct sigaction ours;
static volatile bool own_fault;
static volatile int calls;

/* Passes on what is not its own. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (!calls++ && own_fault)
		*(volatile uint8_t *)nowhere = 1;
	ours.sa_sigaction(number, info, context);
}

static void install_before(int flags)
{
	struct sigaction theirs = { .sa_sigaction = pass_on,
				    .sa_flags = SA_SIGINFO | flags };

	wf_drv_guard_on();
	sigaction(SIGSEGV, &theirs, &ours);
}

/* A handler that runs during a copy has a fault of its own. */
static void fault_within(void)
{
	own_fault = true;
	install_before(SA_NODEFER);
	wf_drv_guard_copy(good, bad, PAGE);
}

/* The kernel blocks the signal for that handler, which is left by a jump. */
static void copy_again(void)
{
	sigset_t blocked;

	install_before(0);
	for (int i = 0; i < 3; i++) {
		if (wf_drv_guard_copy(good, bad, PAGE))
			_exit(3);
		pthread_sigmask(SIG_SETMASK, NULL, &blocked);
		if (sigismember(&blocked, SIGSEGV))
			_exit(4);
	}
	_exit(calls == 3 ? 0 : 5);
}

static void test_passed_on(void **state)
{
	int status;

	(void)state;
	check_killed(fault_within, SIGSEGV);
	status = in_child(copy_again);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void reporter(int number)
{
	_exit(number);
}

/* A handler of the program stays, also one that another thread installs at the
 * same time. */
static void test_handlers_stay(void **state)
{
	const struct sigaction theirs = { .sa_handler = reporter };

	(void)state;
	no_handlers();
	signal(SIGSEGV, reporter);
	wf_drv_guard_on();
	assert_ptr_equal(handler_of(SIGSEGV), reporter);
	wf_drv_guard_off();
	assert_ptr_equal(handler_of(SIGSEGV), reporter);

	signal(SIGSEGV, SIG_DFL);
	meanwhile = &theirs;
	wf_drv_guard_on();
	assert_null(meanwhile);
	assert_ptr_equal(handler_of(SIGSEGV), reporter);
	wf_drv_guard_off();

	signal(SIGSEGV, SIG_DFL);
	wf_drv_guard_on();
	meanwhile = &theirs;
	wf_drv_guard_off();
	assert_null(meanwhile);
	assert_ptr_equal(handler_of(SIGSEGV), reporter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_handlers_stay),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
