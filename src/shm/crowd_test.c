/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many senders and one receiver: which rings are watched, bells, and sleeping
 * without missing a message.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "shm/crowd_test.h"
#include "shm/put.h"

static int open_crowd(void **state)
{
	*state = crowd_open(CROWD, JOINED_SLOTS_LOG2);
	return 0;
}

static int close_crowd(void **state)
{
	crowd_close(*state);
	return 0;
}

/* 8 bytes from sender @i, which also says who it is from. */
static void send_one(struct crowd *c, int i, uint64_t value)
{
	assert_true(wf_shm_put(c->outs[i], WF_SHM_SLOT_TAGGED, 1, 0, &value,
			       sizeof(value)));
}

static void post_one(struct crowd *c)
{
	const struct joined_buf b = joined_word(&c->received);

	joined_post(c->j, &b, 1);
}

/* The next polls do not look at the clock. */
static void hold_clock(struct crowd *c)
{
	c->j->to_core.host.polls = 0;
}

static void expect_one(struct crowd *c, int i, uint64_t value)
{
	struct wf_comp comp;

	/* The bell alone must do: no look at all rings, no time-out. */
	for (int turn = 0; turn < 3; turn++)
		wf_core_progress(&c->j->to_core);
	assert_true(joined_pop(&c->j->rxcq, &comp));
	assert_int_equal(comp.src, i);
	assert_int_equal(c->received, value);
}

static uint32_t bells_wanted(const struct crowd *c)
{
	uint32_t count = 0;

	for (int i = 0; i < CROWD; i++)
		count += atomic_load(&c->ins[i]->region.header->bell_wanted);
	return count;
}

static void test_few_are_watched(void **state)
{
	struct crowd *c = *state;

	assert_int_equal(c->j->to.watch.count, CROWD + 1);
	assert_int_equal(c->j->to.watch.watched, 8);
	assert_int_equal(bells_wanted(c), CROWD - 7);
}

static void test_everybody_is_heard(void **state)
{
	struct crowd *c = *state;

	for (uint64_t round = 0; round < 50; round++) {
		for (int k = 0; k < CROWD; k++) {
			int i = (int)((round * 7 + (uint64_t)k * 13) % CROWD);

			post_one(c);
			send_one(c, i, round * 100 + (uint64_t)i);
			expect_one(c, i, round * 100 + (uint64_t)i);
		}
	}
	assert_int_equal(c->j->to.watch.watched, 8);
	for (uint32_t i = 0; i < c->j->to.watch.count; i++) {
		assert_int_equal(c->j->to.watch.ins[i]->place, i);
		assert_int_equal(c->j->to.watch.ins[i]->watched, i < 8);
	}
}

/* A peer that talks alone is watched after a while, and rings no more. */
static void test_talker_is_watched(void **state)
{
	struct crowd *c = *state;
	int i = CROWD - 1;

	for (int turn = 0; turn < 400; turn++)
		wf_core_progress(&c->j->to_core);
	post_one(c);
	send_one(c, i, 1);
	expect_one(c, i, 1);
	assert_true(c->ins[i]->watched);
	assert_false(atomic_load(&c->ins[i]->region.header->bell_wanted));
	post_one(c);
	send_one(c, i, 2);
	expect_one(c, i, 2);
}

/* Nobody talks: a poll looks at one ring and at the word that says that a bell was
 * rung, which is the short way, and what comes then arrives all the same. */
static void test_idle_are_not_watched(void **state)
{
	struct crowd *c = *state;
	const struct wf_shm_watch *watch = &c->j->to.watch;

	for (int turn = 0; turn < 5000; turn++)
		wf_core_progress(&c->j->to_core);
	assert_int_equal(watch->watched, 1);
	assert_true(wf_shm_watch_check(watch));
	assert_ptr_equal(c->j->to.host->only, watch->ins[0]);
	for (int i = 0; i < CROWD; i++) {
		bool was_watched = watch->watched && c->ins[i]->watched;

		assert_false(wf_shm_watch_has_rung(watch));
		post_one(c);
		send_one(c, i, (uint64_t)i + 1);
		assert_int_equal(wf_shm_watch_has_rung(watch), !was_watched);
		expect_one(c, i, (uint64_t)i + 1);
	}
	assert_int_equal(watch->watched, 8);
	assert_true(wf_shm_watch_check(watch));
}

