/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous calls. If the driver has queues, the caller submits a stateless
 * job, and a thread that polls or waits here polls its queue, too. The crew
 * does the jobs that a device failed, and those of libraries. A finished job
 * enters the list of done jobs, and leaves it when its callback is run: by
 * wd_alg_poll(), by the poll thread, or by wd_alg_async_fini(). The thread that
 * takes it off the list runs the callback, so it runs exactly once. Callbacks
 * run without any lock of ours.
 */
#include <weft/wd_comp.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "alg/choice.h"
#include "alg/crew.h"
#include "alg/lane.h"
#include "alg/piece.h"
#include "alg/whole.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"

#define MAX_THREADS 1024
/* A look at the queues of devices while others may finish, or be submitted. */
#define LOOK_MS 1

struct job {
	struct wf_crew_task task;
	struct wf_list done; /* in the list of those done */
	struct wf_list all;
	struct wd_comp_ctx *ctx;
	wd_comp_callback callback;
	void *arg;
	bool inflate;
	int result;
	/* On a queue: */
	struct wf_alg_owner owner;
	struct wf_alg_whole whole;
	struct wf_alg_lane *lane;
	uint32_t bit;
	/* Where the job's time goes if cost has chosen the driver, else NULL. */
	struct wf_alg_cost *cost;
	struct wf_alg_start start;
	bool unfinished; /* the driver's part is over, ours is not */
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
static int event_fd = -1; /* of wd_alg_event_fd() */
static bool signalled;	  /* it is readable */
static bool watch_stop;
static pthread_t watch_thread;	     /* there while event_fd is */
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

/* The parent's jobs stay with the parent: their callbacks run there. */
static void in_child(void)
{
	wf_base_list_init(&done_list);
	wf_base_list_init(&all_list);
	in_flight = 0;
	closing = false;
	polling = false;
	/* The parent reads and writes it. */
	if (event_fd >= 0)
		close(event_fd);
	event_fd = -1;
	signalled = false;
	wf_alg_registry_forked();
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

/* The driver that cost has chosen is done with it, or never gets it. */
static void end_cost(struct job *job, bool good)
{
	if (job->cost)
		wf_alg_cost_end(job->cost, &job->whole.job, job->start, good,
				wf_base_clock_ns());
	job->cost = NULL;
}

/* The descriptor is readable while there is something in the list. */
static void signal_locked(void)
{
	bool is = !wf_base_list_empty(&done_list);
	uint64_t value = 1;

	if (event_fd < 0 || signalled == is)
		return;
	if (is ? write(event_fd, &value, sizeof(value)) :
		 read(event_fd, &value, sizeof(value)))
		signalled = is;
}

static void finish_locked(struct job *job, int result)
{
	job->result = result;
	wf_base_list_del(&job->all);
	wf_base_list_add_tail(&done_list, &job->done);
	signal_locked();
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

/* -- jobs on queues of drivers --------------------------------------------- */

/* In the crew: a device has failed, and another driver does it; or a library is
 * expected to end sooner than the devices before it. */
static void run_again(struct wf_crew_task *task)
{
	struct job *job = wf_container_of(task, struct job, task);
	int result = wf_alg_whole_work(&job->whole);

	end_cost(job, !result);
	result = wf_alg_whole_end(&job->whole, result, &job->ctx->in_len,
				  &job->ctx->out_len);
	pthread_mutex_lock(&lock);
	finish_locked(job, result);
	pthread_mutex_unlock(&lock);
}

/* With its queue locked: the thread that runs the callback computes the
 * checksum. */
static void is_back(struct wf_alg_owner *owner)
{
	struct job *job = wf_container_of(owner, struct job, owner);
	struct wf_alg_whole *w = &job->whole;
	int result = w->job.result;

	wf_alg_lane_left(job->lane);
	end_cost(job, !result);
	pthread_mutex_lock(&lock);
	job->unfinished = wf_alg_piece_is_final(result);
	if (!job->unfinished) {
		w->want.except |= job->bit;
		/* It may be released, and then it is the application's. */
		w->want.ch = NULL;
		job->task.run = run_again;
		result = wf_alg_crew_add(&job->task) ? -ENODEV : 0;
	}
	if (job->unfinished || result)
		finish_locked(job, result);
	pthread_mutex_unlock(&lock);
}

/*
 * Gives it to @slot: 0 if that has it now, -ENOTSUP if it is one without queues.
 */
static int give(struct job *job, struct wf_alg_slot *slot, struct wd_chan *ch)
{
	const struct wd_alg_comp *d = wf_alg_registry_driver(slot);
	struct wd_comp_job *piece = &job->whole.job;
	int ret;

	/* Before it may be over. */
	job->bit = wf_alg_registry_bit(slot);
	job->ctx->used = d->name;
	if (job->cost)
		job->start =
			wf_alg_cost_begin(job->cost, piece, wf_base_clock_ns());
	if (!d->submit || !wf_alg_queue_fits(d, piece))
		return -ENOTSUP;
	ret = wf_alg_lane_submit(slot, piece, ch, &job->lane);
	if (ret) {
		end_cost(job, false);
		job->lane = NULL;
	}
	return ret;
}

/* Where cost decides, a job that a device does not take goes to the next; a
 * library does it in the crew. */
static bool is_given(struct job *job, struct wf_alg_want want)
{
	struct wf_alg_whole *w = &job->whole;
	bool by_cost = false;
	uint32_t passed;
	int ret;

	for (;;) {
		struct wf_alg_slot *slot = wf_alg_choice_later(
			&want, &w->job, &passed, &job->cost);

		if (!slot)
			return false;
		if (by_cost && !job->cost)
			job->cost = wf_alg_registry_cost(slot);
		by_cost = job->cost;
		ret = give(job, slot, want.ch);
		wf_alg_registry_put(slot);
		if (!ret)
			return true;
		if (!by_cost && !passed)
			return false;
		if (ret == -ENOTSUP) {
			w->want.except = want.except | passed;
			job->task.run = run_again;
			return false;
		}
		want.except |= job->bit;
	}
}

/* True if a driver has it now. */
static bool is_submitted(struct job *job)
{
	struct wd_comp_ctx *ctx = job->ctx;
	struct wf_alg_whole *w = &job->whole;
	struct wf_alg_want want;

	/* The call that the crew makes reports errors. */
	if (ctx->stream_mode != WD_COMP_STATELESS || !ctx->in || !ctx->out ||
	    (!job->inflate && !ctx->comp_level) ||
	    wf_alg_ctx_check(ctx, ctx->in, &ctx->in_len, ctx->out,
			     &ctx->out_len) ||
	    wf_alg_whole_begin(w, ctx, job->inflate, ctx->in, ctx->in_len,
			       ctx->out, ctx->out_len))
		return false;
	want = w->want;
	wf_alg_piece_want(&w->job, &want, job->inflate);
	job->owner.done = is_back;
	w->job.owner = &job->owner;
	return is_given(job, want);
}

/* -- calls ----------------------------------------------------------------- */

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
	}
	pthread_mutex_unlock(&lock);
	if (ret) {
		free(job);
		return ret;
	}
	/* From here on, if it succeeds, the job may be over at any time. */
	if (is_submitted(job)) {
		/* Waiting threads must poll its queue from now on. */
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	pthread_mutex_lock(&lock);
	ret = wf_alg_crew_add(&job->task);
	if (ret) {
		wf_base_list_del(&job->all);
		in_flight--;
		ctx->job = NULL;
		pthread_cond_broadcast(&changed);
		end_cost(job, false);
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

/* The rest of the work after the driver, without a lock. */
static void settle(struct job *job)
{
	struct wf_alg_whole *w = &job->whole;

	job->result =
		wf_alg_whole_end(w, wf_alg_piece_settle(&w->job, job->result),
				 &job->ctx->in_len, &job->ctx->out_len);
}

int wd_alg_poll(unsigned int max)
{
	unsigned int count = 0;

	pthread_once(&once, setup);
	if (!max || max > INT_MAX)
		max = INT_MAX;
	wf_alg_lane_poll();
	pthread_mutex_lock(&lock);
	while (count < max && !wf_base_list_empty(&done_list)) {
		struct job *job =
			wf_container_of(done_list.next, struct job, done);

		wf_base_list_del(&job->done);
		if (job->unfinished) {
			pthread_mutex_unlock(&lock);
			settle(job);
			pthread_mutex_lock(&lock);
		}
		/* From here on the context belongs to the application again. */
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
	signal_locked();
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

/* Until something is done, or may be. */
static void sleep_locked(void)
{
	if (!wf_alg_lane_busy()) {
		pthread_cond_wait(&changed, &lock);
		return;
	}
	pthread_mutex_unlock(&lock);
	if (!wf_alg_lane_poll())
		wf_alg_lane_wait(LOOK_MS);
	pthread_mutex_lock(&lock);
}

static int sleep_until_locked(const struct timespec *at)
{
	uint64_t end =
		(uint64_t)at->tv_sec * WF_NS_PER_S + (uint64_t)at->tv_nsec;

	if (!wf_alg_lane_busy())
		return pthread_cond_timedwait(&changed, &lock, at);
	sleep_locked();
	return wf_base_clock_ns() > end;
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
			sleep_locked();
		else if (sleep_until_locked(&at))
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
			sleep_locked();
		if (wf_base_list_empty(&done_list))
			break;
		pthread_mutex_unlock(&lock);
		wd_alg_poll(0);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Signals of the program are for its own threads; but a fault of this one, which
 * copies results, goes to the handlers as from any other. */
static int start_thread(pthread_t *thread, void *(*run)(void *arg))
{
	sigset_t every, old;
	int ret;

	sigfillset(&every);
	sigdelset(&every, SIGBUS);
	sigdelset(&every, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &every, &old);
	ret = pthread_create(thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

int wd_alg_poll_start(void)
{
	int ret;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (polling || closing) {
		pthread_mutex_unlock(&lock);
		return -EBUSY;
	}
	poll_stop = false;
	ret = start_thread(&poll_thread, poll_main);
	polling = !ret;
	pthread_mutex_unlock(&lock);
	return ret;
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

/* -- a descriptor to wait on ----------------------------------------------- */

/* Looks at the queues of devices, so that jobs there get into the list. The
 * application runs the callbacks. */
static void *watch_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!watch_stop)
		sleep_locked();
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int open_event_locked(void)
{
	int ret;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return -errno;
	watch_stop = false;
	ret = start_thread(&watch_thread, watch_main);
	if (ret) {
		close(event_fd);
		event_fd = -1;
		return ret;
	}
	signal_locked();
	return event_fd;
}

int wd_alg_event_fd(void)
{
	int ret;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (event_fd >= 0)
		ret = event_fd;
	else
		ret = closing ? -EBUSY : open_event_locked();
	pthread_mutex_unlock(&lock);
	return ret;
}

/* The lock is released while the thread ends. */
static void close_event_locked(void)
{
	int fd = event_fd;

	if (fd < 0)
		return;
	/* Nobody is given a descriptor that is about to be closed. */
	event_fd = -1;
	watch_stop = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(watch_thread, NULL);
	pthread_mutex_lock(&lock);
	close(fd);
	signalled = false;
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
		end_cost(job, false);
		finish_locked(job, -ECANCELED);
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* A job that nobody has begun, and that only the caller can begin; or NULL. */
static struct job *queued_locked(void)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &all_list) {
		struct job *job = wf_container_of(pos, struct job, all);

		if (wf_alg_crew_remove(&job->task))
			return job;
	}
	return NULL;
}

void wd_alg_async_fini(void)
{
	struct job *job;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (closing || inside) {
		pthread_mutex_unlock(&lock);
		wf_warn("wd_alg_async_fini() called from a callback or twice "
			"at once; call it from outside");
		return;
	}
	closing = true;
	/* Jobs on devices are in flight: wait for them. */
	while (wf_alg_lane_busy())
		sleep_locked();
	while ((job = queued_locked())) {
		if (job->lane) { /* it had begun, on a device that failed */
			pthread_mutex_unlock(&lock);
			job->task.run(&job->task);
			pthread_mutex_lock(&lock);
			continue;
		}
		job->ctx->in_len = 0;
		job->ctx->out_len = 0;
		end_cost(job, false);
		finish_locked(job, -ECANCELED);
	}
	pthread_mutex_unlock(&lock);
	wf_alg_crew_stop();
	wd_alg_poll_stop();
	wd_alg_poll(0);
	pthread_mutex_lock(&lock);
	/* Another thread may still be inside a callback, or have been about to
	 * submit when this began. */
	while (in_flight) {
		if (wf_base_list_empty(&done_list)) {
			sleep_locked();
			continue;
		}
		pthread_mutex_unlock(&lock);
		wd_alg_poll(0);
		pthread_mutex_lock(&lock);
	}
	close_event_locked();
	closing = false;
	pthread_mutex_unlock(&lock);
}
