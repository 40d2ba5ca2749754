/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue, one lock, some threads. A task is added without the lock, to a stack
 * that the threads empty into the queue. A thread takes several small tasks at
 * once, and looks around for a moment before it sleeps; it is awake and without
 * work then, which is counted (searching). Whoever adds a task wakes another
 * thread only if there is more to do than those that search will take, and a
 * thread that has found work does the same for what it leaves. The order that
 * loses no task: an adder writes the stack, then reads the counts; a thread
 * changes the counts, then reads the stack, before it sleeps.
 *
 * The lock is held across fork(), so that a child finds it consistent; in the
 * child the crew starts from nothing.
 */
#include "alg/crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"

#define THREADS_MOST 4096 /* whatever anybody asks for */
/* Small tasks that one thread is woken for, and takes at once at most. */
#define SHARE 4
/* To wake a thread takes several microseconds of the one that does, and some tens,
 * in a virtual machine, until it runs. At most half of the processors search. */
#define SEARCH_NS (50 * WF_NS_PER_US)
#define SEARCHERS_MOST 8u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t gang_done = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wf_list queue = { &queue, &queue };
static unsigned int queued; /* tasks in it */
static pthread_t *threads;
static unsigned int threads_room;
static unsigned int limit, needed;
static unsigned int wakes; /* threads that were woken and do not run yet */
static bool stopping;
static unsigned int searchers; /* threads that may search at a time */

/* An adder reads and writes these without the lock. The others change it under
 * the lock, but for ->load and ->stack. */
static struct {
	_Alignas(64) struct wf_stack stack;
	atomic_uint load; /* of all tasks that nobody has taken */
	_Alignas(64) atomic_uint searching;
	atomic_uint idle; /* asleep, and not woken */
	atomic_uint started;
	atomic_uint most;
} shared;

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
	queued = 0;
	wakes = 0;
	atomic_store(&shared.stack.top, NULL);
	atomic_store(&shared.load, 0);
	atomic_store(&shared.searching, 0);
	atomic_store(&shared.idle, 0);
	atomic_store(&shared.started, 0);
	stopping = false;
	pthread_cond_init(&more, NULL);
	pthread_cond_init(&gang_done, NULL);
	pthread_mutex_init(&lock, NULL);
}

static void set_most_locked(void)
{
	atomic_store(&shared.most, limit > needed ? limit : needed);
}

static void setup(void)
{
	unsigned int count = 0;
	cpu_set_t cpus;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		count = (unsigned int)CPU_COUNT(&cpus);
	if (!limit)
		limit = count ? count : 1;
	searchers = count / 2 < SEARCHERS_MOST ? count / 2 : SEARCHERS_MOST;
	set_most_locked();
	pthread_atfork(before_fork, in_parent, in_child);
}

/* -- tasks ----------------------------------------------------------------- */

static unsigned int load_of(const struct wf_crew_task *task)
{
	return task->small ? 1 : SHARE;
}

static void collect_locked(void)
{
	queued += wf_alg_stack_empty_into(&shared.stack, &queue);
}

/* The links of a task that is not queued are zero, or lead to the task itself. */
static bool is_queued_locked(const struct wf_crew_task *task)
{
	const struct wf_list *next = task->item.link.next;

	return next && next != &task->item.link;
}

static void take_locked(struct wf_crew_task *task)
{
	wf_base_list_del(&task->item.link);
	queued--;
	atomic_fetch_sub(&shared.load, load_of(task));
}

/* One that is not small, or as many small ones as are this thread's part of what
 * there is. Returns how many. */
static unsigned int take_some_locked(struct wf_crew_task *tasks[SHARE])
{
	unsigned int most = queued / (2 * atomic_load(&shared.started));
	unsigned int n = 0;

	most = most < 1 ? 1 : most > SHARE ? SHARE : most;
	while (n < most && !wf_base_list_empty(&queue)) {
		struct wf_crew_task *task = wf_container_of(
			queue.next, struct wf_crew_task, item.link);

		if (n && !task->small)
			break;
		take_locked(task);
		tasks[n++] = task;
		if (!task->small)
			break;
	}
	return n;
}

/* -- threads --------------------------------------------------------------- */

static bool is_help_wanted(void)
{
	return atomic_load(&shared.load) >
		       SHARE * atomic_load(&shared.searching) &&
	       (atomic_load(&shared.idle) ||
		atomic_load(&shared.started) < atomic_load(&shared.most));
}

static int start_locked(void);

/* Wakes or starts as many threads as there is work for. */
static void call_help_locked(void)
{
	while (!stopping && is_help_wanted()) {
		if (atomic_load(&shared.idle)) {
			atomic_fetch_sub(&shared.idle, 1);
			atomic_fetch_add(&shared.searching, 1);
			wakes++;
			pthread_cond_signal(&more);
		} else if (start_locked()) {
			return;
		}
	}
}

