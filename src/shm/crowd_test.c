/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many senders and one receiver: which rings are watched, bells, and sleeping
 * without missing a message.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "shm/conn.h"
#include "shm/joined_test.h"
#include "shm/put.h"
#include "shm/sleep.h"

#define CROWD 40

struct crowd {
	struct joined *j; /* the first of them, and both endpoints */
	struct wf_shm_out *outs[CROWD];
	struct wf_shm_in *ins[CROWD];
	uint64_t received;
};

/* Another sender to the same receiver, with a socket between them. */
static void join_one(struct crowd *c, int i)
{
	struct joined *j = c->j;
	struct wf_addr nobody = { 0 };
	struct wf_shm_region region;
	int memfd, sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sock),
		0);
	c->outs[i] = wf_shm_out_open(&j->from, (uint64_t)i, &nobody);
	assert_non_null(c->outs[i]);
	assert_int_equal(wf_shm_region_create(&c->outs[i]->region,
					      JOINED_SLOTS_LOG2,
					      JOINED_LINES_LOG2, &memfd),
			 0);
	assert_int_equal(wf_shm_region_map(&region, memfd, JOINED_SLOTS_LOG2,
					   JOINED_LINES_LOG2),
			 0);
	close(memfd);
	c->ins[i] =
		wf_shm_in_open(&j->to, &region, sock[0], &nobody, (uint64_t)i);
	assert_non_null(c->ins[i]);
	assert_int_equal(wf_shm_ep_add_in(&j->to, c->ins[i]), 0);
	assert_int_equal(wf_shm_conn_watch(&j->to, &c->ins[i]->sock), 0);
	c->outs[i]->sock.fd = sock[1];
	assert_int_equal(wf_shm_conn_watch(&j->from, &c->outs[i]->sock), 0);
	c->outs[i]->features = WF_SHM_FEATURES;
	c->outs[i]->bell = c->ins[i]->bell;
	assert_int_equal(
		wf_shm_board_map(&c->outs[i]->board, j->to.board.memfd), 0);
	assert_int_equal(wf_op_reg_map(&c->outs[i]->regs, j->regs.memfd), 0);
	wf_shm_out_opened(c->outs[i]);
}

static int open_crowd(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->j = joined_open(WF_SHM_WAY_NONE);
	for (int i = 0; i < CROWD; i++)
		join_one(c, i);
	*state = c;
	return 0;
}

static int close_crowd(void **state)
{
	struct crowd *c = *state;

	joined_close(c->j);
	free(c);
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
	const struct joined_buf b = {
		.len = sizeof(c->received),
		.count = 1,
		.iov[0] = { &c->received, sizeof(c->received) },
	};

	joined_post(c->j, &b, 1);
}

static void expect_one(struct crowd *c, int i, uint64_t value)
{
	struct wf_comp comp;

	/* The bell alone must do: no look at all rings, no time-out. */
	for (int turn = 0; turn < 3; turn++)
		wf_shm_ep_progress(&c->j->to);
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

	assert_int_equal(c->j->to.in_count, CROWD + 1);
	assert_int_equal(c->j->to.watched, 8);
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
	assert_int_equal(c->j->to.watched, 8);
	for (uint32_t i = 0; i < c->j->to.in_count; i++) {
		assert_int_equal(c->j->to.ins[i]->place, i);
		assert_int_equal(c->j->to.ins[i]->watched, i < 8);
	}
}

/* Who talks alone is watched after a while, and rings no more. */
static void test_talker_is_watched(void **state)
{
	struct crowd *c = *state;
	int i = CROWD - 1;

	for (int turn = 0; turn < 400; turn++)
		wf_shm_ep_progress(&c->j->to);
	post_one(c);
	send_one(c, i, 1);
	expect_one(c, i, 1);
	assert_true(c->ins[i]->watched);
	assert_false(atomic_load(&c->ins[i]->region.header->bell_wanted));
	post_one(c);
	send_one(c, i, 2);
	expect_one(c, i, 2);
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
	int victim = -1;

	/* Push one of the watched out. */
	for (int turn = 0; turn < 400; turn++)
		wf_shm_ep_progress(&c->j->to);
	for (int i = 0; i < CROWD; i++)
		watched[i] = c->ins[i]->watched;
	c->j->in->seen = c->j->to.turn; /* not this one */
	post_one(c);
	send_one(c, CROWD - 1, 1);
	expect_one(c, CROWD - 1, 1);
	for (int i = 0; i < CROWD; i++) {
		if (watched[i] && !c->ins[i]->watched)
			victim = i;
	}
	assert_true(victim >= 0);
	c->outs[victim]->bell_wanted = &never;
	post_one(c);
	send_one(c, victim, 2);
	for (int turn = 0; turn < 3; turn++)
		wf_shm_ep_progress(&c->j->to);
	assert_int_equal(wf_op_compq_count(&c->j->rxcq), 0);
	comp = joined_wait(c->j, &c->j->rxcq);
	assert_int_equal(comp.src, victim);
	assert_int_equal(c->received, 2);
}

