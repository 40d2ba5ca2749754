/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of simulated processes, and their mutexes and conditions. A
 * pthread_mutex_t holds the number of its owner plus one in its first word; a
 * condition counts its signals there.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel.h"
#include "wrap.h"

static uint32_t *word_of(void *object)
{
	return object;
}

static uint32_t own_number(void)
{
	return sim.current ? sim.current->number + 1 : 1;
}

/* -- mutexes ---------------------------------------------------------------- */

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr)
{
	(void)attr;
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	if (*word_of(mutex))
		sim_fail("a mutex is destroyed while it is held");
	return 0;
}

/* There are no robust mutexes: the end of a simulated process changes no word. */
int __wrap_pthread_mutexattr_init(pthread_mutexattr_t *attr)
{
	(void)attr;
	return 0;
}

int __wrap_pthread_mutexattr_destroy(pthread_mutexattr_t *attr)
{
	(void)attr;
	return 0;
}

int __wrap_pthread_mutexattr_setpshared(pthread_mutexattr_t *attr, int shared)
{
	(void)attr;
	(void)shared;
	return 0;
}

int __wrap_pthread_mutexattr_setrobust(pthread_mutexattr_t *attr, int robust)
{
	(void)attr;
	(void)robust;
	return ENOTSUP;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	sim_point();
	if (*word_of(mutex) == own_number())
		sim_fail("a mutex is taken twice by one thread");
	while (*word_of(mutex))
		sim_sleep_until(SIM_NEVER, "pthread_mutex_lock");
	*word_of(mutex) = own_number();
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	sim_point();
	if (*word_of(mutex))
		return EBUSY;
	*word_of(mutex) = own_number();
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (*word_of(mutex) != own_number())
		sim_fail("a mutex is dropped by a thread that does not hold "
			 "it");
	if (sim.current)
		sim_race_drain(sim.current);
	*word_of(mutex) = 0;
	sim_changed();
	sim_point();
	return 0;
}

int __wrap_pthread_once(pthread_once_t *once, void (*fn)(void))
{
	if (*once)
		return 0;
	*once = 1;
	fn();
	return 0;
}

/* -- conditions ------------------------------------------------------------- */

int __wrap_pthread_cond_init(pthread_cond_t *cond,
			     const pthread_condattr_t *attr)
{
	(void)attr;
	memset(cond, 0, sizeof(*cond));
	return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
	(void)cond;
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	++*word_of(cond);
	sim_changed();
	sim_point();
	return 0;
}

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
		      uint64_t deadline)
{
	uint32_t before = *word_of(cond);
	int ret = 0;

	__wrap_pthread_mutex_unlock(mutex);
	while (*word_of(cond) == before && sim.now < deadline)
		sim_sleep_until(deadline, "pthread_cond_wait");
	if (*word_of(cond) == before)
		ret = ETIMEDOUT;
	__wrap_pthread_mutex_lock(mutex);
	return ret;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return wait_until(cond, mutex, SIM_NEVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	return wait_until(cond, mutex,
			  (uint64_t)until->tv_sec * SIM_S +
				  (uint64_t)until->tv_nsec);
}

/* -- threads ---------------------------------------------------------------- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*entry)(void *), void *arg)
{
	struct sim_task *task;

	(void)attr;
	sim_enter("pthread_create");
	if (sim_fault(SIM_FAULT_MEMORY))
		return EAGAIN;
	task = sim_task_start(sim_proc_current(), entry, arg);
	task->arg = arg;
	*thread = (pthread_t)task->births << 16 | (task->number + 1);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
	struct sim_task *task = &sim.task[(thread & 0xffff) - 1];

	(void)ret;
	/* Another thread may use the same entry by now. */
	while (task->births == thread >> 16 && task->state != SIM_OVER)
		sim_sleep_until(SIM_NEVER, "pthread_join");
	return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
	(void)thread;
	return 0;
}

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void),
			  void (*child)(void))
{
	(void)prepare;
	(void)parent;
	(void)child;
	return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how;
	(void)set;
	if (old)
		memset(old, 0, sizeof(*old));
	return 0;
}

/* -- time ------------------------------------------------------------------- */

/* Not a call of the kernel: stores stay in the buffer. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	sim.now += 20;
	sim_point();
	ts->tv_sec = (time_t)(sim.now / SIM_S);
	ts->tv_nsec = (long)(sim.now % SIM_S);
	return 0;
}

time_t __wrap_time(time_t *to)
{
	time_t now = (time_t)(sim.now / SIM_S);

	if (to)
		*to = now;
	return now;
}

int __wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	(void)left;
	sim_enter("nanosleep");
	sim_sleep_until(sim.now + (uint64_t)ts->tv_sec * SIM_S +
				(uint64_t)ts->tv_nsec,
			NULL);
	return 0;
}

int __wrap_sched_yield(void)
{
	/* A task that yields waits for another; in longer steps if there was no
	 * progress for a while. */
	bool is_long = sim.now > sim.progress + SIM_MS;

	sim_enter("sched_yield");
	sim_sleep_until(sim.now + 1 +
				sim_rng_below(&sim.sched,
					      is_long ? 100 * SIM_US : SIM_US),
			NULL);
	return 0;
}

/* -- calls without a function ----------------------------------------------- */

static long futex(uint32_t *word, int op, uint32_t value,
		  const struct timespec *timeout)
{
	uint64_t deadline =
		timeout ? sim.now + (uint64_t)timeout->tv_sec * SIM_S +
				  (uint64_t)timeout->tv_nsec :
			  SIM_NEVER;

	if ((op & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAKE) {
		sim_changed();
		return 0;
	}
	if (*word != value)
		return -EAGAIN;
	sim_sleep_until(deadline, "futex");
	return sim.now >= deadline ? -ETIMEDOUT : 0;
}

long __wrap_syscall(long number, ...)
{
	va_list args;
	long ret = -ENOSYS;

	sim_enter("syscall");
	va_start(args, number);
	if (number == SYS_futex) {
		uint32_t *word = va_arg(args, uint32_t *);
		int op = va_arg(args, int);
		uint32_t value = va_arg(args, uint32_t);

		ret = futex(word, op, value,
			    va_arg(args, const struct timespec *));
	} else if (number == SYS_membarrier && !sim.s.no_membarrier) {
		if (va_arg(args, int) == MEMBARRIER_CMD_GLOBAL_EXPEDITED)
			sim_race_drain_all();
		ret = 0;
	}
	va_end(args);
	return SIM_RET(ret);
}
