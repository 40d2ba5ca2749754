/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No ring is forgotten: every short sequence of what can happen to a receiver
 * with more rings than it watches. Messages come to watched rings and to
 * others, alone, in bursts and late (published by a sender that loaded
 * bell_wanted before it changed), while the completion queue fills up, memory
 * runs out, time passes, and the endpoint sleeps. After each event the
 * invariant of watch.h holds; after each sequence every message arrives by
 * polling and ticks alone.
 *
 * Bugs: a bell was cleared for a ring that could not be read, because the queue
 * was full or memory was short; a ring that stopped being watched was looked at
 * again at once instead of later.
 */
#include "shm/watch.h"

#include <sys/timerfd.h>

#include "base/clock.h"
#include "shm/crowd_test.h"
#include "shm/put.h"

#define RINGS 12
#define SLOTS_LOG2 6 /* a burst is longer than the budget of a poll */
#define BURST 40
#define LENGTH 4

/* Between two ticks; for so long at most a store stands in its buffer. */
#define STEP (60 * WF_NS_PER_US)
#define BUFFERED (100 * WF_NS_PER_US)

struct world {
	struct crowd *c;
	struct wf_shm_watch *watch;
	/* Parts that rings play in a sequence. */
	int hot;   /* watched */
	int quiet; /* watched, the first to give way */
	int alone; /* not watched, gets single messages ... */
	int burst; /* ... and bursts */
	uint64_t now;
	uint64_t late_until; /* a message for `quiet` may still arrive late */
	int sent;
	int taken;
	bool full;
	bool idles; /* `quiet` has been so for long */
};

static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* The linker has weft's calls come here (src/meson.build). */
void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static void send_some(struct world *w, int ring, int count)
{
	uint64_t value = 0;

	for (int i = 0; i < count; i++) {
		if (!wf_shm_put(w->c->outs[ring], WF_SHM_SLOT_TAGGED, 1, 0,
				&value, sizeof(value)))
			return; /* the ring is full */
		w->sent++;
		/* The endpoint, if it slept, was woken. */
		if (w->c->j->to.host->asleep)
			assert_int_equal(atomic_load(&w->watch->board->asleep),
					 0);
	}
}

/* The store of a message that its sender made before it loaded bell_wanted
 * becomes visible only now. */
static void arrive_late(struct world *w)
{
	const _Atomic uint32_t never = 0;
	struct wf_shm_out *out = w->c->outs[w->quiet];
	const _Atomic uint32_t *wanted = out->bell_wanted;

	if (w->now > w->late_until)
		return;
	out->bell_wanted = &never;
	send_some(w, w->quiet, 1);
	out->bell_wanted = wanted;
}

static void fall_asleep(struct world *w)
{
	if (!wf_core_sleep(&w->c->j->to_core))
		return;
	/* Nothing that could be done is left, and nothing needs a second
	 * look. */
	assert_true(!wf_shm_watch_pending(w->watch) ||
		    !wf_shm_watch_has_room(w->watch));
	assert_true(wf_base_list_empty(&w->watch->again));
}

/* Such a message is possible while its sender may find that the ring is
 * watched, and for a short time after; not after the barrier of a sleep, which
 * is also run when the endpoint stays awake. */
static void follow_quiet(struct world *w, char event)
{
	if (w->c->j->to.host->asleep ||
	    (event == 's' && !w->c->ins[w->quiet]->watched))
		w->late_until = 0;
	else if (w->c->ins[w->quiet]->watched)
		w->late_until = UINT64_MAX;
	else if (w->late_until == UINT64_MAX)
		w->late_until = w->now + BUFFERED;
}

static void read_queue(struct world *w)
{
	w->taken += crowd_unblock(w->c);
	w->full = false;
}

static const char events[] = "hab" /* messages */
			     "l"   /* one that arrives late */
			     "pt"  /* poll, tick */
			     "sw"  /* sleep, wake */
			     "fr"  /* the queue is full, is read */
			     "m";  /* memory runs out, is there again */

