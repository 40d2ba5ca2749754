/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues on channels of drivers. A queue's lock is held while its driver is
 * called, so that a driver sees one thread at a time; owners are also notified
 * under it, in the order in which their jobs end. A synchronous call has its
 * queue to itself, and needs no lock, unless it is on the application's channel.
 */
#include "alg/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alg/touch.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/fork.h"
#include "base/list.h"
#include "chan/core.h"

#define BATCH 16
#define KEPT 16 /* idle queues of all drivers; more are closed */
#define DEPTH_MOST 4096u
#define SPIN (20 * WF_NS_PER_US) /* before sleeping */
#define NAP_NS 50000		 /* where a driver cannot wait */
#define WAIT_ALONE 1000
/* Others may want to submit meanwhile. */
#define WAIT_SHARED 1
#define TIMEOUT_MS 10000u
/* The part of the time-out that may pass between two looks at a queue.
 * Additional time does not count: the process was stopped, or had other work,
 * and may not have served the device. */
#define LOOKS 8

#define DIRECTIONS (WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE)

/* How long we have been waiting for something that does not arrive. */
struct patience {
	uint64_t
		looked; /* when; 0: not yet, which costs no look at the clock */
	uint64_t spent; /* since it began, in ns */
};

struct wf_alg_queue {
	pthread_mutex_t lock;
	pthread_cond_t awake;	  /* nobody sleeps in the driver any more */
	bool sleeping;		  /* somebody does, without the lock */
	struct wf_alg_slot *slot; /* referenced */
	const struct wd_alg_comp *driver;
	struct wf_alg_stats *stats;
	void *chan; /* NULL: it is over */
	unsigned int can;
	atomic_uint refs;
	bool shared;
	bool foreign; /* in a forked child: nothing here is ours */
	struct wf_fork_watch watch;
	struct wf_list link; /* among the idle */
	unsigned int depth;
	unsigned int in_flight;
	unsigned int counted;	      /* of these, in the counter "waiting" */
	struct patience oldest;	      /* for flight[0], since it is that */
	struct wd_comp_job *flight[]; /* oldest first */
};

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list idle = { &idle, &idle };
static unsigned int kept;
/* Before these, one idle queue for each driver and direction, without a lock. */
static _Atomic(struct wf_alg_queue *) spares[WF_ALG_SLOTS][2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* -- fork ------------------------------------------------------------------ */

static void before_fork(void)
{
	pthread_mutex_lock(&idle_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&idle_lock);
}

/* Channels are the parent's; base/fork closes their descriptors. */
static void in_child(void)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &idle)
		wf_alg_registry_put(
			wf_container_of(pos, struct wf_alg_queue, link)->slot);
	for (unsigned int i = 0; i < 2 * WF_ALG_SLOTS; i++) {
		struct wf_alg_queue *q =
			atomic_exchange(&spares[i / 2][i % 2], NULL);

		if (q)
			wf_alg_registry_put(q->slot);
	}
	wf_base_list_init(&idle);
	kept = 0;
	in_parent();
	/* Another thread may have held it; the work it had begun is not
	 * ours. */
	pthread_mutex_init(&attach_lock, NULL);
}

static void setup(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void queue_in_child(struct wf_fork_watch *watch)
{
	struct wf_alg_queue *q =
		wf_container_of(watch, struct wf_alg_queue, watch);

	q->foreign = true;
	/* Another thread may have held it. */
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->awake, NULL);
}

/* -- opening --------------------------------------------------------------- */

bool wf_alg_queue_fits(const struct wd_alg_comp *driver,
		       const struct wd_comp_job *job)
{
	const struct wd_comp_limits *l = &driver->limits;

	if ((l->src_max && job->src_len > l->src_max) ||
	    (l->dst_max && job->dst_len > l->dst_max))
		return false;
	return l->align < 2 ||
	       !(((uintptr_t)job->src | (uintptr_t)job->dst) & (l->align - 1));
}

static struct wf_alg_queue *open_queue(struct wf_alg_slot *slot,
				       struct wd_chan *ch, unsigned int can)
{
	const struct wd_alg_comp *d = wf_alg_registry_driver(slot);
	unsigned int depth = d->limits.in_flight ? d->limits.in_flight : 1;
	struct wf_alg_queue *q;

