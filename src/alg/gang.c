/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two locks: `in` is held while a piece is taken, which may mean to wait for
 * input; `out` guards the rest and is never held during work or input. A thread
 * that holds `in` may take `out`, not the other way round.
 */
#include "alg/gang.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "alg/crew.h"

#define LARGE_PAGE (2u << 20)

enum state {
	EMPTY,
	TAKEN,
	DONE,	/* waits for its turn */
	PLACED, /* waits for a thread that puts it */
};

struct run {
	const struct wf_gang *gang;
	pthread_mutex_t in;
	uint64_t next; /* piece to take */
	bool none;
	pthread_mutex_t out;
	pthread_cond_t moved; /* a slot is empty, or something failed */
	uint64_t first;	      /* piece whose turn it is */
	enum state *states;   /* of slots */
	bool turning;	      /* somebody is at the first */
	int failed;
};

static bool fail(struct run *r, int ret)
{
	if (!ret)
		return false;
	pthread_mutex_lock(&r->out);
	if (!r->failed)
		r->failed = ret;
	pthread_cond_broadcast(&r->moved);
	pthread_mutex_unlock(&r->out);
	return true;
}

static void set_empty_locked(struct run *r, unsigned int slot)
{
	r->states[slot] = EMPTY;
	pthread_cond_broadcast(&r->moved);
}

/* Writes pieces that have their place already. */
static void put_placed(struct run *r)
{
	pthread_mutex_lock(&r->out);
	for (unsigned int i = 0; i < r->gang->slots && !r->failed; i++) {
		int ret;

		if (r->states[i] != PLACED)
			continue;
		r->states[i] = TAKEN;
		pthread_mutex_unlock(&r->out);
		ret = r->gang->put(r->gang->arg, i);
		fail(r, ret);
		pthread_mutex_lock(&r->out);
		set_empty_locked(r, i);
	}
	pthread_mutex_unlock(&r->out);
}

/* Waits until the next piece has a slot; false if the work is over. */
static bool has_room(struct run *r)
{
	bool good;

	pthread_mutex_lock(&r->out);
	while (!r->failed && r->states[r->next % r->gang->slots] != EMPTY)
		pthread_cond_wait(&r->moved, &r->out);
	good = !r->failed;
	if (good)
		r->states[r->next % r->gang->slots] = TAKEN;
	pthread_mutex_unlock(&r->out);
	return good;
}

static bool take(struct run *r, unsigned int *slot)
{
	bool got = false;
	int none = 0;

	pthread_mutex_lock(&r->in);
	if (!r->none && has_room(r)) {
		*slot = (unsigned int)(r->next % r->gang->slots);
		got = !fail(r, r->gang->take(r->gang->arg, *slot, &none)) &&
		      !none;
		r->none = none;
		r->next += got;
	}
	pthread_mutex_unlock(&r->in);
	return got;
}

/* Handles the pieces whose turn it is, unless another thread does that: it will
 * check again before it stops. */
static void turn(struct run *r, unsigned int slot)
{
	const struct wf_gang *gang = r->gang;

	pthread_mutex_lock(&r->out);
	r->states[slot] = DONE;
	while (!r->turning && !r->failed &&
	       r->states[r->first % gang->slots] == DONE) {
		unsigned int now = (unsigned int)(r->first % gang->slots);
		int ret;

		r->turning = true;
		pthread_mutex_unlock(&r->out);
		ret = gang->place ? gang->place(gang->arg, now) :
				    gang->put(gang->arg, now);
		fail(r, ret);
		pthread_mutex_lock(&r->out);
		r->turning = false;
		r->first++;
		if (gang->place)
			r->states[now] = PLACED;
		else
			set_empty_locked(r, now);
	}
	pthread_mutex_unlock(&r->out);
	/* The caller that assigned places makes sure that they are used. */
	if (gang->place)
		put_placed(r);
}

static void member(void *arg)
{
	struct run *r = arg;
	unsigned int slot;

	while (take(r, &slot)) {
		if (!fail(r, r->gang->work(r->gang->arg, slot)))
			turn(r, slot);
	}
}

void *wf_alg_gang_room(size_t size)
{
	size_t rounded = (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1);
	void *room = aligned_alloc(LARGE_PAGE, rounded);

	if (room)
		madvise(room, rounded, MADV_HUGEPAGE);
	return room;
}

int wf_alg_gang_run(const struct wf_gang *gang)
{
	struct run r = { .gang = gang };

	r.states = calloc(gang->slots, sizeof(*r.states));
	if (!r.states)
		return -ENOMEM;
	pthread_mutex_init(&r.in, NULL);
	pthread_mutex_init(&r.out, NULL);
	pthread_cond_init(&r.moved, NULL);
	wf_alg_crew_together(gang->threads, member, &r);
	pthread_cond_destroy(&r.moved);
	pthread_mutex_destroy(&r.out);
	pthread_mutex_destroy(&r.in);
	free(r.states);
	return r.failed;
}