static void happen(struct world *w, char event)
{
	struct wf_shm_ep *ep = &w->c->j->to;

	switch (event) {
	case 'h':
		send_some(w, w->hot, 1);
		break;
	case 'a':
		send_some(w, w->alone, 1);
		break;
	case 'b':
		send_some(w, w->burst, BURST);
		break;
	case 'l':
		arrive_late(w);
		break;
	case 'p':
		if (ep->host->asleep)
			wf_core_wake(joined_core(ep)); /* as progress does */
		wf_shm_watch_poll(w->watch);
		break;
	case 't':
		w->now += STEP;
		wf_shm_watch_tick(w->watch, w->now);
		break;
	case 's':
		fall_asleep(w);
		break;
	case 'w':
		if (ep->host->asleep)
			wf_core_wake(joined_core(ep));
		break;
	case 'f':
		if (!w->full)
			crowd_block(w->c);
		w->full = true;
		break;
	case 'r':
		read_queue(w);
		break;
	default:
		no_memory = !no_memory;
		break;
	}
	follow_quiet(w, event);
}

/* The parts of a new sequence, as the last one left the rings. */
static void give_parts(struct world *w)
{
	int *watched[] = { &w->hot, &w->quiet },
	    *others[] = { &w->alone, &w->burst };
	int n_watched = 0, n_others = 0;

	/* Those that were idle talk. */
	for (int i = 0; i < RINGS && w->watch->watched < 8; i++) {
		if (w->c->ins[i]->watched)
			continue;
		send_some(w, i, 1);
		happen(w, 'p');
	}
	for (int i = 0; i < RINGS; i++) {
		struct wf_shm_in *in = w->c->ins[i];

		in->seen = w->watch->turn;
		if (in->watched && n_watched < 2)
			*watched[n_watched++] = i;
		else if (!in->watched && n_others < 2)
			*others[n_others++] = i;
	}
	assert_int_equal(n_watched + n_others, 4);
	w->c->j->in->seen = w->watch->turn;
	/* Gives way to another, or by itself. */
	w->c->ins[w->quiet]->seen -= w->idles ? 5000 : 1000;
	w->late_until = UINT64_MAX;
}

/* Everything arrives without further messages. */
static void finish(struct world *w, const char *sequence)
{
	struct joined *j = w->c->j;

	no_memory = false;
	read_queue(w);
	for (int i = 0; i < 8; i++) {
		happen(w, 'p');
		w->now += 5 * STEP;
		happen(w, 't');
		assert_true(wf_shm_watch_check(w->watch));
	}
	if (w->taken + (int)j->rxq.tagged.unexpected != w->sent)
		fail_msg("%s: %d messages, %d arrived", sequence, w->sent,
			 w->taken + (int)j->rxq.tagged.unexpected);
	while (j->rxq.tagged.unexpected) {
		const struct joined_buf b = {
			.len = sizeof(w->c->received),
			.count = 1,
			.iov[0] = { &w->c->received, sizeof(w->c->received) },
		};

		joined_post(j, &b, 1);
	}
	read_queue(w);
	assert_int_equal(w->taken, w->sent);
}

static void run(struct world *w, const char *sequence)
{
	w->sent = 0;
	w->taken = 0;
	give_parts(w);
	for (const char *event = sequence; *event; event++) {
		happen(w, *event);
		if (!wf_shm_watch_check(w->watch))
			fail_msg("%s: a ring was forgotten after '%c'",
				 sequence, *event);
	}
	finish(w, sequence);
}

static void test_every_order(void **state)
{
	char sequence[LENGTH + 1] = { 0 };
	unsigned int kinds = sizeof(events) - 1, all = 1;
	struct world w = { .c = crowd_open(RINGS, SLOTS_LOG2), .now = 1 };

	(void)state;
	w.watch = &w.c->j->to.watch;
	assert_true(w.watch->count > w.watch->watched);
	for (int i = 0; i < LENGTH; i++)
		all *= kinds;
	for (unsigned int n = 0; n < all; n++) {
		unsigned int left = n;

		for (int i = 0; i < LENGTH; i++, left /= kinds)
			sequence[i] = events[left % kinds];
		w.idles = !w.idles;
		run(&w, sequence);
	}
	crowd_close(w.c);
}