	depth = depth < DEPTH_MOST ? depth : DEPTH_MOST;
	q = calloc(1, sizeof(*q) + depth * sizeof(q->flight[0]));
	if (!q)
		return NULL;
	if (d->open_chan(&q->chan, ch, can) || !q->chan) {
		free(q);
		return NULL;
	}
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->awake, NULL);
	q->slot = wf_alg_registry_dup(slot);
	q->driver = d;
	q->can = can;
	q->depth = depth;
	q->refs = 1;
	q->stats = wf_alg_registry_stats(slot);
	wf_alg_stats_add(q->stats, WF_ALG_STAT_channels, 1);
	q->watch.in_child = queue_in_child;
	wf_base_fork_watch(&q->watch);
	return q;
}

/* The counters of a forked child do not have what its parent began. */
static void count(struct wf_alg_queue *q, enum wf_alg_stat item, uint64_t more)
{
	if (!q->foreign)
		wf_alg_stats_add(q->stats, item, more);
}

static void deliver(struct wf_alg_queue *q, struct wd_comp_job *job)
{
	struct wf_alg_owner *owner = job->owner;

	if (!q->foreign)
		wf_alg_stats_job(q->stats, job, job->result);
	job->done = 1;
	if (owner)
		owner->done(owner);
}

/* The device releases all jobs, then their owners are notified. */
static void end_locked(struct wf_alg_queue *q)
{
	while (q->sleeping && !q->foreign)
		pthread_cond_wait(&q->awake, &q->lock);
	if (q->chan && !q->foreign)
		q->driver->close_chan(q->chan);
	if (q->chan)
		count(q, WF_ALG_STAT_channels, -(uint64_t)1);
	q->chan = NULL;
	for (unsigned int i = 0; i < q->in_flight; i++) {
		q->flight[i]->result = -ENODEV;
		deliver(q, q->flight[i]);
	}
	q->in_flight = 0;
}

/* Jobs that came and went under one lock never waited for anybody. */
static void count_waiting_locked(struct wf_alg_queue *q)
{
	if (q->counted == q->in_flight)
		return;
	count(q, WF_ALG_STAT_waiting, (uint64_t)q->in_flight - q->counted);
	q->counted = q->in_flight;
}

static void enter(struct wf_alg_queue *q)
{
	pthread_mutex_lock(&q->lock);
}

static void leave(struct wf_alg_queue *q)
{
	count_waiting_locked(q);
	pthread_mutex_unlock(&q->lock);
}

/* The same in a synchronous call. */
static void enter_run(struct wf_alg_queue *q)
{
	if (q->shared)
		pthread_mutex_lock(&q->lock);
}

static void leave_run(struct wf_alg_queue *q)
{
	count_waiting_locked(q);
	if (q->shared)
		pthread_mutex_unlock(&q->lock);
}

void wf_alg_queue_ref(struct wf_alg_queue *q)
{
	atomic_fetch_add(&q->refs, 1);
}

