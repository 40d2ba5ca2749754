/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous calls. A job goes from the crew's queue into the list of those
 * done, and leaves it when its callback is run: by wd_alg_poll(), by the poll
 * thread, or by wd_alg_async_fini(), whoever takes it off the list. So a
 * callback runs exactly once. Callbacks run without any lock of ours.
 */
#include <weft/wd_comp.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "alg/crew.h"
#include "base/list.h"
#include "base/log.h"

#define MAX_THREADS 1024

struct job {
	struct wf_crew_task task;
	struct wf_list done; /* in the list of those done */
	struct wf_list all;
	struct wd_comp_ctx *ctx;
	wd_comp_callback callback;
	void *arg;
	bool inflate;
	int result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wf_list done_list = { &done_list, &done_list };
static struct wf_list all_list = { &all_list, &all_list }; /* not yet done */
static unsigned int in_flight; /* callbacks that have not returned */
static bool closing;
static bool polling;
static bool poll_stop;
static pthread_t poll_thread;
static __thread unsigned int inside; /* callbacks this thread is in */

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The parent's jobs are the parent's: their callbacks run there. */
static void in_child(void)
{
	wf_base_list_init(&done_list);
	wf_base_list_init(&all_list);
	in_flight = 0;
	closing = false;
	polling = false;
	init_changed();
	pthread_mutex_init(&lock, NULL);
}

static void setup(void)
{
	init_changed();
	/* The crew's handlers first: they then run after ours, which is the
	 * order in which submit() takes the two locks. */
	wf_alg_crew_need(0);
	pthread_atfork(before_fork, in_parent, in_child);
}

static void finish_locked(struct job *job, int result)
{
	job->result = result;
	wf_base_list_del(&job->all);
	wf_base_list_add_tail(&done_list, &job->done);
	pthread_cond_broadcast(&changed);
}

static void run_job(struct wf_crew_task *task)
{
	struct job *job = wf_container_of(task, struct job, task);
	struct wd_comp_ctx *ctx = job->ctx;
	int result;

	if (job->inflate)
		result = wd_alg_inflate(ctx, ctx->in, &ctx->in_len, ctx->out,
					&ctx->out_len);
	else
		result = wd_alg_deflate(ctx, ctx->in, &ctx->in_len, ctx->out,
					&ctx->out_len);
	pthread_mutex_lock(&lock);
	finish_locked(job, result);
	pthread_mutex_unlock(&lock);
}

static int submit(struct wd_comp_ctx *ctx, bool inflate,
		  wd_comp_callback callback, void *arg, const void *src,
		  size_t src_len, void *dst, size_t dst_len)
{
	struct job *job;
	int ret;

	if (!ctx || !callback || (!src && src_len) || (!dst && dst_len))
		return -EINVAL;
	pthread_once(&once, setup);
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = (struct job){
		.task = { .run = run_job },
		.ctx = ctx,
		.callback = callback,
		.arg = arg,
		.inflate = inflate,
	};
	pthread_mutex_lock(&lock);
	ret = closing ? -ECANCELED : ctx->job ? -EBUSY : 0;
	if (!ret) {
		ctx->job = job;
		ctx->in = (void *)(uintptr_t)src;
		ctx->in_len = src_len;
		ctx->out = dst;
		ctx->out_len = dst_len;
		wf_base_list_add_tail(&all_list, &job->all);
		in_flight++;
		ret = wf_alg_crew_add(&job->task);
		if (ret) {
			wf_base_list_del(&job->all);
			in_flight--;
			ctx->job = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	if (ret)
		free(job);
	return ret;
}

int wd_alg_async_deflate(struct wd_comp_ctx *ctx, wd_comp_callback callback,
			 void *arg, const void *src, size_t src_len, void *dst,
			 size_t dst_len)
{
	return submit(ctx, false, callback, arg, src, src_len, dst, dst_len);
}

int wd_alg_async_inflate(struct wd_comp_ctx *ctx, wd_comp_callback callback,
			 void *arg, const void *src, size_t src_len, void *dst,
			 size_t dst_len)
{
	return submit(ctx, true, callback, arg, src, src_len, dst, dst_len);
}

int wd_alg_poll(unsigned int max)
{
	unsigned int count = 0;

	pthread_once(&once, setup);
	if (!max || max > INT_MAX)
		max = INT_MAX;
	pthread_mutex_lock(&lock);
	while (count < max && !wf_base_list_empty(&done_list)) {
		struct job *job =
			wf_container_of(done_list.next, struct job, done);

		wf_base_list_del(&job->done);
		/* From here on the context is the application's again. */
		job->ctx->job = NULL;
		pthread_mutex_unlock(&lock);
		inside++;
		job->callback(job->ctx, job->result, job->arg);
		inside--;
		free(job);
		count++;
		pthread_mutex_lock(&lock);
		in_flight--;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return (int)count;
}

static struct timespec deadline(int timeout_ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += timeout_ms / 1000;
	at.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (at.tv_nsec >= 1000000000L) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000L;
	}
	return at;
}

int wd_alg_wait(int timeout_ms)
{
	struct timespec at = deadline(timeout_ms > 0 ? timeout_ms : 0);
	int ret = 0;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	while (wf_base_list_empty(&done_list) &&
	       !wf_base_list_empty(&all_list) && !ret) {
		if (timeout_ms < 0)
			pthread_cond_wait(&changed, &lock);
		else if (pthread_cond_timedwait(&changed, &lock, &at))
			ret = -ETIMEDOUT;
	}
	if (!wf_base_list_empty(&done_list))
		ret = 0;
	pthread_mutex_unlock(&lock);
	return ret;
}

static void *poll_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (wf_base_list_empty(&done_list) && !poll_stop)
			pthread_cond_wait(&changed, &lock);
		if (wf_base_list_empty(&done_list))
			break;
		pthread_mutex_unlock(&lock);
		wd_alg_poll(0);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int wd_alg_poll_start(void)
{
	sigset_t every, old;
	int ret;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (polling || closing) {
		pthread_mutex_unlock(&lock);
		return -EBUSY;
	}
	poll_stop = false;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &old);
	ret = pthread_create(&poll_thread, NULL, poll_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	polling = !ret;
	pthread_mutex_unlock(&lock);
	return -ret;
}

int wd_alg_poll_stop(void)
{
	pthread_t thread;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (!polling || pthread_equal(poll_thread, pthread_self())) {
		int ret = polling ? -EDEADLK : -ENOENT;

		pthread_mutex_unlock(&lock);
		return ret;
	}
	poll_stop = true;
	polling = false;
	thread = poll_thread;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	return 0;
}

int wd_alg_async_threads(unsigned int count)
{
	if (!count || count > MAX_THREADS)
		return -EINVAL;
	wf_alg_crew_limit(count);
	return 0;
}

int wd_alg_cancel(struct wd_comp_ctx *ctx)
{
	struct job *job;
	int ret = 0;

	if (!ctx)
		return -EINVAL;
	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	job = ctx->job;
	if (!job)
		ret = -ENOENT;
	else if (!wf_alg_crew_remove(&job->task))
		ret = -EINPROGRESS;
	else {
		ctx->in_len = 0;
		ctx->out_len = 0;
		finish_locked(job, -ECANCELED);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void wd_alg_async_fini(void)
{
	struct wf_list *pos, *tmp;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (closing || inside) {
		pthread_mutex_unlock(&lock);
		wf_warn("wd_alg_async_fini() called from a callback or twice "
			"at once; call it from outside");
		return;
	}
	closing = true;
	wf_list_for_each (pos, tmp, &all_list) {
		struct job *job = wf_container_of(pos, struct job, all);

		if (wf_alg_crew_remove(&job->task)) {
			job->ctx->in_len = 0;
			job->ctx->out_len = 0;
			finish_locked(job, -ECANCELED);
		}
	}
	pthread_mutex_unlock(&lock);
	wf_alg_crew_stop();
	wd_alg_poll_stop();
	wd_alg_poll(0);
	pthread_mutex_lock(&lock);
	/* Another thread may still be inside a callback. */
	while (in_flight)
		pthread_cond_wait(&changed, &lock);
	closing = false;
	pthread_mutex_unlock(&lock);
}
