/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue, one lock, some threads. The lock is held across fork(), so that a
 * child finds it consistent; in the child the crew starts from nothing.
 */
#include "alg/crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS_MOST 4096 /* whatever anybody asks for */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t gang_done = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wf_list queue = { &queue, &queue };
static pthread_t *threads;
static unsigned int threads_room;
static unsigned int started, idle, queued, limit, needed;
static bool stopping;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	wf_base_list_init(&queue);
	started = 0;
	idle = 0;
	queued = 0;
	stopping = false;
	pthread_cond_init(&more, NULL);
	pthread_cond_init(&gang_done, NULL);
	pthread_mutex_init(&lock, NULL);
}

static void setup(void)
{
	cpu_set_t cpus;

	if (!limit && !sched_getaffinity(0, sizeof(cpus), &cpus))
		limit = (unsigned int)CPU_COUNT(&cpus);
	if (!limit)
		limit = 1;
	pthread_atfork(before_fork, in_parent, in_child);
}

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct wf_crew_task *task;

		idle++;
		while (wf_base_list_empty(&queue) && !stopping)
			pthread_cond_wait(&more, &lock);
		idle--;
		if (stopping)
			break;
		task = wf_container_of(queue.next, struct wf_crew_task, link);
		wf_base_list_del(&task->link);
		queued--;
		pthread_mutex_unlock(&lock);
		task->run(task);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Signals are for the application's threads; but a signal that a thread causes
 * itself (a mapped file that became shorter) goes to the handlers as from any
 * other. */
static int start_locked(void)
{
	sigset_t all, old;
	int ret;

	if (started == threads_room) {
		unsigned int room = threads_room ? 2 * threads_room : 16;
		pthread_t *more_room =
			realloc(threads, room * sizeof(*threads));

		if (!more_room)
			return ENOMEM;
		threads = more_room;
		threads_room = room;
	}
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&threads[started], NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		started++;
	return ret;
}

int wf_alg_crew_add(struct wf_crew_task *task)
{
	unsigned int most;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	most = limit > needed ? limit : needed;
	if (idle <= queued && started < most && !stopping && start_locked() &&
	    !started) {
		pthread_mutex_unlock(&lock);
		return -EAGAIN;
	}
	wf_base_list_add_tail(&queue, &task->link);
	queued++;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	return 0;
}

bool wf_alg_crew_remove(struct wf_crew_task *task)
{
	struct wf_list *pos, *tmp;
	bool found = false;

	pthread_mutex_lock(&lock);
	wf_list_for_each (pos, tmp, &queue) {
		if (pos != &task->link)
			continue;
		wf_base_list_del(pos);
		queued--;
		found = true;
		break;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Lives on a stack: its count is under the lock of all, which outlives it. */
struct gang {
	void (*func)(void *arg);
	void *arg;
	unsigned int running;
};

struct member {
	struct wf_crew_task task;
	struct gang *gang;
};

static void run_member(struct wf_crew_task *task)
{
	struct gang *gang = wf_container_of(task, struct member, task)->gang;

	gang->func(gang->arg);
	pthread_mutex_lock(&lock);
	gang->running--;
	pthread_cond_broadcast(&gang_done);
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_together(unsigned int count, void (*func)(void *arg),
			  void *arg)
{
	struct gang gang = { .func = func, .arg = arg };
	struct member *members;
	unsigned int added = 0;

	count = count < THREADS_MOST ? count : THREADS_MOST;
	members = count > 1 ? calloc(count - 1, sizeof(*members)) : NULL;
	if (!members)
		count = 1; /* it can do all of it alone */
	wf_alg_crew_need(count ? count - 1 : 0);
	while (added + 1 < count) {
		members[added].task.run = run_member;
		members[added].gang = &gang;
		pthread_mutex_lock(&lock);
		gang.running++;
		pthread_mutex_unlock(&lock);
		if (wf_alg_crew_add(&members[added].task)) {
			pthread_mutex_lock(&lock);
			gang.running--;
			pthread_mutex_unlock(&lock);
			break;
		}
		added++;
	}
	func(arg);
	for (unsigned int i = 0; i < added; i++) {
		if (!wf_alg_crew_remove(&members[i].task))
			continue;
		pthread_mutex_lock(&lock);
		gang.running--;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	while (gang.running)
		pthread_cond_wait(&gang_done, &lock);
	pthread_mutex_unlock(&lock);
	free(members);
}

void wf_alg_crew_limit(unsigned int count)
{
	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	limit = count < THREADS_MOST ? count : THREADS_MOST;
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_need(unsigned int at_least)
{
	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (at_least > needed)
		needed = at_least < THREADS_MOST ? at_least : THREADS_MOST;
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_stop(void)
{
	unsigned int count;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	stopping = true;
	count = started;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_lock(&lock);
	free(threads);
	threads = NULL;
	threads_room = 0;
	started = 0;
	needed = 0;
	stopping = false;
	pthread_mutex_unlock(&lock);
}