void wf_alg_queue_unref(struct wf_alg_queue *q)
{
	if (atomic_fetch_sub(&q->refs, 1) > 1)
		return;
	wf_base_fork_unwatch(&q->watch);
	wf_alg_registry_put(q->slot);
	pthread_cond_destroy(&q->awake);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void close_queue(struct wf_alg_queue *q)
{
	enter(q);
	end_locked(q);
	leave(q);
	wf_alg_queue_unref(q);
}

static _Atomic(struct wf_alg_queue *) *spare_of(const struct wf_alg_slot *slot,
						unsigned int can)
{
	return &spares[wf_alg_registry_index(slot)][can == WD_COMP_CAN_INFLATE];
}

/* The relaxed load leaves the line shared where there is none. */
static struct wf_alg_queue *take_spare(const struct wf_alg_slot *slot,
				       unsigned int can)
{
	_Atomic(struct wf_alg_queue *) *spare = spare_of(slot, can);

	return atomic_load_explicit(spare, memory_order_relaxed) ?
		       atomic_exchange_explicit(spare, NULL,
						memory_order_acquire) :
		       NULL;
}

struct wf_alg_queue *wf_alg_queue_get(struct wf_alg_slot *slot,
				      unsigned int can, bool *fresh)
{
	struct wf_alg_queue *found = take_spare(slot, can);
	struct wf_list *pos, *tmp;

	*fresh = false;
	if (wf_likely(found))
		return found;
	pthread_once(&once, setup);
	pthread_mutex_lock(&idle_lock);
	wf_list_for_each (pos, tmp, &idle) {
		struct wf_alg_queue *q =
			wf_container_of(pos, struct wf_alg_queue, link);

		if (q->slot != slot || q->can != can)
			continue;
		found = q;
		wf_base_list_del(&q->link);
		kept--;
		break;
	}
	pthread_mutex_unlock(&idle_lock);
	*fresh = !found;
	return found ? found : open_queue(slot, NULL, can);
}

void wf_alg_queue_put(struct wf_alg_queue *q)
{
	bool keep = q->chan && !q->foreign && !q->in_flight;
	struct wf_alg_queue *none = NULL;

	if (wf_likely(keep) &&
	    atomic_compare_exchange_strong_explicit(
		    spare_of(q->slot, q->can), &none, q, memory_order_release,
		    memory_order_relaxed))
		return;
	if (keep) {
		pthread_mutex_lock(&idle_lock);
		keep = kept < KEPT;
		if (keep) {
			wf_base_list_add_head(&idle, &q->link);
			kept++;
		}
		pthread_mutex_unlock(&idle_lock);
	}
	if (!keep)
		close_queue(q);
}

static struct wf_alg_queue *take_idle(const struct wf_alg_slot *slot)
{
	struct wf_alg_queue *found = take_spare(slot, WD_COMP_CAN_DEFLATE);
	struct wf_list *pos, *tmp;

	if (!found)
		found = take_spare(slot, WD_COMP_CAN_INFLATE);
	if (found)
		return found;
	pthread_mutex_lock(&idle_lock);
	wf_list_for_each (pos, tmp, &idle) {
		struct wf_alg_queue *q =
			wf_container_of(pos, struct wf_alg_queue, link);

		if (found || q->slot != slot)
			continue;
		found = q;
		wf_base_list_del(&q->link);
		kept--;
	}
	pthread_mutex_unlock(&idle_lock);
	return found;
}

void wf_alg_queue_close_idle(const struct wf_alg_slot *slot)
{
	struct wf_alg_queue *q;

	while ((q = take_idle(slot)))
		close_queue(q);
}

static void released(void *user)
{
	close_queue(user);
}

/* For both directions if the driver can, as the channel is all that the
 * application has; otherwise for the one of the first job. */
static struct wf_alg_queue *open_on(struct wf_alg_slot *slot,
				    struct wd_chan *ch, unsigned int can)
{
	unsigned int all = wf_alg_registry_driver(slot)->can & DIRECTIONS;
	struct wf_alg_queue *q = open_queue(slot, ch, all);

	return q || all == can ? q : open_queue(slot, ch, can);
}

/* Another driver's, or of the other direction: not for this job. */
static struct wf_alg_queue *
if_fit(struct wf_alg_queue *q, const struct wf_alg_slot *slot, unsigned int can)
{
	return q && q->slot == slot && (q->can & can) == can ? q : NULL;
}

struct wf_alg_queue *wf_alg_queue_of(struct wf_alg_slot *slot,
				     struct wd_chan *ch, unsigned int can)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);
	struct wf_alg_queue *q;

	if (!core)
		return NULL;
	q = atomic_load_explicit(&core->user, memory_order_acquire);
	if (wf_likely(q))
		return if_fit(q, slot, can);
	pthread_once(&once, setup);
	pthread_mutex_lock(&attach_lock);
	q = atomic_load(&core->user);
	if (!q) {
		q = open_on(slot, ch, can);
		if (q) {
			q->shared = true;
			core->user_close = released;
			atomic_store(&core->user, q);
		}
	}
	pthread_mutex_unlock(&attach_lock);
	return if_fit(q, slot, can);
}

