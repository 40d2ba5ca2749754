/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: CUDA's context, the batches, and who may do what with them. Its
 * lock is not held while bytes are copied by this processor. It must not
 * disturb the application's own use of CUDA: its context is the primary one,
 * which it makes current for its own calls only.
 */
#include "cuda/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/batch.h"

#define BATCHES 4
#define NAP_NS 20000
/* A batch that is not full is launched when nothing was added for QUIET, or
 * when its first job has waited so long while the GPU works on others, or is
 * idle. A kernel takes milliseconds for a piece of 64 KiB, whether it has
 * one or a thousand: it pays to wait for more. */
#define QUIET_NS 100000
#define BUSY_NS 10000000
#define IDLE_NS 2000000
#define MEMORY_MB 96u
#define MEMORY_LEAST_MB 4u
#define MEMORY_MOST_MB 1024u
#define TAKE 16
#define RUN 16 /* jobs that are added at once */

/* A channel: its jobs, in the order in which they came and go. Under the lock. */
struct channel {
	struct wf_batch_job *first, *last;
	bool reached; /* only memory that the GPU reaches, and no copies */
};

static struct {
	pthread_mutex_t lock;
	bool started;
	atomic_int failed; /* -errno: for good */
	struct wf_cu cu;
	struct wf_cuda_program program;
	void *context;
	int device;
	size_t memory;
	struct wf_batch *batches[BATCHES]; /* in the order of their launch */
	struct wf_batch *open;
} engine = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void enter(void)
{
	engine.cu.cuCtxPushCurrent_v2(engine.context);
}

static void leave(void)
{
	void *old;

	engine.cu.cuCtxPopCurrent_v2(&old);
}

/* CUDA has failed: nothing of it can be relied upon any more. */
static void give_up(const char *what, int err)
{
	const char *text = NULL;

	if (engine.failed)
		return;
	engine.failed = -EIO;
	engine.cu.cuGetErrorString(err, &text);
	wf_cuda_library_say("%s failed (%s); it is not used any more", what,
			    text ? text : "unknown error");
}

/* -- fork ------------------------------------------------------------------ */

static void before_fork(void)
{
	pthread_mutex_lock(&engine.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&engine.lock);
}

/* CUDA does not survive it. */
static void in_child(void)
{
	pthread_mutex_init(&engine.lock, NULL);
	engine.failed = -ENODEV;
}

/* -- opening --------------------------------------------------------------- */

static int choose_device(int *major, int *minor, const char **why)
{
	const char *asked = secure_getenv("WD_CUDA_DEVICE");
	const struct wf_cu *cu = &engine.cu;
	int count = 0, number = asked ? atoi(asked) : 0;

	*why = "CUDA does not start, or there is no GPU";
	if (cu->cuInit(0) || cu->cuDeviceGetCount(&count) || !count)
		return -ENODEV;
	*why = "WD_CUDA_DEVICE names a GPU that is not there";
	if (number < 0 || number >= count ||
	    cu->cuDeviceGet(&engine.device, number))
		return -ENODEV;
	*why = "the GPU is too old: compute capability 7.0 is needed";
	if (cu->cuDeviceGetAttribute(major, WF_CU_MAJOR, engine.device) ||
	    cu->cuDeviceGetAttribute(minor, WF_CU_MINOR, engine.device) ||
	    *major < 7)
		return -ENODEV;
	*why = "the GPU has no context for this process";
	return cu->cuDevicePrimaryCtxRetain(&engine.context, engine.device) ?
		       -ENODEV :
		       0;
}

/* How much memory a batch gets, on each side. */
static size_t memory_wanted(void)
{
	const char *asked = secure_getenv("WD_CUDA_MEMORY");
	unsigned long mb = asked ? strtoul(asked, NULL, 0) : MEMORY_MB;

	if (mb < MEMORY_LEAST_MB || mb > MEMORY_MOST_MB) {
		wf_cuda_library_say("WD_CUDA_MEMORY=%s is not from %u to %u "
				    "(MiB); it is %u",
				    asked, MEMORY_LEAST_MB, MEMORY_MOST_MB,
				    MEMORY_MB);
		mb = MEMORY_MB;
	}
	return mb << 20;
}

