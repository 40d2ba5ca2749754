/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of lanes. Its lock is for the list alone: no driver or owner is
 * called while it is held. A user of a lane counts itself into it.
 */
#include "alg/lane.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"

struct wf_alg_lane {
	struct wf_list link;
	struct wf_alg_queue *q;
	struct wf_alg_slot *slot; /* the queue has the reference */
	struct wd_chan *ch;
	unsigned int can;
	unsigned int users; /* under the lock */
	atomic_uint jobs;
	atomic_bool dead;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list lanes = { &lanes, &lanes };
static atomic_uint jobs_total;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The parent's jobs stay with the parent. */
static void in_child(void)
{
	wf_base_list_init(&lanes);
	atomic_store(&jobs_total, 0);
	pthread_mutex_unlock(&lock);
}

static void setup(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* A queue of our own returns to its pool. */
static void free_lane(struct wf_alg_lane *lane)
{
	if (lane->ch)
		wf_alg_queue_unref(lane->q);
	else
		wf_alg_queue_put(lane->q);
	free(lane);
}

static void leave(struct wf_alg_lane *lane)
{
	bool over;

	pthread_mutex_lock(&lock);
	over = !--lane->users && !atomic_load(&lane->jobs);
	if (over)
		wf_base_list_del(&lane->link);
	pthread_mutex_unlock(&lock);
	if (over)
		free_lane(lane);
}

static struct wf_alg_lane *find(const struct wf_alg_slot *slot,
				const struct wd_chan *ch, unsigned int can)
{
	struct wf_alg_lane *found = NULL;
	struct wf_list *pos, *tmp;

	pthread_mutex_lock(&lock);
	wf_list_for_each (pos, tmp, &lanes) {
		struct wf_alg_lane *lane =
			wf_container_of(pos, struct wf_alg_lane, link);

		if (found || lane->slot != slot || lane->ch != ch ||
		    lane->can != can || atomic_load(&lane->dead))
			continue;
		found = lane;
		found->users++;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Two threads may create one each: both are used. */
static struct wf_alg_lane *make(struct wf_alg_slot *slot, struct wd_chan *ch,
				unsigned int can)
{
	struct wf_alg_lane *lane = calloc(1, sizeof(*lane));
	bool fresh;

	if (!lane)
		return NULL;
	lane->q = ch ? wf_alg_queue_of(slot, ch, can) :
		       wf_alg_queue_get(slot, can, &fresh);
	if (!lane->q) {
		free(lane);
		return NULL;
	}
	if (ch)
		wf_alg_queue_ref(lane->q);
	lane->slot = slot;
	lane->ch = ch;
	lane->can = can;
	lane->users = 1;
	pthread_mutex_lock(&lock);
	wf_base_list_add_tail(&lanes, &lane->link);
	pthread_mutex_unlock(&lock);
	return lane;
}

int wf_alg_lane_submit(struct wf_alg_slot *slot, struct wd_comp_job *job,
		       struct wd_chan *ch, struct wf_alg_lane **lane)
{
	unsigned int can =
		job->inflate ? WD_COMP_CAN_INFLATE : WD_COMP_CAN_DEFLATE;
	struct wf_alg_lane *l;
	int taken;

	pthread_once(&once, setup);
	l = find(slot, ch, can);
	if (!l)
		l = make(slot, ch, can);
	if (!l)
		return -ENODEV;
	/* Before: the owner may be notified at once. */
	*lane = l;
	atomic_fetch_add(&l->jobs, 1);
	atomic_fetch_add(&jobs_total, 1);
	taken = wf_alg_queue_submit(l->q, &job, 1);
	if (taken < 0)
		atomic_store(&l->dead, true);
	else if (!taken)
		wf_alg_queue_was_full(l->q);
	if (taken != 1)
		wf_alg_lane_left(l);
	leave(l);
	if (taken == 1)
		return 0;
	return taken < 0 ? -ENODEV : -EAGAIN;
}

void wf_alg_lane_left(struct wf_alg_lane *lane)
{
	atomic_fetch_sub(&lane->jobs, 1);
	atomic_fetch_sub(&jobs_total, 1);
}

bool wf_alg_lane_busy(void)
{
	return atomic_load(&jobs_total);
}

/* The lane after @last, counted into; NULL: no more. */
static struct wf_alg_lane *next_of(const struct wf_alg_lane *last)
{
	struct wf_alg_lane *next = NULL;

	pthread_mutex_lock(&lock);
	if (last ? last->link.next != &lanes : !wf_base_list_empty(&lanes)) {
		next = wf_container_of(last ? last->link.next : lanes.next,
				       struct wf_alg_lane, link);
		next->users++;
	}
	pthread_mutex_unlock(&lock);
	return next;
}

int wf_alg_lane_poll(void)
{
	struct wf_alg_lane *lane = next_of(NULL), *next;
	int count = 0;

	for (; lane; lane = next) {
		int n = atomic_load(&lane->jobs) ? wf_alg_queue_poll(lane->q) :
						   0;

		if (n < 0)
			atomic_store(&lane->dead, true);
		count += n != 0;
		next = next_of(lane);
		leave(lane);
	}
	return count;
}

void wf_alg_lane_wait(int timeout_ms)
{
	struct wf_alg_lane *lane = next_of(NULL), *next;

	while (lane && !atomic_load(&lane->jobs)) {
		next = next_of(lane);
		leave(lane);
		lane = next;
	}
	if (!lane)
		return;
	wf_alg_queue_wait(lane->q, timeout_ms);
	leave(lane);
}