/* Channels are counted in turns: every one is after some flushes, and all are
 * when the endpoint is about to sleep. */
static void test_all_are_counted(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *from = &c->j->from, *to = &c->j->to;

	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < CROWD; i++) {
			post_one(c);
			send_one(c, i, (uint64_t)i + 1);
			expect_one(c, i, (uint64_t)i + 1);
		}
		if (round == 2)
			wf_shm_stats_flush_all(from);
		for (int i = 0; round == 1 && i <= CROWD / 16; i++)
			wf_shm_stats_flush(from);
		for (int i = 0; i <= CROWD / 16; i++)
			wf_shm_stats_flush(to);
		assert_int_equal(
			wf_base_stats_get(&from->stats, WF_SHM_STAT_slots_out),
			round * CROWD);
		assert_int_equal(
			wf_base_stats_get(&to->stats, WF_SHM_STAT_slots_in),
			round * CROWD);
	}
	assert_int_equal(wf_base_stats_get(&from->stats, WF_SHM_STAT_peers_out),
			 CROWD + 1);
}

/* A peer that is not watched any more sends, and sees no reason to ring. */
static int send_unrung(struct crowd *c, const bool *watched,
		       const _Atomic uint32_t *never)
{
	int victim = -1;

	for (int i = 0; i < CROWD; i++) {
		if (watched[i] && !c->ins[i]->watched)
			victim = i;
	}
	assert_true(victim >= 0);
	c->outs[victim]->bell_wanted = never;
	post_one(c);
	send_one(c, victim, 2);
	return victim;
}

/* A sender that looked at the word just before it changed: bug class of any
 * scheme with bells. The ring is looked at once more, half a millisecond
 * later. */
static void test_missed_bell(void **state)
{
	struct crowd *c = *state;
	_Atomic uint32_t never = 0;
	bool watched[CROWD];
	struct wf_comp comp;
	int victim;

	/* Push one of the watched out. */
	for (int turn = 0; turn < 400; turn++)
		wf_core_progress(&c->j->to_core);
	for (int i = 0; i < CROWD; i++)
		watched[i] = c->ins[i]->watched;
	c->j->in->seen = c->j->to.watch.turn; /* not this one */
	hold_clock(c);
	post_one(c);
	send_one(c, CROWD - 1, 1);
	expect_one(c, CROWD - 1, 1);
	victim = send_unrung(c, watched, &never);
	hold_clock(c);
	for (int turn = 0; turn < 3; turn++)
		wf_core_progress(&c->j->to_core);
	assert_int_equal(wf_op_compq_count(&c->j->rxcq), 0);
	comp = joined_wait(c->j, &c->j->rxcq);
	assert_int_equal(comp.src, victim);
	assert_int_equal(c->received, 2);
}

static bool readable(const struct wf_shm_ep *ep)
{
	struct pollfd p = { .fd = ep->host->loop.epoll_fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The same, now or very soon. */
static bool wakes(const struct wf_shm_ep *ep)
{
	struct pollfd p = { .fd = ep->host->loop.epoll_fd, .events = POLLIN };

	return poll(&p, 1, 60000) == 1;
}

static void fall_asleep(struct wf_shm_ep *ep)
{
	int tries = 0;

	while (!wf_core_sleep(joined_core(ep))) {
		wf_core_progress(joined_core(ep));
		assert_true(++tries < 100);
	}
}

static void test_message_wakes(void **state)
{
	struct crowd *c = *state;

	for (int i = 0; i < CROWD; i++) {
		fall_asleep(&c->j->to);
		assert_false(readable(&c->j->to));
		assert_int_equal(bells_wanted(c), CROWD);
		post_one(c);
		send_one(c, i, (uint64_t)i);
		assert_true(readable(&c->j->to));
		/* Woken once, however many come. */
		assert_int_equal(atomic_load(&c->j->to.board.board->asleep), 0);
		expect_one(c, i, (uint64_t)i);
		assert_false(c->j->to.host->asleep);
	}
	/* And it can sleep again: nothing rings on. */
	fall_asleep(&c->j->to);
	assert_false(readable(&c->j->to));
}

/* Where all are watched, nobody looks at the bells that rang in the sleep. */
static void test_few_sleep_again(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_NONE);
	uint64_t value = 1;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fall_asleep(&j->to);
		assert_true(wf_shm_put(j->out, WF_SHM_SLOT_TAGGED, 1, 0, &value,
				       sizeof(value)));
		wf_core_progress(&j->to_core);
	}
	fall_asleep(&j->to);
	joined_close(j);
}