static bool readable(const struct wf_shm_ep *ep)
{
	struct pollfd p = { .fd = ep->epoll_fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void fall_asleep(struct wf_shm_ep *ep)
{
	int tries = 0;

	while (!wf_shm_sleep_begin(ep, UINT64_MAX)) {
		wf_shm_ep_progress(ep);
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
		assert_false(c->j->to.asleep);
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
		wf_shm_ep_progress(&j->to);
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
		assert_false(wf_shm_sleep_begin(&c->j->to, UINT64_MAX));
		assert_false(c->j->to.asleep);
		expect_one(c, i, 7);
	}
}

/* A sender asleep: a reply wakes it, and so does credit. */
static void test_reply_wakes(void **state)
{
	struct crowd *c = *state;
	struct joined_buf b;
	struct wf_shm_tx tx;

	joined_alloc(&b, 8, 1);
	tx = joined_tx(&b, 1);
	tx.slot_flags |= WF_SHM_SLOT_ACK;
	assert_int_equal(wf_shm_out_send(c->outs[3], &tx), 0);
	fall_asleep(&c->j->from);
	assert_false(readable(&c->j->from));
	post_one(c);
	for (int turn = 0; turn < 3; turn++)
		wf_shm_ep_progress(&c->j->to);
	assert_true(readable(&c->j->from));
	wf_shm_ep_progress(&c->j->from);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 1);
	free(b.memory);
}

static void test_credit_wakes(void **state)
{
	struct crowd *c = *state;
	uint64_t value = 5;
	struct joined_buf b;
	struct wf_shm_tx tx;

	while (wf_shm_put(c->outs[3], WF_SHM_SLOT_TAGGED, 1, 0, &value, 8))
		;
	joined_alloc(&b, 8, 1);
	tx = joined_tx(&b, 1);
	assert_int_equal(wf_shm_out_send(c->outs[3], &tx), 0);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 0);
	fall_asleep(&c->j->from);
	for (int turn = 0; turn < 40; turn++)
		wf_shm_ep_progress(&c->j->to);
	assert_true(readable(&c->j->from));
	wf_shm_ep_progress(&c->j->from);
	assert_int_equal(wf_op_compq_count(&c->j->txq), 1);
	free(b.memory);
}

static void test_death_wakes(void **state)
{
	struct crowd *c = *state;

	fall_asleep(&c->j->to);
	close(c->outs[9]->sock.fd);
	c->outs[9]->sock.fd = -1;
	assert_true(readable(&c->j->to));
	for (int turn = 0; turn < 4; turn++)
		wf_shm_ep_progress(&c->j->to);
	assert_int_equal(c->j->to.in_count, CROWD);
	fall_asleep(&c->j->to);
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
		struct pollfd p = { .fd = ep->epoll_fd, .events = POLLIN };
		struct wf_comp comp;

		wf_shm_ep_progress(ep);
		while (joined_pop(&c->j->rxcq, &comp)) {
			post_one(c);
			got++;
		}
		if (got < ROUNDS && wf_shm_sleep_begin(ep, UINT64_MAX))
			assert_int_equal(poll(&p, 1, 10000), 1);
	}
	pthread_join(thread, NULL);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_crowd, close_crowd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_are_watched),
		TEST(test_everybody_is_heard),
		TEST(test_talker_is_watched),
		TEST(test_missed_bell),
		TEST(test_message_wakes),
		cmocka_unit_test(test_few_sleep_again),
		TEST(test_message_prevents_sleep),
		TEST(test_reply_wakes),
		TEST(test_credit_wakes),
		TEST(test_death_wakes),
		TEST(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
