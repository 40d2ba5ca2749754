/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of this process and what they wait for. The rules of os/file.h hold.
 */
#ifndef WF_OS_THREAD_H
#define WF_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/shared.h"

struct wf_os_mutex {
	pthread_mutex_t native;
};

struct wf_os_cond {
	pthread_cond_t native;
};

struct wf_os_once {
	pthread_once_t native;
};

struct wf_os_thread {
	pthread_t native;
};

#define WF_OS_MUTEX_INIT                                                       \
	{                                                                      \
		PTHREAD_MUTEX_INITIALIZER                                      \
	}
#define WF_OS_COND_INIT                                                        \
	{                                                                      \
		PTHREAD_COND_INITIALIZER                                       \
	}
#define WF_OS_ONCE_INIT                                                        \
	{                                                                      \
		PTHREAD_ONCE_INIT                                              \
	}

/* A thread must not take a mutex that it holds. */
void wf_os_mutex_init(struct wf_os_mutex *mutex);
void wf_os_mutex_destroy(struct wf_os_mutex *mutex);
void wf_os_mutex_lock(struct wf_os_mutex *mutex);
void wf_os_mutex_unlock(struct wf_os_mutex *mutex);

/* The caller of the waiting calls holds @mutex, which is given up while it
 * waits. They may return without a broadcast. wait_until() waits until
 * wf_os_clock_ns() would say @deadline_ns: false when that has come. */
void wf_os_cond_init(struct wf_os_cond *cond);
void wf_os_cond_destroy(struct wf_os_cond *cond);
void wf_os_cond_wait(struct wf_os_cond *cond, struct wf_os_mutex *mutex);
bool wf_os_cond_wait_until(struct wf_os_cond *cond, struct wf_os_mutex *mutex,
			   uint64_t deadline_ns);
void wf_os_cond_broadcast(struct wf_os_cond *cond);

/* Runs @run at the first call for @once. Every call returns after it has
 * ended. */
void wf_os_once(struct wf_os_once *once, void (*run)(void));

/* Starts a thread that no signal is delivered to: signals are for the
 * application's threads. It is joined or detached, once. */
int wf_os_thread_start(struct wf_os_thread *thread, void *(*run)(void *arg),
		       void *arg);
void wf_os_thread_join(struct wf_os_thread thread);
void wf_os_thread_detach(struct wf_os_thread thread);

/* Waits while *@word is @value, for at most @ns: a signal may end it earlier,
 * and the reason is not reported. Only threads of this process wake it. */
void wf_os_futex_wait(const void *word, uint32_t value, uint64_t ns);
void wf_os_futex_wake(const void *word, unsigned int count);

/* A mark in shared memory that says that a thread lives. The kernel changes it when
 * the thread ends, and when its process runs another program: in either case before
 * the pid is free, and before the process has other memory. It is a robust mutex
 * that the thread holds for ever. */
struct wf_os_life {
	const _Atomic uint32_t *word;
	uint32_t alive; /* what it says until then */
};

/* The calling thread sets its mark. @page is zeroed memory of at least 4096 bytes,
 * shared with others, and must stay mapped as long as the thread lives. 0 or
 * -errno, -ENOTSUP for a thread that is not the first of its process: one that runs
 * another program would keep its mark. */
int wf_os_life_begin(void *page, size_t bytes);
/* Takes the mark away. False if it is another thread's: then @page must stay. */
bool wf_os_life_end(void *page);
/* Finds the mark in a page of another process, which may hold anything. 0, or
 * -EPROTO where there is none. */
int wf_os_life_find(const void *page, size_t bytes, struct wf_os_life *life);

/* Acquire: bytes that were copied before this call were copied before the mark
 * changed. */
static inline bool wf_os_life_is_on(const struct wf_os_life *life)
{
	return wf_shared_load(life->word, acquire) == life->alive;
}

/* As pthread_atfork(3). */
int wf_os_atfork(void (*before)(void), void (*in_parent)(void),
		 void (*in_child)(void));

/* membarrier(2): register this process for barriers of others (join), or have
 * each thread of registered processes run a full barrier before this call
 * returns (all). -ENOSYS or -EINVAL: the kernel has no such barriers. */
int wf_os_membarrier_join(void);
int wf_os_membarrier_all(void);

/* Lets other threads and processes run that wait for this processor. */
void wf_os_yield(void);
/* Sleeps for @ns, or until a signal comes. */
void wf_os_sleep(uint64_t ns);

#endif