static int start_locked(void)
{
	const char *why = NULL;
	int major, minor;
	int ret = wf_cuda_library_load(&engine.cu, &why);

	engine.memory = memory_wanted();

	if (!ret)
		ret = choose_device(&major, &minor, &why);
	if (ret)
		goto out;
	enter();
	ret = wf_cuda_program_load(&engine.program, &engine.cu, major, minor,
				   &why);
	leave();
out:
	if (!engine.started)
		pthread_atfork(before_fork, in_parent, in_child);
	engine.started = true;
	engine.failed = ret;
	if (ret)
		wf_cuda_library_say("%s", why);
	return ret;
}

int wf_cuda_engine_start(void)
{
	int ret;

	pthread_mutex_lock(&engine.lock);
	ret = engine.started ? engine.failed : start_locked();
	pthread_mutex_unlock(&engine.lock);
	return ret ? -ENODEV : 0;
}

int wf_cuda_engine_open(void **chan, struct wd_chan *ch, unsigned int can)
{
	struct channel *c;

	(void)can;
	if (wf_cuda_engine_start())
		return -ENODEV;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->reached = ch;
	*chan = c;
	return 0;
}

/* -- memory of channels ---------------------------------------------------- */

int wf_cuda_engine_reserve(size_t size, void **va, uint64_t *dma)
{
	wf_cu_ptr at = 0;
	int err;

	*va = NULL;
	enter();
	err = engine.cu.cuMemHostAlloc(va, size,
				       WF_CU_HOST_PORTABLE | WF_CU_HOST_MAPPED);
	if (!err) {
		err = engine.cu.cuMemHostGetDevicePointer_v2(&at, *va, 0);
		if (err || !at)
			engine.cu.cuMemFreeHost(*va);
	}
	leave();
	if (err || !at)
		return engine.failed ? -ENODEV : -ENOMEM;
	memset(*va, 0, size);
	*dma = at;
	return 0;
}

void wf_cuda_engine_release(void *va, size_t size)
{
	(void)size;
	enter();
	engine.cu.cuMemFreeHost(va);
	leave();
}

/* -- batches --------------------------------------------------------------- */

static unsigned int count_in_flight(void)
{
	unsigned int n = 0;

	for (int i = 0; i < BATCHES; i++)
		n += engine.batches[i] &&
		     (engine.batches[i]->state == WF_BATCH_RUNNING ||
		      engine.batches[i]->state == WF_BATCH_COPYING);
	return n;
}

static void launch_locked(struct wf_batch *b)
{
	int err;

	if (b == engine.open)
		engine.open = NULL;
	err = wf_cuda_batch_launch(b, &engine.cu, &engine.program);
	if (err)
		give_up("a launch", err);
}

static void free_if_empty_locked(struct wf_batch *b)
{
	if (b->state == WF_BATCH_DONE && !b->left)
		b->state = WF_BATCH_FREE;
}

/* Jobs that nobody wants go first. */
static void done_locked(struct wf_batch *b)
{
	b->state = WF_BATCH_DONE;
	for (unsigned int i = 0; i < b->jobs_count; i++) {
		if (!b->jobs[i].job && !b->jobs[i].taken) {
			b->jobs[i].taken = true;
			b->left--;
		}
	}
	free_if_empty_locked(b);
}

static void move_on_locked(struct wf_batch *b)
{
	int err;

	if (b->state != WF_BATCH_RUNNING && b->state != WF_BATCH_COPYING)
		return;
	err = engine.cu.cuEventQuery(b->event);
	if (err == WF_CU_NOT_READY)
		return;
	if (!err && b->state == WF_BATCH_RUNNING)
		err = wf_cuda_batch_copy(b, &engine.cu);
	else if (!err)
		done_locked(b);
	if (err)
		give_up("a kernel", err);
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_due_locked(const struct wf_batch *b)
{
	uint64_t now;

	if (b->state != WF_BATCH_OPEN || b->filling || !b->jobs_count)
		return false;
	if (b->closed)
		return true;
	now = clock_ns();
	return now - b->added > QUIET_NS ||
	       now - b->begun > (count_in_flight() ? BUSY_NS : IDLE_NS);
}

/* The context is current. */
static void pump_locked(void)
{
	for (int i = 0; i < BATCHES && !engine.failed; i++) {
		struct wf_batch *b = engine.batches[i];

		if (!b)
			continue;
		move_on_locked(b);
		if (is_due_locked(b))
			launch_locked(b);
	}
}

static void pump(void)
{
	pthread_mutex_lock(&engine.lock);
	enter();
	pump_locked();
	leave();
	pthread_mutex_unlock(&engine.lock);
}

static struct wf_batch *open_batch_locked(bool inflate)
{
	struct wf_batch *b = NULL;
	int i = 0;

	while (i < BATCHES && engine.batches[i] &&
	       engine.batches[i]->state != WF_BATCH_FREE)
		i++;
	if (i == BATCHES)
		return NULL;
	b = engine.batches[i];
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b || wf_cuda_batch_make(b, &engine.cu, engine.memory)) {
			free(b);
			return NULL;
		}
		engine.batches[i] = b;
	}
	b->state = WF_BATCH_OPEN;
	b->inflate = inflate;
	b->closed = false;
	b->filling = 0;
	b->in = 0;
	b->out = 0;
	b->jobs_count = 0;
	b->pieces_count = 0;
	b->left = 0;
	b->begun = 0;
	engine.open = b;
	return b;
}

