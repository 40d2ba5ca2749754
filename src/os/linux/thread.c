/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of Linux, by the C library.
 */
#include "os/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

static struct timespec span(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

void wf_os_mutex_init(struct wf_os_mutex *mutex)
{
	pthread_mutex_init(&mutex->native, NULL);
}

void wf_os_mutex_destroy(struct wf_os_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->native);
}

void wf_os_mutex_lock(struct wf_os_mutex *mutex)
{
	pthread_mutex_lock(&mutex->native);
}

void wf_os_mutex_unlock(struct wf_os_mutex *mutex)
{
	pthread_mutex_unlock(&mutex->native);
}

void wf_os_cond_init(struct wf_os_cond *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cond->native, &attr);
	pthread_condattr_destroy(&attr);
}

void wf_os_cond_destroy(struct wf_os_cond *cond)
{
	pthread_cond_destroy(&cond->native);
}

void wf_os_cond_wait(struct wf_os_cond *cond, struct wf_os_mutex *mutex)
{
	pthread_cond_wait(&cond->native, &mutex->native);
}

bool wf_os_cond_wait_until(struct wf_os_cond *cond, struct wf_os_mutex *mutex,
			   uint64_t deadline_ns)
{
	struct timespec deadline = span(deadline_ns);

	return pthread_cond_timedwait(&cond->native, &mutex->native,
				      &deadline) != ETIMEDOUT;
}

void wf_os_cond_broadcast(struct wf_os_cond *cond)
{
	pthread_cond_broadcast(&cond->native);
}

void wf_os_once(struct wf_os_once *once, void (*run)(void))
{
	pthread_once(&once->native, run);
}

int wf_os_thread_start(struct wf_os_thread *thread, void *(*run)(void *arg),
		       void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread->native, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

void wf_os_thread_join(struct wf_os_thread thread)
{
	pthread_join(thread.native, NULL);
}

void wf_os_thread_detach(struct wf_os_thread thread)
{
	pthread_detach(thread.native);
}

void wf_os_futex_wait(const void *word, uint32_t value, uint64_t ns)
{
	struct timespec timeout = span(ns);

	syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value,
		&timeout, NULL, 0);
}

void wf_os_futex_wake(const void *word, unsigned int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL,
		NULL, 0);
}

/* A page with a mark has these contents. The C library says nowhere which word
 * of a mutex the kernel changes; it is the first that holds the number of the
 * thread. */
struct life_page {
	uint32_t word_at; /* bytes from the start of the page; 0: no mark */
	uint32_t alive;
	uint8_t pad[56];
	pthread_mutex_t mutex;
};

static int hold_for_ever(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(mutex, &attr);
	/* Nobody else has it. To try and not to wait keeps it out of the order of
	 * locks that ThreadSanitizer watches: it is held while others are taken
	 * and released. */
	if (!err)
		err = pthread_mutex_trylock(mutex);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

/* Another thread that calls execve() gets the number of the first one before the
 * kernel goes through its list, and does not find itself in the mark. */
static bool is_first_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

/* A sandbox may have refused the list, which the C library does not report. */
static bool has_robust_list(void)
{
	void *head = NULL;
	size_t len;

	return !syscall(SYS_get_robust_list, 0, &head, &len) && head;
}

int wf_os_life_begin(void *page, size_t bytes)
{
	struct life_page *life = page;
	const uint32_t *words = (const uint32_t *)(const void *)&life->mutex;
	uint32_t own = (uint32_t)syscall(SYS_gettid);
	int err;

	if (bytes < sizeof(*life))
		return -EINVAL;
	if (!is_first_thread() || !has_robust_list())
		return -ENOTSUP;
	err = hold_for_ever(&life->mutex);
	if (err)
		return err;
	for (size_t i = 0; i < sizeof(life->mutex) / sizeof(*words); i++) {
		if (words[i] != own)
			continue;
		life->alive = own;
		life->word_at = (uint32_t)((const uint8_t *)&words[i] -
					   (const uint8_t *)page);
		return 0;
	}
	/* The page stays, too: the thread has it in its list. */
	return 0;
}

bool wf_os_life_end(void *page)
{
	struct life_page *life = page;

	return life->word_at && life->alive == (uint32_t)syscall(SYS_gettid) &&
	       !pthread_mutex_unlock(&life->mutex);
}

int wf_os_life_find(const void *page, size_t bytes, struct wf_os_life *life)
{
	const struct life_page *theirs = page;
	uint32_t at = wf_shared_load_plain(&theirs->word_at, relaxed);
	uint32_t alive = wf_shared_load_plain(&theirs->alive, relaxed);

	if (at < offsetof(struct life_page, mutex) || at % sizeof(at) ||
	    at > bytes - sizeof(at) || !alive)
		return -EPROTO;
	life->word =
		(const _Atomic uint32_t *)(const void *)((const uint8_t *)page +
							 at);
	life->alive = alive;
	return wf_os_life_is_on(life) ? 0 : -EPROTO;
}

int wf_os_atfork(void (*before)(void), void (*in_parent)(void),
		 void (*in_child)(void))
{
	return -pthread_atfork(before, in_parent, in_child);
}

static int membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0) ? -errno : 0;
}

int wf_os_membarrier_join(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

int wf_os_membarrier_all(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void wf_os_yield(void)
{
	sched_yield();
}

void wf_os_sleep(uint64_t ns)
{
	struct timespec nap = span(ns);

	nanosleep(&nap, NULL);
}
