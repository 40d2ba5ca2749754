/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that do asynchronous jobs and parallel pieces. They start when there
 * is work, as many as allowed, and stay until told to stop. A forked child has
 * none, and none of the parent's work.
 */
#ifndef WF_ALG_CREW_H
#define WF_ALG_CREW_H

#include <stdbool.h>

#include "alg/stack.h"

struct wf_crew_task {
	/* Runs in a thread of the crew, without locks. */
	void (*run)(struct wf_crew_task *task);
	/* It takes microseconds: a thread may take several of these at once, and a
	 * few of them are not worth waking one more. */
	bool small;
	/* The crew's; zero before it is added. */
	struct wf_stack_item item;
};

/* Queues it; takes no lock unless a thread has to be woken or started. -EAGAIN if
 * no thread could be started and there is none. */
int wf_alg_crew_add(struct wf_crew_task *task);
/* True if it had not begun; then it never will. */
bool wf_alg_crew_remove(struct wf_crew_task *task);
/* Removes and returns a task that has not begun and that @is_mine, or NULL. */
struct wf_crew_task *
wf_alg_crew_take(bool (*is_mine)(const struct wf_crew_task *task));
/*
 * Runs @func(@arg) in the caller and in up to @threads - 1 of the crew at the
 * same time; returns when all of them have. @func finds its own share of the
 * work, and must do all of it if it is alone.
 */
void wf_alg_crew_together(unsigned int threads, void (*func)(void *arg),
			  void *arg);
/* At most this many threads; at least @at_least where more are asked for. */
void wf_alg_crew_limit(unsigned int threads);
void wf_alg_crew_need(unsigned int at_least);
/* Waits for work that has begun, and ends all threads. Queued work stays, and so
 * does what is added afterwards: no thread starts before wf_alg_crew_allow(). */
void wf_alg_crew_stop(void);
void wf_alg_crew_allow(void);

#endif