/* Longer ones, by chance, the same in every run. */
static void test_long_sequences(void **state)
{
	enum { LONG = 60, RUNS = 300 };
	struct world w = { .c = crowd_open(RINGS, SLOTS_LOG2), .now = 1 };
	char sequence[LONG + 1] = { 0 };
	uint32_t seed = 1;

	(void)state;
	w.watch = &w.c->j->to.watch;
	for (int n = 0; n < RUNS; n++) {
		for (int i = 0; i < LONG; i++) {
			seed = seed * 1664525 + 1013904223;
			sequence[i] =
				events[(seed >> 16) % (sizeof(events) - 1)];
		}
		w.idles = !w.idles;
		run(&w, sequence);
	}
	crowd_close(w.c);
}

/* A ring enters the list without a time, gets one at the next tick, and leaves
 * it at a look after that time, or when a barrier was run. */
static void test_look_again_list(void **state)
{
	struct world w = { .c = crowd_open(RINGS, SLOTS_LOG2), .now = 1 };
	const struct wf_shm_in *in;

	(void)state;
	w.watch = &w.c->j->to.watch;
	give_parts(&w);
	in = w.c->ins[w.quiet];
	happen(&w, 'a');
	happen(&w, 'p');
	assert_false(in->watched);
	assert_false(wf_base_list_empty(&in->again_link));
	assert_int_equal(in->again_at, 0);
	happen(&w, 't');
	assert_true(in->again_at > w.now);
	happen(&w, 't');
	assert_false(wf_base_list_empty(&in->again_link));
	w.now = in->again_at;
	happen(&w, 't');
	assert_true(wf_base_list_empty(&in->again_link));
	give_parts(&w);
	in = w.c->ins[w.quiet];
	happen(&w, 'a');
	happen(&w, 'p');
	assert_false(wf_base_list_empty(&in->again_link));
	happen(&w, 's');
	assert_true(wf_base_list_empty(&in->again_link));
	crowd_close(w.c);
}

/* Bug: a sender of another user, which has mapped the board like all others,
 * could clear the bells of others, and their messages were never seen. */
static void test_bells_cleared_by_a_peer(void **state)
{
	struct world w = { .c = crowd_open(RINGS, SLOTS_LOG2), .now = 1 };
	struct wf_shm_ep *ep = &w.c->j->to;
	struct itimerspec timer;

	(void)state;
	w.watch = &ep->watch;
	w.watch->distrusted = true;
	give_parts(&w);
	happen(&w, 't');
	happen(&w, 'a');
	assert_int_equal(w.sent, 1);
	wf_shm_board_answer(w.watch->board, w.c->ins[w.alone]->bell);
	for (int i = 0; i < 20; i++)
		happen(&w, 't');
	finish(&w, "a bell is cleared");
	/* Nor is a sleep without an end, because the word that makes others
	 * wake us can be cleared as well. */
	assert_true(wf_core_sleep(joined_core(ep)));
	assert_int_equal(timerfd_gettime(ep->host->loop.timer.fd, &timer), 0);
	assert_true(timer.it_value.tv_sec == 0 && timer.it_value.tv_nsec > 0);
	crowd_close(w.c);
}

/* The check finds what it is for. */
static void test_check_finds_a_forgotten_ring(void **state)
{
	struct world w = { .c = crowd_open(RINGS, SLOTS_LOG2), .now = 1 };

	(void)state;
	w.watch = &w.c->j->to.watch;
	give_parts(&w);
	happen(&w, 'a');
	assert_true(wf_shm_watch_check(w.watch));
	wf_shm_board_answer(w.watch->board, w.c->ins[w.alone]->bell);
	assert_false(wf_shm_watch_check(w.watch));
	crowd_close(w.c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_long_sequences),
		cmocka_unit_test(test_look_again_list),
		cmocka_unit_test(test_bells_cleared_by_a_peer),
		cmocka_unit_test(test_check_finds_a_forgotten_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
