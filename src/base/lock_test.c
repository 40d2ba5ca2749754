/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the lock: it excludes, its waiters sleep and are woken, and a
 * waiter of a higher priority does not keep the holder from running.
 */
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct shared {
	struct wf_lock lock;
	long sum;
	long turns;
	unsigned int hold_us;
};

static void *add_many(void *arg)
{
	struct shared *shared = arg;

	for (long i = 0; i < shared->turns; i++) {
		wf_base_lock_take(&shared->lock);
		shared->sum++;
		if (shared->hold_us)
			usleep(shared->hold_us);
		wf_base_lock_drop(&shared->lock);
	}
	return NULL;
}

static void contend(struct shared *shared)
{
	pthread_t threads[4];

	wf_base_lock_init(&shared->lock, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, add_many, shared), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared->sum, 4 * shared->turns);
	assert_int_equal(atomic_load(&shared->lock.waiters), 0);
	assert_true(wf_base_lock_try(&shared->lock));
	assert_false(wf_base_lock_try(&shared->lock));
}

static void test_real_lock_excludes(void **state)
{
	struct shared shared = { .turns = 20000 };

	(void)state;
	contend(&shared);
}

/* Held for so long that the others sleep. */
static void test_waiters_are_woken(void **state)
{
	struct shared shared = { .turns = 50, .hold_us = 1000 };

	(void)state;
	contend(&shared);
}

static void test_absent_lock_never_blocks(void **state)
{
	struct wf_lock lock;

	(void)state;
	wf_base_lock_init(&lock, false);
	wf_base_lock_take(&lock);
	wf_base_lock_take(&lock);
	wf_base_lock_drop(&lock);
}

/* -- priorities ------------------------------------------------------------ */

enum { DONE, FORBIDDEN };

static struct wf_lock fifo_lock;

static bool become_fifo(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return !pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

static void *take_it(void *arg)
{
	if (!become_fifo(2))
		_exit(FORBIDDEN);
	/* The holder has a lower priority and this very CPU. */
	wf_base_lock_take(&fifo_lock);
	wf_base_lock_drop(&fifo_lock);
	return arg;
}

static void hold_and_wait(void)
{
	pthread_t waiter;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || !become_fifo(1))
		_exit(FORBIDDEN);
	wf_base_lock_init(&fifo_lock, true);
	wf_base_lock_take(&fifo_lock);
	if (pthread_create(&waiter, NULL, take_it, NULL))
		_exit(FORBIDDEN);
	sched_yield();
	wf_base_lock_drop(&fifo_lock);
	pthread_join(waiter, NULL);
	_exit(DONE);
}

/* Bug: a waiter under SCHED_FIFO yielded the CPU only to its equals, so that a
 * holder of a lower priority on the same CPU never ran again. */
static void test_fifo_waiter_sleeps(void **state)
{
	int status = 0;
	pid_t pid, done = 0;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_and_wait();
	}
	for (int i = 0; i < 6000 && !done; i++) {
		usleep(10000);
		done = waitpid(pid, &status, WNOHANG);
	}
	if (!done) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		fail_msg("the holder does not run");
	}
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == FORBIDDEN)
		skip();
	assert_int_equal(WEXITSTATUS(status), DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_lock_excludes),
		cmocka_unit_test(test_waiters_are_woken),
		cmocka_unit_test(test_absent_lock_never_blocks),
		cmocka_unit_test(test_fifo_waiter_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
