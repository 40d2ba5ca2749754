/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous calls. If the driver has queues, the caller submits a stateless
 * job, and a thread that polls or waits here polls its queue, too. The crew
 * does the jobs that a device failed, and those of libraries. A finished job
 * enters the stack of done jobs, from there the list of those that are ready, and
 * leaves that when its callback is run: by wd_alg_poll(), by the poll thread, or
 * by wd_alg_async_fini(). The thread that takes it off the list runs the callback,
 * so it runs exactly once. Callbacks run without any lock of ours.
 *
 * To submit a job to the crew and to finish it takes no lock here, unless a thread
 * waits for something: that thread is counted (attention) before it looks at the
 * stack for the last time, and a job is put there before the count is read.
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
/* Input of a job that the crew takes several of at once. */
#define SMALL (16u << 10)

/* The crew uses only the beginning of a job for a library. */
struct job {
	struct wf_crew_task task;
	struct wd_comp_ctx *ctx;
	/* Where the job's time goes if cost has chosen the driver, else NULL. */
	struct wf_alg_cost *cost;
	uint32_t except; /* drivers that a library was preferred to */
	bool inflate;
	bool unfinished; /* the driver's part is over, ours is not */
	int result;
	struct wf_stack_item done;
	wd_comp_callback callback;
	void *arg;
	/* On a queue: */
	struct wf_alg_owner owner;
	struct wf_alg_whole whole;
	struct wf_alg_lane *lane;
	uint32_t bit;
	struct wf_alg_start start;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wf_list ready_list = { &ready_list, &ready_list };
static bool polling, poll_stop;
static pthread_t poll_thread;
static int event_fd = -1; /* of wd_alg_event_fd() */
static bool signalled;	  /* it is readable */
static bool watch_stop;
static pthread_t watch_thread;	     /* there while event_fd is */
static __thread unsigned int inside; /* callbacks this thread is in */

/* Threads use these members without the lock. */
static struct {
	_Alignas(64) struct wf_stack done;
	atomic_uint undone; /* jobs that are not there yet */
	_Alignas(64)
		atomic_uint in_flight; /* callbacks that have not returned */
	/* Threads that sleep until something changes or are about to, and one
	 * for the descriptor: they must be told. */
	_Alignas(64) atomic_uint attention;
	atomic_bool closing;
} shared;

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
	wf_base_list_init(&ready_list);
	atomic_store(&shared.done.top, NULL);
	atomic_store(&shared.undone, 0);
	/* Callbacks that the child is in return there. */
	atomic_store(&shared.in_flight, inside);
	atomic_store(&shared.attention, 0);
	atomic_store(&shared.closing, false);
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

/* Whether a callback can be run. */
static bool is_ready_locked(void)
{
	return !wf_base_list_empty(&ready_list) ||
	       !wf_alg_stack_empty(&shared.done);
}

/* The descriptor is readable while there is something in the list. */
static void signal_locked(void)
{
	bool is = is_ready_locked();
	uint64_t value = 1;

	if (event_fd < 0 || signalled == is)
		return;
	if (is ? write(event_fd, &value, sizeof(value)) :
		 read(event_fd, &value, sizeof(value)))
		signalled = is;
}

static void tell_locked(void)
{
	signal_locked();
	pthread_cond_broadcast(&changed);
}

/* Wakes the threads that sleep here, so that they look again. */
static void tell(void)
{
	if (!atomic_load(&shared.attention))
		return;
	pthread_mutex_lock(&lock);
	tell_locked();
	pthread_mutex_unlock(&lock);
}

/* The job may be gone when this returns. */
static void finish(struct job *job, int result)
{
	bool only;

	job->result = result;
	only = wf_alg_stack_push(&shared.done, &job->done);
	/* Jobs behind the first are seen with it. Another thread may have taken
	 * it before one that waits has seen it: then there may be none left to
	 * wait for. */
	if (atomic_fetch_sub(&shared.undone, 1) == 1 || only)
		tell();
}

static void run_job(struct wf_crew_task *task)
{
	struct job *job = wf_container_of(task, struct job, task);
	struct wd_comp_ctx *ctx = job->ctx;

	finish(job,
	       (job->inflate ? wd_alg_inflate : wd_alg_deflate)(
		       ctx, ctx->in, &ctx->in_len, ctx->out, &ctx->out_len));
}

/* In the crew: a library does it, because there is no device or because it is
 * expected to end sooner. All but a few bytes of the job stay where the thread is
 * that has submitted it. */
static void run_library(struct wf_crew_task *task)
{
	struct job *job = wf_container_of(task, struct job, task);
	struct wd_comp_ctx *ctx = job->ctx;
	int result = wf_alg_whole_run(ctx, job->inflate, job->except, ctx->in,
				      &ctx->in_len, ctx->out, &ctx->out_len);

	end_cost(job, !result);
	finish(job, result);
}

/* -- jobs on queues of drivers --------------------------------------------- */

/* In the crew: a device has failed, and another driver does it. */
static void run_again(struct wf_crew_task *task)
{
	struct job *job = wf_container_of(task, struct job, task);
	int result = wf_alg_whole_work(&job->whole);

	finish(job, wf_alg_whole_end(&job->whole, result, &job->ctx->in_len,
				     &job->ctx->out_len));
}

/* With its queue locked: the thread that runs the callback computes the
 * checksum. */
static void is_back(struct wf_alg_owner *owner)
{
	struct job *job = wf_container_of(owner, struct job, owner);
	struct wf_alg_whole *w = &job->whole;
	int result = w->job.result;
	bool final = wf_alg_piece_is_final(result);

	wf_alg_lane_left(job->lane);
	end_cost(job, !result);
	job->unfinished = final;
	if (!final) {
		w->want.except |= job->bit;
		/* The application may have released its channel. */
		w->want.ch = NULL;
		job->task.run = run_again;
		result = wf_alg_crew_add(&job->task) ? -ENODEV : 0;
	}
	if (final || result)
		finish(job, result);
	else /* it may be gone, or wait for drain_locked() */
		tell();
}

/* To a driver with queues: 0 if that has it now. */
static int give(struct job *job, struct wf_alg_slot *slot, struct wd_chan *ch)
{
	const struct wd_alg_comp *d = wf_alg_registry_driver(slot);
	struct wd_comp_job *piece = &job->whole.job;
	int ret;

	/* Before it may be over. */
	job->bit = wf_alg_registry_bit(slot);
	job->ctx->used = d->name;
	if (!wf_alg_queue_fits(d, piece))
		return -ENOTSUP;
	if (job->cost)
		job->start =
			wf_alg_cost_begin(job->cost, piece, wf_base_clock_ns());
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
	const struct wd_comp_job *piece = &job->whole.job;
	bool by_cost = false;

	for (;;) {
		struct wf_alg_choice choice;
		int ret;

		wf_alg_choice_later(&want, piece, &choice);
		if (!choice.found)
			return false;
		job->cost = by_cost ? choice.own : choice.cost;
		if (!choice.slot) {
			job->except = want.except | choice.passed;
			job->task.run = run_library;
			/* One that waits for a device is not small. */
			job->task.small = piece->src_len <= SMALL &&
					  piece->dst_len <= 2 * SMALL;
			if (job->cost)
				job->start = wf_alg_cost_begin(
					job->cost, piece, wf_base_clock_ns());
			return false;
		}
		by_cost = by_cost || choice.cost;
		ret = give(job, choice.slot, want.ch);
		wf_alg_registry_put(choice.slot);
		if (!ret)
			return true;
		if (!by_cost)
			return false;
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

static struct job *make_job(struct wd_comp_ctx *ctx, bool inflate,
			    wd_comp_callback callback, void *arg)
{
	struct job *job = malloc(sizeof(*job));

	if (!job)
		return NULL;
	/* One by one: the rest is filled in when it is needed. */
	job->task = (struct wf_crew_task){ .run = run_job };
	job->ctx = ctx;
	job->cost = NULL;
	job->inflate = inflate;
	job->unfinished = false;
	job->callback = callback;
	job->arg = arg;
	job->lane = NULL;
	return job;
}

/* Counts the job before the lists have it: wd_alg_async_fini() waits for it. */
static int enter(struct wd_comp_ctx *ctx, struct job *job)
{
	void *none = NULL;

	atomic_fetch_add(&shared.in_flight, 1);
	if (atomic_load(&shared.closing))
		return -ECANCELED;
	if (!__atomic_compare_exchange_n(&ctx->job, &none, job, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return -EBUSY;
	atomic_fetch_add(&shared.undone, 1);
	return 0;
}

/* Frees a job that ends without a callback, or whose callback was run. */
static void leave(struct job *job)
{
	free(job);
	if (atomic_fetch_sub(&shared.in_flight, 1) == 1 &&
	    atomic_load(&shared.closing))
		tell();
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
	job = make_job(ctx, inflate, callback, arg);
	if (!job)
		return -ENOMEM;
	ret = enter(ctx, job);
	if (ret) {
		leave(job);
		return ret;
	}
	ctx->in = (void *)(uintptr_t)src;
	ctx->in_len = src_len;
	ctx->out = dst;
	ctx->out_len = dst_len;
	/* From here on, if it succeeds, the job may be over at any time. */
	if (is_submitted(job)) {
		/* Waiting threads must poll its queue from now on. */
		tell();
		return 0;
	}
	ret = wf_alg_crew_add(&job->task);
	if (!ret) {
		if (atomic_load(&shared.closing))
			tell(); /* the crew may have been stopped */
		return 0;
	}
	end_cost(job, false);
	pthread_mutex_lock(&lock);
	__atomic_store_n(&ctx->job, NULL, __ATOMIC_RELEASE);
	atomic_fetch_sub(&shared.undone, 1);
	tell_locked();
	pthread_mutex_unlock(&lock);
	leave(job);
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

/* The next whose callback is to be run; or NULL. */
static struct job *next_locked(void)
{
	struct job *job;

	if (wf_base_list_empty(&ready_list))
		wf_alg_stack_empty_into(&shared.done, &ready_list);
	if (wf_base_list_empty(&ready_list))
		return NULL;
	job = wf_container_of(ready_list.next, struct job, done.link);
	wf_base_list_del(&job->done.link);
	return job;
}

int wd_alg_poll(unsigned int max)
{
	unsigned int count = 0;
	struct job *job;

	pthread_once(&once, setup);
	if (!max || max > INT_MAX)
		max = INT_MAX;
	wf_alg_lane_poll();
	pthread_mutex_lock(&lock);
	while (count < max && (job = next_locked())) {
		struct wd_comp_ctx *ctx = job->ctx;

		if (job->unfinished) {
			pthread_mutex_unlock(&lock);
			settle(job);
			pthread_mutex_lock(&lock);
		}
		/* From here on the context belongs to the application again. */
		__atomic_store_n(&ctx->job, NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
		inside++;
		job->callback(ctx, job->result, job->arg);
		inside--;
		leave(job);
		count++;
		pthread_mutex_lock(&lock);
	}
	signal_locked();
	pthread_mutex_unlock(&lock);
	return (int)count;
}

/* Until something is done, or may be. The caller is counted in ->attention. */
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

static int sleep_until_locked(uint64_t end)
{
	struct timespec at = { .tv_sec = (time_t)(end / WF_NS_PER_S),
			       .tv_nsec = (long)(end % WF_NS_PER_S) };

	if (!wf_alg_lane_busy())
		return pthread_cond_timedwait(&changed, &lock, &at);
	sleep_locked();
	return wf_base_clock_ns() > end;
}

int wd_alg_wait(int timeout_ms)
{
	uint64_t ms = timeout_ms > 0 ? (uint64_t)timeout_ms : 0;
	uint64_t end = wf_base_clock_ns() + ms * WF_NS_PER_MS;
	int ret = 0;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&shared.attention, 1);
	/* Jobs first: one is ready before it is not undone any more. */
	while (atomic_load(&shared.undone) && !is_ready_locked() && !ret) {
		if (timeout_ms < 0)
			sleep_locked();
		else if (sleep_until_locked(end))
			ret = -ETIMEDOUT;
	}
	if (is_ready_locked())
		ret = 0;
	atomic_fetch_sub(&shared.attention, 1);
	pthread_mutex_unlock(&lock);
	return ret;
}

static void *poll_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		atomic_fetch_add(&shared.attention, 1);
		while (!is_ready_locked() && !poll_stop)
			sleep_locked();
		atomic_fetch_sub(&shared.attention, 1);
		if (!is_ready_locked())
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
	if (polling || atomic_load(&shared.closing)) {
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
	/* Before we look what is done. */
	atomic_fetch_add(&shared.attention, 1);
	signal_locked();
	return event_fd;
}

int wd_alg_event_fd(void)
{
	int ret;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	ret = event_fd >= 0		   ? event_fd :
	      atomic_load(&shared.closing) ? -EBUSY :
					     open_event_locked();
	pthread_mutex_unlock(&lock);
	return ret;
}

/* The lock is released while the thread ends. */
static void close_event_locked(void)
{
	int fd = event_fd;

	if (fd < 0)
		return;
	/* From here on callers do not get this descriptor: it is closed below. */
	event_fd = -1;
	watch_stop = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(watch_thread, NULL);
	pthread_mutex_lock(&lock);
	close(fd);
	atomic_fetch_sub(&shared.attention, 1);
	signalled = false;
}

int wd_alg_async_threads(unsigned int count)
{
	if (!count || count > MAX_THREADS)
		return -EINVAL;
	wf_alg_crew_limit(count);
	return 0;
}

static void cancel(struct job *job)
{
	job->ctx->in_len = 0;
	job->ctx->out_len = 0;
	end_cost(job, false);
	finish(job, -ECANCELED);
}

int wd_alg_cancel(struct wd_comp_ctx *ctx)
{
	struct job *job;
	int ret = 0;

	if (!ctx)
		return -EINVAL;
	pthread_once(&once, setup);
	/* A job is freed only after ctx->job was changed under the lock. */
	pthread_mutex_lock(&lock);
	job = __atomic_load_n(&ctx->job, __ATOMIC_ACQUIRE);
	if (!job)
		ret = -ENOENT;
	else if (!wf_alg_crew_remove(&job->task))
		ret = -EINPROGRESS;
	pthread_mutex_unlock(&lock);
	/* The crew does not have the job any more, so it is ours alone. */
	if (!ret)
		cancel(job);
	return ret;
}

static bool is_job(const struct wf_crew_task *task)
{
	return task->run == run_job || task->run == run_library ||
	       task->run == run_again;
}

/* A job that nobody has begun, and that only the caller can begin; or NULL. */
static struct job *take_queued(void)
{
	struct wf_crew_task *task = wf_alg_crew_take(is_job);

	return task ? wf_container_of(task, struct job, task) : NULL;
}

static void end_queued(struct job *job)
{
	if (job->lane) /* it had begun, on a device that failed */
		job->task.run(&job->task);
	else
		cancel(job);
}

/* All jobs end, and their callbacks return. Another thread may be inside one, or
 * have been about to submit a job when this began. */
static void drain_locked(void)
{
	while (atomic_load(&shared.in_flight)) {
		/* Under the lock: a thread that adds one tells us then. */
		struct job *job = take_queued();

		if (!job && !is_ready_locked()) {
			sleep_locked();
			continue;
		}
		pthread_mutex_unlock(&lock);
		if (job)
			end_queued(job);
		else
			wd_alg_poll(0);
		pthread_mutex_lock(&lock);
	}
}

void wd_alg_async_fini(void)
{
	struct job *job;

	pthread_once(&once, setup);
	pthread_mutex_lock(&lock);
	if (atomic_load(&shared.closing) || inside) {
		pthread_mutex_unlock(&lock);
		wf_warn("wd_alg_async_fini() called from a callback or twice "
			"at once; call it from outside");
		return;
	}
	atomic_fetch_add(&shared.attention, 1);
	atomic_store(&shared.closing, true);
	/* Jobs on devices are in flight: wait for them. */
	while (wf_alg_lane_busy())
		sleep_locked();
	while ((job = take_queued())) {
		pthread_mutex_unlock(&lock);
		end_queued(job);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	wf_alg_crew_stop();
	wd_alg_poll_stop();
	pthread_mutex_lock(&lock);
	drain_locked();
	close_event_locked();
	wf_alg_crew_allow();
	atomic_store(&shared.closing, false);
	atomic_fetch_sub(&shared.attention, 1);
	pthread_mutex_unlock(&lock);
}