static void test_message_prevents_sleep(void **state)
{
	struct crowd *c = *state;

	for (int i = 0; i < CROWD; i += 5) {
		/* Before it falls asleep ... */
		post_one(c);
		send_one(c, i, 7);
		assert_false(wf_core_sleep(&c->j->to_core));
		assert_false(c->j->to.host->asleep);
		expect_one(c, i, 7);
	}
}

/* A sender asleep: a reply wakes it, and so does credit. */
static void test_reply_wakes(void **state)
{
	struct crowd *c = *state;
	struct joined_buf b;
	struct wf_tx tx;

	joined_alloc(&b, 8, 1);
	tx = joined_tx(&b, 1);
	tx.delivery = true;
	assert_int_equal(wf_shm_out_send(c->outs[3], &tx), 0);
	fall_asleep(&c->j->from);
	assert_false(readable(&c->j->from));
	post_one(c);
	for (int turn = 0; turn < 3; turn++)
		wf_core_progress(&c->j->to_core);
	assert_true(readable(&c->j->from));
	wf_core_progress(&c->j->from_core);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 1);
	free(b.memory);
}

static void test_credit_wakes(void **state)
{
	struct crowd *c = *state;
	uint64_t value = 5;
	struct joined_buf b;
	struct wf_tx tx;

	while (wf_shm_put(c->outs[3], WF_SHM_SLOT_TAGGED, 1, 0, &value, 8))
		;
	joined_alloc(&b, 8, 1);
	tx = joined_tx(&b, 1);
	assert_int_equal(wf_shm_out_send(c->outs[3], &tx), 0);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 0);
	fall_asleep(&c->j->from);
	for (int turn = 0; turn < 40; turn++)
		wf_core_progress(&c->j->to_core);
	assert_true(readable(&c->j->from));
	wf_core_progress(&c->j->from_core);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 1);
	free(b.memory);
}

static bool sends_fail;
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);

/* The linker has weft's calls come here (src/meson.build). */
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	if (!sends_fail)
		return __real_send(fd, bytes, len, flags);
	errno = ENOBUFS;
	return -1;
}

/* Bug: if there was no memory to wake a peer, nobody woke it any more. */
static void test_wakes_again(void **state)
{
	struct crowd *c = *state;
	struct joined_buf b;
	struct wf_tx tx;

	fall_asleep(&c->j->to);
	post_one(c);
	sends_fail = true;
	send_one(c, 3, 5);
	/* The next look fails as well; then the sender sleeps, too. */
	c->j->from.host->look_at = 0;
	wf_core_tick(&c->j->from_core);
	fall_asleep(&c->j->from);
	assert_false(readable(&c->j->to));
	sends_fail = false;
	assert_true(wakes(&c->j->from));
	wf_core_wake(&c->j->from_core);
	wf_core_progress(&c->j->from_core);
	assert_true(readable(&c->j->to));
	expect_one(c, 3, 5);
	assert_false(c->j->from.unwoken);
	/* The same for an answer. */
	joined_alloc(&b, 8, 1);
	tx = joined_tx(&b, 1);
	tx.delivery = true;
	assert_int_equal(wf_shm_out_send(c->outs[3], &tx), 0);
	fall_asleep(&c->j->from);
	post_one(c);
	sends_fail = true;
	for (int turn = 0; turn < 3; turn++)
		wf_core_progress(&c->j->to_core);
	assert_true(c->j->to.unwoken);
	sends_fail = false;
	c->j->to.host->look_at = 0;
	wf_core_tick(&c->j->to_core);
	assert_true(readable(&c->j->from));
	wf_core_progress(&c->j->from_core);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 1);
	free(b.memory);
}

