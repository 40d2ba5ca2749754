/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two locks: `in` is held while a piece is taken, which may mean to wait for
 * input; `out` guards the rest and is never held during work or input. Who
 * holds `in` may take `out`, not the other way round.
 */
#include "tools/gzip/gang.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE (2u << 20)

struct run {
	const struct wf_gzip_gang *gang;
	pthread_mutex_t in;
	uint64_t next; /* piece to take */
	bool none;
	pthread_mutex_t out;
	pthread_cond_t moved; /* `first` did, or something failed */
	uint64_t first;	      /* piece to put */
	bool *done;	      /* of each slot: waits to be put */
	bool putting;	      /* somebody is */
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

/* Waits until the next piece has a slot; false if there is no use. */
static bool has_room_locked(struct run *r)
{
	bool good;

	pthread_mutex_lock(&r->out);
	while (!r->failed && r->next - r->first >= r->gang->slots)
		pthread_cond_wait(&r->moved, &r->out);
	good = !r->failed;
	pthread_mutex_unlock(&r->out);
	return good;
}

static bool take(struct run *r, unsigned int *slot)
{
	bool got = false;
	int none = 0;

	pthread_mutex_lock(&r->in);
	if (!r->none && has_room_locked(r)) {
		*slot = (unsigned int)(r->next % r->gang->slots);
		got = !fail(r, r->gang->take(r->gang->arg, *slot, &none)) &&
		      !none;
		r->none = none;
		r->next += got;
	}
	pthread_mutex_unlock(&r->in);
	return got;
}

/* Puts what can be put, unless another thread is at it: that one will look
 * again before it stops. */
static void put(struct run *r, unsigned int slot)
{
	pthread_mutex_lock(&r->out);
	r->done[slot] = true;
	while (!r->putting && !r->failed &&
	       r->done[r->first % r->gang->slots]) {
		unsigned int turn = (unsigned int)(r->first % r->gang->slots);
		int ret;

		r->putting = true;
		pthread_mutex_unlock(&r->out);
		ret = r->gang->put(r->gang->arg, turn);
		fail(r, ret);
		pthread_mutex_lock(&r->out);
		r->putting = false;
		r->done[turn] = false;
		r->first++;
		pthread_cond_broadcast(&r->moved);
	}
	pthread_mutex_unlock(&r->out);
}

static void *member(void *arg)
{
	struct run *r = arg;
	unsigned int slot;

	while (take(r, &slot)) {
		if (!fail(r, r->gang->work(r->gang->arg, slot)))
			put(r, slot);
	}
	return NULL;
}

/* As many as can be had. Signals are for the first thread, but for those that
 * a thread causes itself (a mapped file that got shorter). */
static unsigned int start(struct run *r, pthread_t *threads)
{
	unsigned int n = 0;
	sigset_t all, old;

	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (n + 1 < r->gang->threads &&
	       !pthread_create(&threads[n], NULL, member, r))
		n++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return n;
}

void *wf_tools_gzip_gang_room(size_t size)
{
	size_t rounded = (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1);
	void *room = aligned_alloc(LARGE_PAGE, rounded);

	if (room)
		madvise(room, rounded, MADV_HUGEPAGE);
	return room;
}

int wf_tools_gzip_gang_run(const struct wf_gzip_gang *gang)
{
	struct run r = { .gang = gang };
	pthread_t *threads = calloc(gang->threads, sizeof(*threads));
	unsigned int n;

	r.done = calloc(gang->slots, sizeof(*r.done));
	if (!threads || !r.done) {
		free(threads);
		free(r.done);
		return -ENOMEM;
	}
	pthread_mutex_init(&r.in, NULL);
	pthread_mutex_init(&r.out, NULL);
	pthread_cond_init(&r.moved, NULL);
	n = start(&r, threads);
	member(&r);
	while (n)
		pthread_join(threads[--n], NULL);
	pthread_cond_destroy(&r.moved);
	pthread_mutex_destroy(&r.out);
	pthread_mutex_destroy(&r.in);
	free(threads);
	free(r.done);
	return r.failed;
}