/* -- what drivers say ------------------------------------------------------ */

/* The driver is no longer trusted: everything it has is taken back. */
static int distrust_locked(struct wf_alg_queue *q, const char *why)
{
	wf_alg_registry_distrust(q->slot, why);
	end_locked(q);
	return -ENODEV;
}

static const char *lie_of(const struct wd_comp_job *job)
{
	/* As it was submitted: an earlier job may have been at this address. */
	if (job->result == -EINPROGRESS || job->result > 0)
		return "returned a job without a result";
	if (job->consumed > job->src_len || job->produced > job->dst_len ||
	    (!job->result &&
	     (job->inflate ? !job->ended : job->consumed != job->src_len)))
		return "returned lengths that cannot be";
	return NULL;
}

static void finish_locked(struct wf_alg_queue *q, struct wd_comp_job *job)
{
	const char *lie = lie_of(job);

	if (lie) {
		wf_alg_registry_distrust(q->slot, lie);
		job->result = -EIO;
	}
	if (job->result == -EFAULT && wf_alg_touch_job(job))
		job->result = -ENOTSUP; /* only the device cannot reach it */
	deliver(q, job);
}

static uint64_t timeout_of(const struct wf_alg_queue *q)
{
	const struct wd_comp_limits *l = &q->driver->limits;

	return (l->timeout_ms ? l->timeout_ms : TIMEOUT_MS) * WF_NS_PER_MS;
}

static void begin(struct patience *p)
{
	*p = (struct patience){ .looked = wf_base_clock_ns() };
}

/* Whether it has taken longer than the driver may take. */
static bool is_late(const struct wf_alg_queue *q, struct patience *p)
{
	uint64_t now = wf_base_clock_ns(), timeout = timeout_of(q);
	uint64_t passed = p->looked ? now - p->looked : 0;

	p->looked = now;
	p->spent += passed < timeout / LOOKS ? passed : timeout / LOOKS;
	return p->spent > timeout;
}

/* False: it has no such job. */
static bool take_back(struct wf_alg_queue *q, const struct wd_comp_job *job)
{
	unsigned int i = 0;

	while (i < q->in_flight && q->flight[i] != job)
		i++;
	if (i == q->in_flight)
		return false;
	/* The jobs behind it had to wait for it. */
	if (!i)
		q->oldest = (struct patience){ 0 };
	if (i < --q->in_flight)
		memmove(&q->flight[i], &q->flight[i + 1],
			(q->in_flight - i) * sizeof(q->flight[0]));
	return true;
}

static int poll_locked(struct wf_alg_queue *q)
{
	struct wd_comp_job *done[BATCH];
	int n;

	if (q->foreign || !q->chan) {
		end_locked(q);
		return -ENODEV;
	}
	if (q->sleeping)
		return 0; /* that thread polls next */
	n = q->driver->poll(q->chan, done, BATCH);
	if (n > BATCH)
		return distrust_locked(q, "returned more jobs than there is "
					  "room for");
	if (n < 0) {
		end_locked(q);
		return -ENODEV;
	}
	for (int i = 0; i < n; i++) {
		if (!take_back(q, done[i]))
			return distrust_locked(q, "returned a job that it "
						  "does not have");
		finish_locked(q, done[i]);
	}
	if (!n && q->in_flight && is_late(q, &q->oldest))
		return distrust_locked(q, "did not finish a job in time");
	return n;
}

static int submit_locked(struct wf_alg_queue *q,
			 struct wd_comp_job *const *jobs, unsigned int n)
{
	int taken;

	if (q->foreign || !q->chan)
		return -ENODEV;
	if (n > q->depth - q->in_flight)
		n = q->depth - q->in_flight;
	if (!n)
		return 0;
	taken = q->driver->submit(q->chan, jobs, n);
	if (taken < 0) {
		end_locked(q);
		return -ENODEV;
	}
	if ((unsigned int)taken > n)
		return distrust_locked(q, "took more jobs than it was given");
	for (int i = 0; i < taken; i++) {
		if (jobs[i]->done) {
			finish_locked(q, jobs[i]);
			continue;
		}
		if (!q->in_flight)
			q->oldest = (struct patience){ 0 };
		q->flight[q->in_flight++] = jobs[i];
	}
	return taken;
}