/* Without the lock, while there is nothing. */
static void search(void)
{
	uint64_t until = wf_base_clock_ns() + SEARCH_NS;

	while (wf_alg_stack_empty(&shared.stack) && wf_base_clock_ns() < until)
		wf_base_cpu_relax();
}

static void sleep_locked(void)
{
	atomic_fetch_add(&shared.idle, 1);
	/* After that, and in this order: see the top of the file. */
	if (wf_alg_stack_empty(&shared.stack) && !stopping) {
		while (!wakes && !stopping)
			pthread_cond_wait(&more, &lock);
	}
	if (wakes)
		wakes--; /* as one that searches */
	else {
		atomic_fetch_sub(&shared.idle, 1);
		atomic_fetch_add(&shared.searching, 1);
	}
}

/* A thread begins as one that searches. */
static void *work(void *arg)
{
	struct wf_crew_task *tasks[SHARE];
	bool searching = true, searched = false;
	unsigned int n;

	(void)arg;
	pthread_mutex_lock(&lock);
	while (!stopping) {
		collect_locked();
		n = take_some_locked(tasks);
		if (n) {
			if (searching)
				atomic_fetch_sub(&shared.searching, 1);
			searching = false;
			searched = false;
			call_help_locked();
			pthread_mutex_unlock(&lock);
			for (unsigned int i = 0; i < n; i++)
				tasks[i]->run(tasks[i]);
			pthread_mutex_lock(&lock);
		} else if (!searched &&
			   atomic_load(&shared.searching) - searching <
				   searchers) {
			if (!searching)
				atomic_fetch_add(&shared.searching, 1);
			searching = true;
			searched = true;
			pthread_mutex_unlock(&lock);
			search();
			pthread_mutex_lock(&lock);
		} else {
			if (searching)
				atomic_fetch_sub(&shared.searching, 1);
			searching = true;
			searched = false;
			sleep_locked();
		}
	}
	if (searching)
		atomic_fetch_sub(&shared.searching, 1);
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

	if (atomic_load(&shared.started) == threads_room) {
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
	ret = pthread_create(&threads[atomic_load(&shared.started)], NULL, work,
			     NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret) {
		atomic_fetch_add(&shared.searching, 1);
		atomic_fetch_add(&shared.started, 1);
	}
	return ret;
}

int wf_alg_crew_add(struct wf_crew_task *task)
{
	int ret = 0;

	pthread_once(&once, setup);
	if (wf_unlikely(!atomic_load(&shared.started))) {
		pthread_mutex_lock(&lock);
		if (!atomic_load(&shared.started) && !stopping &&
		    start_locked())
			ret = -EAGAIN;
		pthread_mutex_unlock(&lock);
	}
	if (ret)
		return ret;
	atomic_fetch_add(&shared.load, load_of(task));
	wf_alg_stack_push(&shared.stack, &task->item);
	if (is_help_wanted()) {
		pthread_mutex_lock(&lock);
		call_help_locked();
		pthread_mutex_unlock(&lock);
	}
	return 0;
}

bool wf_alg_crew_remove(struct wf_crew_task *task)
{
	bool found;

	pthread_mutex_lock(&lock);
	collect_locked();
	found = is_queued_locked(task);
	if (found)
		take_locked(task);
	pthread_mutex_unlock(&lock);
	return found;
}

struct wf_crew_task *
wf_alg_crew_take(bool (*is_mine)(const struct wf_crew_task *task))
{
	struct wf_crew_task *found = NULL;
	struct wf_list *pos, *tmp;

	pthread_mutex_lock(&lock);
	collect_locked();
	wf_list_for_each (pos, tmp, &queue) {
		struct wf_crew_task *task =
			wf_container_of(pos, struct wf_crew_task, item.link);

		if (found || !is_mine(task))
			continue;
		take_locked(task);
		found = task;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* -- together -------------------------------------------------------------- */

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
	set_most_locked();
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_need(unsigned int at_least)
{
	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (at_least > needed)
		needed = at_least < THREADS_MOST ? at_least : THREADS_MOST;
	set_most_locked();
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_stop(void)
{
	unsigned int count;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	stopping = true;
	count = atomic_load(&shared.started);
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_lock(&lock);
	free(threads);
	threads = NULL;
	threads_room = 0;
	atomic_store(&shared.started, 0);
	needed = 0;
	set_most_locked();
	pthread_mutex_unlock(&lock);
}

void wf_alg_crew_allow(void)
{
	pthread_mutex_lock(&lock);
	stopping = false;
	pthread_mutex_unlock(&lock);
}