#define QUIET 1000 /* looks at the clock: more than it takes to rest */

/* Bug: what a thread that polls heard by a bell did not count. It went on with its
 * row of sleeps while messages came. */
static void test_bell_gives_work(void **state)
{
	struct crowd *c = *state;
	struct wf_host *host = c->j->to.host;

	wf_core_progress(&c->j->to_core);
	post_one(c);
	send_one(c, CROWD - 1, 7);
	assert_true(wf_shm_watch_has_rung(&c->j->to.watch));
	host->quiet_ticks = QUIET;
	host->polls = WF_HOST_POLLS_PER_CLOCK - 1;
	wf_core_progress(&c->j->to_core);
	assert_true(host->quiet_ticks < QUIET);
	expect_one(c, CROWD - 1, 7);
}

/* Bug: nor did room in a ring that was full, for a sender that waited for it. */
static void test_credit_gives_work(void **state)
{
	struct crowd *c = *state;
	uint64_t value = 5;

	while (wf_shm_put(c->outs[3], WF_SHM_SLOT_TAGGED, 1, 0, &value, 8))
		;
	c->j->from.host->quiet_ticks = QUIET;
	assert_false(
		wf_shm_put(c->outs[3], WF_SHM_SLOT_TAGGED, 1, 0, &value, 8));
	assert_int_equal(c->j->from.host->quiet_ticks, QUIET);
	for (int turn = 0; turn < 40; turn++)
		wf_core_progress(&c->j->to_core);
	assert_true(
		wf_shm_put(c->outs[3], WF_SHM_SLOT_TAGGED, 1, 0, &value, 8));
	assert_int_equal(c->j->from.host->quiet_ticks, 0);
}

static void test_death_wakes(void **state)
{
	struct crowd *c = *state;

	fall_asleep(&c->j->to);
	close(c->outs[9]->sock.fd);
	c->outs[9]->sock.fd = -1;
	assert_true(readable(&c->j->to));
	for (int turn = 0; turn < 4; turn++)
		wf_core_progress(&c->j->to_core);
	assert_int_equal(c->j->to.watch.count, CROWD);
	fall_asleep(&c->j->to);
}

/* Bug: one thread sleeps, another makes progress and stops: the timer that was
 * to wake the first was read by the second, and no peer rang any more. */
static void test_progress_of_others_wakes(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;

	joined_core(ep)->lock->real = true;
	fall_asleep(ep);
	for (int turn = 0; turn < 100; turn++) {
		ep->host->look_at = 0;
		wf_core_progress(joined_core(ep));
	}
	assert_true(wakes(ep));
	/* Until it sleeps again. */
	fall_asleep(ep);
	assert_false(readable(ep));
}

/* Bug: a receive that another thread posts may begin to fetch a large message,
 * which goes on in progress: the thread that slept was not woken for it. */