/* -- for the layers above -------------------------------------------------- */

static void prepare(struct wd_comp_job *job)
{
	job->done = 0;
	job->result = -EINPROGRESS;
	job->copied = 0;
	job->checked = 0;
}

int wf_alg_queue_submit(struct wf_alg_queue *q, struct wd_comp_job *const *jobs,
			unsigned int n)
{
	int ret;

	for (unsigned int i = 0; i < n; i++)
		prepare(jobs[i]);
	enter(q);
	ret = submit_locked(q, jobs, n);
	leave(q);
	return ret;
}

void wf_alg_queue_was_full(struct wf_alg_queue *q)
{
	count(q, WF_ALG_STAT_busy, 1);
}

int wf_alg_queue_poll(struct wf_alg_queue *q)
{
	int ret;

	enter(q);
	ret = poll_locked(q);
	leave(q);
	return ret;
}

/* Without the lock, so that others can submit. */
void wf_alg_queue_wait(struct wf_alg_queue *q, int timeout_ms)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	int look_ms = (int)(timeout_of(q) / WF_NS_PER_MS / LOOKS);
	bool sleeps;

	pthread_mutex_lock(&q->lock);
	sleeps = q->driver->wait && q->chan && !q->foreign && q->in_flight &&
		 !q->sleeping;
	if (sleeps)
		q->sleeping = true;
	pthread_mutex_unlock(&q->lock);
	if (!sleeps) {
		nanosleep(&nap, NULL);
		return;
	}
	/* Time that is spent asleep here counts for time-outs. */
	if (timeout_ms > look_ms)
		timeout_ms = look_ms ? look_ms : 1;
	q->driver->wait(q->chan, timeout_ms);
	pthread_mutex_lock(&q->lock);
	q->sleeping = false;
	pthread_cond_broadcast(&q->awake);
	pthread_mutex_unlock(&q->lock);
}

/* ->done is read under the lock: another thread may have polled our job, and has
 * let go of it then. */
static bool is_done(struct wf_alg_queue *q, const struct wd_comp_job *job)
{
	bool done;

	enter_run(q);
	if (!job->done)
		poll_locked(q);
	done = job->done;
	leave_run(q);
	return done;
}

/* As wf_alg_queue_submit(), and looks whether the job is back already. */
static int submit_one(struct wf_alg_queue *q, struct wd_comp_job *job,
		      bool *done)
{
	int taken;

	prepare(job);
	enter_run(q);
	taken = submit_locked(q, &job, 1);
	if (taken == 1 && !job->done)
		poll_locked(q);
	*done = job->done;
	leave_run(q);
	return taken;
}

/* It took no job: -ENODEV if it has nothing to do either, for longer than a job
 * may take. */
static int wait_for_room(struct wf_alg_queue *q, struct patience *empty)
{
	int ret;

	enter_run(q);
	ret = poll_locked(q);
	if (ret || q->in_flight || !empty->looked)
		begin(empty);
	else if (is_late(q, empty))
		ret = distrust_locked(q, "takes no job, though it has none");
	leave_run(q);
	if (!ret)
		wf_alg_queue_wait(q, WAIT_SHARED);
	return ret < 0 ? ret : 0;
}

int wf_alg_queue_run(struct wf_alg_queue *q, struct wd_comp_job *job)
{
	struct patience empty = { 0 };
	uint64_t until = 0;
	bool done;
	int taken;

	job->owner = NULL;
	while (!(taken = submit_one(q, job, &done))) {
		if (!empty.looked)
			wf_alg_queue_was_full(q);
		taken = wait_for_room(q, &empty);
		if (taken)
			break;
	}
	if (taken < 0)
		return taken;
	for (; !done; done = is_done(q, job)) {
		uint64_t now = wf_base_clock_ns();

		until = until ? until : now + SPIN;
		if (now > until)
			wf_alg_queue_wait(q,
					  q->shared ? WAIT_SHARED : WAIT_ALONE);
		else
			wf_base_cpu_relax();
	}
	return job->result;
}