/* A batch with a place for it, or NULL. The context is current. */
static struct wf_batch *room_for_locked(const struct wf_batch_job *j)
{
	if (engine.open && wf_cuda_batch_fits(engine.open, j))
		return engine.open;
	if (engine.open) {
		engine.open->closed = true;
		engine.open = NULL;
	}
	pump_locked();
	return engine.failed ? NULL : open_batch_locked(j->job->inflate);
}

/* -- jobs ------------------------------------------------------------------ */

static enum wf_batch_place place_of(const void *at, size_t len)
{
	unsigned int type[2] = { 0, 0 };
	int device = -1;
	wf_cu_ptr first = (uintptr_t)at, last = first + (len ? len - 1 : 0);

	/* Both ends: a part of it may be registered only. */
	if (engine.cu.cuPointerGetAttribute(&type[0], WF_CU_POINTER_TYPE,
					    first) ||
	    engine.cu.cuPointerGetAttribute(&type[1], WF_CU_POINTER_TYPE,
					    last) ||
	    type[0] != type[1])
		return WF_PLACE_PAGES;
	if (type[0] == WF_CU_TYPE_HOST)
		return WF_PLACE_PINNED;
	if (type[0] == WF_CU_TYPE_DEVICE &&
	    !engine.cu.cuPointerGetAttribute(&device, WF_CU_POINTER_DEVICE,
					     first) &&
	    device == engine.device)
		return WF_PLACE_DEVICE;
	return WF_PLACE_PAGES;
}

/* False: the GPU will never do it, and it is over. */
static bool plan_one(struct channel *c, struct wd_comp_job *job,
		     struct wf_batch_job *plan)
{
	*plan = (struct wf_batch_job){ .job = job, .chan = c };
	plan->src = place_of(job->src, job->src_len);
	plan->dst = place_of(job->dst, job->dst_len);
	wf_cuda_batch_plan(plan, job);
	if (wf_cuda_batch_could(plan, engine.memory) &&
	    (job->inflate || !job->dict_len) &&
	    (!c->reached ||
	     (plan->src != WF_PLACE_PAGES && plan->dst != WF_PLACE_PAGES)))
		return true;
	job->result = -ENOTSUP;
	job->done = 1;
	return false;
}

static void append_locked(struct channel *c, struct wf_batch_job *j)
{
	if (c->last)
		c->last->next = j;
	else
		c->first = j;
	c->last = j;
}

/* How many of them are in one batch now. */
static unsigned int
submit_some(struct channel *c, const struct wf_batch_job *plans, unsigned int n)
{
	struct wf_batch_job *added[RUN];
	struct wf_batch *b = NULL;
	unsigned int count = 0;

	pthread_mutex_lock(&engine.lock);
	enter();
	while (count < n) {
		struct wf_batch *next = room_for_locked(&plans[count]);

		if (!next || (b && b != next))
			break;
		/* Before anybody, this loop too, can launch it. */
		if (!b)
			next->filling++;
		b = next;
		added[count] = wf_cuda_batch_add(b, &plans[count]);
		append_locked(c, added[count++]);
	}
	if (b) {
		b->added = clock_ns();
		if (!b->begun)
			b->begun = b->added;
	}
	leave();
	pthread_mutex_unlock(&engine.lock);
	for (unsigned int i = 0; i < count; i++)
		wf_cuda_batch_fill(b, added[i]);
	if (b)
		b->filling--;
	return count;
}