static void test_receive_wakes(void **state)
{
	const size_t len = (size_t)20 << 20; /* beyond one call */
	struct joined *j = joined_open(WF_SHM_WAY_CMA);
	struct joined_buf from, to;
	struct wf_tx tx;
	struct wf_comp comp;

	(void)state;
	joined_alloc(&from, len, 1);
	joined_alloc(&to, len, 1);
	joined_fill(&from, 1);
	tx = joined_tx(&from, 1);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	wf_core_progress(&j->to_core);
	assert_int_equal(j->rxq.tagged.unexpected, 1);
	fall_asleep(&j->to);
	joined_post(j, &to, 1);
	assert_int_equal(j->to.busy_pulls, 1);
	assert_true(wakes(&j->to));
	comp = joined_wait(j, &j->rxcq);
	joined_check_comp(&comp, 1, len);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* A sender in a thread of its own against a receiver that sleeps whenever it
 * can: nothing is missed. */
#define ROUNDS 3000

static void *talk(void *arg)
{
	struct crowd *c = arg;

	for (uint64_t n = 0; n < ROUNDS; n++) {
		struct wf_shm_out *out = c->outs[n % CROWD];

		while (!wf_shm_put(out, WF_SHM_SLOT_TAGGED, 1, 0, &n,
				   sizeof(n)))
			sched_yield();
		if (n % 7 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_race(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;
	pthread_t thread;
	int got = 0;

	for (int i = 0; i < 64; i++)
		post_one(c);
	assert_int_equal(pthread_create(&thread, NULL, talk, c), 0);
	while (got < ROUNDS) {
		struct pollfd p = { .fd = ep->host->loop.epoll_fd,
				    .events = POLLIN };
		struct wf_comp comp;

		wf_core_progress(joined_core(ep));
		while (joined_pop(&c->j->rxcq, &comp)) {
			post_one(c);
			got++;
		}
		if (got < ROUNDS && wf_core_sleep(joined_core(ep)))
			assert_int_equal(poll(&p, 1, 10000), 1);
	}
	pthread_join(thread, NULL);
}

/* -- a ring that cannot be read now ---------------------------------------- */

/* Bug: the bell was cleared, nothing could be taken, and the ring was
 * forgotten with its message. */
static void test_full_queue_forgets_no_ring(void **state)
{
	struct crowd *c = *state;

	for (int i = 0; i < CROWD; i++) {
		post_one(c);
		crowd_block(c);
		send_one(c, i, (uint64_t)i);
		for (int turn = 0; turn < 3; turn++)
			wf_core_progress(&c->j->to_core);
		assert_int_equal(crowd_unblock(c), 0);
		expect_one(c, i, (uint64_t)i);
	}
}

static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* The linker has weft's calls come here (src/meson.build). */
void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

/* Bug: the same without memory for a message that has no receive yet. */
static void test_no_memory_forgets_no_ring(void **state)
{
	struct crowd *c = *state;

	for (int i = 0; i < CROWD; i++) {
		no_memory = true;
		send_one(c, i, (uint64_t)i);
		for (int turn = 0; turn < 3; turn++)
			wf_core_progress(&c->j->to_core);
		no_memory = false;
		assert_int_equal(c->j->rxq.tagged.unexpected, 0);
		for (int turn = 0; turn < 3; turn++)
			wf_core_progress(&c->j->to_core);
		post_one(c);
		expect_one(c, i, (uint64_t)i);
	}
}

/* Bug: 12 senders into one FI_MULTI_RECV receive, the queue read one entry at
 * a time: 192 of 16896 messages never arrived. */
static void test_many_into_one_receive(void **state)
{
	enum { SENDERS = 12, EACH = 1408, LEN = 8, SOME = 100 };
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;
	char *memory = calloc(SENDERS * EACH + SOME, LEN);
	struct wf_rx *rx = wf_base_pool_get(&c->j->rxq.pool);
	uint64_t sent[SENDERS] = { 0 };
	int got = 0, idle = 0, total = 0;
	struct wf_comp comp;

	assert_non_null(memory);
	*rx = (struct wf_rx){
		.src = WF_MATCH_ANY,
		.flags = FI_RECV,
		.len = (size_t)(SENDERS * EACH + SOME) * LEN,
		.iov_count = 1,
		.iov[0] = { memory, (size_t)(SENDERS * EACH + SOME) * LEN },
		.wants_comp = true,
		.multi = true,
	};
	wf_match_rxq_post(&c->j->rxq, rx);
	c->j->rxcq.high = 64;
	/* The reader does nothing until all that fits is there. */
	while (idle < 2000) {
		bool busy = false;

		for (int i = 0; i < SENDERS; i++) {
			while (sent[i] < EACH &&
			       wf_shm_put(c->outs[i], 0, 0, 0, &sent[i], LEN)) {
				sent[i]++;
				total++;
				busy = true;
			}
		}
		for (int turn = 0; turn < 2; turn++)
			wf_core_progress(joined_core(ep));
		if (total > SOME && joined_pop(&c->j->rxcq, &comp)) {
			got++;
			busy = true;
		}
		idle = busy ? 0 : idle + 1;
	}
	assert_int_equal(total, SENDERS * EACH);
	assert_int_equal(got, SENDERS * EACH);
	free(memory);
}

/* Bug: a ring that stopped being watched was looked at again in the same call,
 * while the message of a sender that saw no reason to ring could still stand
 * in that sender's store buffer, and then never again. */
static void test_look_again_comes_later(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;
	_Atomic uint32_t never = 0;
	bool watched[CROWD];
	struct wf_comp comp;
	int victim;

	for (int turn = 0; turn < 400; turn++)
		wf_core_progress(joined_core(ep));
	c->j->in->seen += 400; /* not this one */
	for (int i = 0; i < CROWD; i++)
		watched[i] = c->ins[i]->watched;
	post_one(c);
	send_one(c, CROWD - 1, 1);
	/* One call answers the bell and looks at the clock. */
	ep->host->polls = WF_HOST_POLLS_PER_CLOCK - 1;
	ep->host->look_at = 0;
	wf_core_progress(joined_core(ep));
	hold_clock(c);
	expect_one(c, CROWD - 1, 1);
	victim = send_unrung(c, watched, &never);
	comp = joined_wait(c->j, &c->j->rxcq);
	assert_int_equal(comp.src, victim);
}

/* With a full queue nothing can be done: the endpoint sleeps, and looks again
 * when there is room, however that came about. */
static void test_full_queue_lets_sleep(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;

	for (int i = 3; i < CROWD; i += CROWD - 10) { /* watched, then not */
		struct pollfd p = { .fd = ep->host->loop.epoll_fd,
				    .events = POLLIN };
		int wakes = 0;

		post_one(c);
		crowd_block(c);
		send_one(c, i, 5);
		for (int turn = 0; turn < 3; turn++)
			wf_core_progress(joined_core(ep));
		fall_asleep(ep);
		assert_int_equal(crowd_unblock(c), 0);
		while (!wf_op_compq_count(&c->j->rxcq)) {
			assert_true(++wakes < 10);
			assert_int_equal(poll(&p, 1, 10000), 1);
			for (int turn = 0; turn < 3; turn++)
				wf_core_progress(joined_core(ep));
			if (!wf_op_compq_count(&c->j->rxcq))
				fall_asleep(ep);
		}
		assert_int_equal(crowd_unblock(c), 1);
	}
}

/* The peer is gone, its last messages find no room: that does not keep the
 * endpoint awake, and they arrive when there is room. */
static void test_full_queue_after_the_end(void **state)
{
	struct crowd *c = *state;
	struct wf_shm_ep *ep = &c->j->to;

	post_one(c);
	crowd_block(c);
	send_one(c, CROWD - 1, 6);
	close(c->outs[CROWD - 1]->sock.fd);
	c->outs[CROWD - 1]->sock.fd = -1;
	ep->host->look_at = 0;
	for (int turn = 0; turn < 80; turn++)
		wf_core_progress(joined_core(ep));
	fall_asleep(ep);
	assert_int_equal(crowd_unblock(c), 0);
	for (int turn = 0; turn < 3; turn++)
		wf_core_progress(joined_core(ep));
	assert_int_equal(crowd_unblock(c), 1);
	assert_int_equal(c->received, 6);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_crowd, close_crowd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_are_watched),
		TEST(test_everybody_is_heard),
		TEST(test_talker_is_watched),
		TEST(test_idle_are_not_watched),
		TEST(test_all_are_counted),
		TEST(test_missed_bell),
		TEST(test_message_wakes),
		cmocka_unit_test(test_few_sleep_again),
		TEST(test_message_prevents_sleep),
		TEST(test_reply_wakes),
		TEST(test_credit_wakes),
		TEST(test_wakes_again),
		TEST(test_bell_gives_work),
		TEST(test_credit_gives_work),
		TEST(test_death_wakes),
		TEST(test_progress_of_others_wakes),
		cmocka_unit_test(test_receive_wakes),
		TEST(test_race),
		TEST(test_full_queue_forgets_no_ring),
		TEST(test_no_memory_forgets_no_ring),
		TEST(test_many_into_one_receive),
		TEST(test_look_again_comes_later),
		TEST(test_full_queue_lets_sleep),
		TEST(test_full_queue_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