int wf_cuda_engine_submit(void *chan, struct wd_comp_job *const *jobs,
			  unsigned int n)
{
	unsigned int taken = 0;

	while (taken < n && !engine.failed) {
		struct wf_batch_job plans[RUN];
		unsigned int count = 0, added;
		bool over = false;

		enter();
		while (count < RUN && taken + count < n && !over) {
			over = !plan_one(chan, jobs[taken + count],
					 &plans[count]);
			count += !over;
		}
		leave();
		added = submit_some(chan, plans, count);
		/* Items behind those that have no place are not taken. */
		if (over && added < count)
			jobs[taken + count]->done = 0;
		taken += added + (over && added == count);
		if (count && !added)
			break;
	}
	return engine.failed && !taken ? -EIO : (int)taken;
}

/* Jobs of the channel that are done, at most @most; they are taken. */
static unsigned int take_locked(struct channel *c, struct wf_batch_job **jobs,
				unsigned int most)
{
	unsigned int n = 0;

	while (n < most && c->first &&
	       c->first->batch->state == WF_BATCH_DONE) {
		jobs[n] = c->first;
		jobs[n++]->taken = true;
		c->first = c->first->next;
	}
	if (!c->first)
		c->last = NULL;
	return n;
}

int wf_cuda_engine_poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct channel *c = chan;
	struct wf_batch_job *jobs[TAKE];
	unsigned int count;

	pthread_mutex_lock(&engine.lock);
	if (c->first) {
		enter();
		pump_locked();
		leave();
	}
	count = take_locked(c, jobs, n < TAKE ? n : TAKE);
	pthread_mutex_unlock(&engine.lock);
	if (!count)
		return engine.failed ? -EIO : 0;
	for (unsigned int i = 0; i < count; i++) {
		done[i] = jobs[i]->job;
		wf_cuda_batch_finish(jobs[i]->batch, jobs[i]);
	}
	pthread_mutex_lock(&engine.lock);
	for (unsigned int i = 0; i < count; i++) {
		jobs[i]->batch->left--;
		free_if_empty_locked(jobs[i]->batch);
	}
	pthread_mutex_unlock(&engine.lock);
	return (int)count;
}

/* If nobody else does it. True: there is something to take. */
static bool look(const struct channel *c)
{
	bool any;

	if (pthread_mutex_trylock(&engine.lock))
		return false;
	enter();
	pump_locked();
	leave();
	/* Without a job, there may be room for one: it is not slept for. */
	any = engine.failed || !c->first ||
	      c->first->batch->state == WF_BATCH_DONE;
	pthread_mutex_unlock(&engine.lock);
	return any;
}

int wf_cuda_engine_wait(void *chan, int timeout_ms)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += timeout_ms / 1000;
	end.tv_nsec += timeout_ms % 1000 * 1000000L;
	do {
		nanosleep(&nap, NULL);
		if (look(chan))
			return 0;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec -
			 end.tv_nsec <
		 0);
	return 0;
}

/* The GPU itself reads or writes memory of a job in it. */
static bool touches_locked(const struct wf_batch *b, const struct channel *c)
{
	for (unsigned int i = 0; i < b->jobs_count; i++) {
		const struct wf_batch_job *j = &b->jobs[i];

		if (j->chan == c && j->job &&
		    (j->src != WF_PLACE_PAGES || j->dst != WF_PLACE_PAGES))
			return true;
	}
	return false;
}

/* Lets go of a channel's jobs in a batch. False: the GPU still has some. */
static bool drop_locked(struct wf_batch *b, const struct channel *c)
{
	if ((b->state == WF_BATCH_RUNNING || b->state == WF_BATCH_COPYING) &&
	    touches_locked(b, c) && !engine.failed)
		return false;
	for (unsigned int i = 0; b->state != WF_BATCH_FREE && i < b->jobs_count;
	     i++) {
		struct wf_batch_job *j = &b->jobs[i];

		if (j->chan != c || j->taken)
			continue;
		j->chan = NULL;
		j->job = NULL;
		if (b->state == WF_BATCH_DONE) {
			j->taken = true;
			b->left--;
		}
	}
	free_if_empty_locked(b);
	return true;
}

void wf_cuda_engine_close(void *chan)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	struct channel *c = chan;

	for (int i = 0; i < BATCHES && c->first; i++) {
		bool gone = false;

		while (!gone) {
			pthread_mutex_lock(&engine.lock);
			gone = !engine.batches[i] ||
			       drop_locked(engine.batches[i], c);
			pthread_mutex_unlock(&engine.lock);
			if (!gone) {
				pump();
				nanosleep(&nap, NULL);
			}
		}
	}
	free(c);
}
