/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of replies: all arrive once and in order, whether the ring had
 * room for them or not, and what the sender says it has read is only compared.
 */
#include "shm/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Both ends: a region, the replies to test, and a sender that reads. */
struct world {
	struct wf_shm_region region;
	struct wf_shm_replies replies;
	uint32_t tail; /* replies read */
	uint32_t last; /* the op of the last one */
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int memfd;

	assert_non_null(w);
	assert_int_equal(wf_shm_region_create(&w->region, 4, 8, &memfd), 0);
	close(memfd);
	wf_shm_reply_init(&w->replies, &w->region);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	wf_shm_reply_fini(&w->replies);
	wf_shm_region_unmap(&w->region);
	free(w);
	return 0;
}

static uint32_t send_reply(struct world *w, enum wf_shm_reply_kind kind,
			   uint32_t op)
{
	const struct wf_shm_kept_reply reply = {
		.op = op,
		.kind = kind,
		.status = (int32_t)op + 1,
		.share = op + 2,
		.len = (uint64_t)op << 32 | 3,
	};

	return wf_shm_reply_send(&w->replies, &reply);
}

static uint32_t send_final(struct world *w, uint32_t op)
{
	return send_reply(w, WF_SHM_REPLY_FINAL, op);
}

/* Reads up to @most as wf_shm_out_poll() does: each is the next. */
static uint32_t read_some(struct world *w, uint32_t most)
{
	uint32_t count = 0;

	while (count < most) {
		const struct wf_shm_reply *at =
			&w->region.replies[w->tail % WF_SHM_REPLIES];

		if (atomic_load(&at->seq) != w->tail + 1)
			break;
		assert_int_equal(at->op, ++w->last);
		assert_int_equal(at->status, at->op + 1);
		assert_int_equal(at->share, at->op + 2);
		assert_int_equal(at->len, (uint64_t)at->op << 32 | 3);
		w->tail++;
		count++;
	}
	atomic_store(&w->region.header->replies_seen, w->tail);
	return count;
}

static void begin_at(struct world *w, uint32_t count)
{
	w->tail = w->replies.head = w->replies.seen = count;
	atomic_store(&w->region.header->replies_seen, count);
}

/* -- tests ----------------------------------------------------------------- */

static void test_room(void **state)
{
	struct world *w = *state;

	for (uint32_t op = 1; op <= 1000; op++) {
		assert_int_equal(wf_shm_reply_expect(&w->replies), 0);
		assert_int_equal(send_final(w, op), op);
		assert_int_equal(w->replies.count, 0);
		assert_int_equal(w->replies.owed, 0);
		assert_int_equal(read_some(w, 2), 1);
	}
}

/* The ring fills, the rest is kept, later ones do not overtake it. */
static void test_full_keeps_order(void **state)
{
	struct world *w = *state;
	uint32_t op = 0;

	for (uint32_t i = 0; i < 3 * WF_SHM_REPLIES; i++)
		assert_int_equal(wf_shm_reply_expect(&w->replies), 0);
	while (op < 2 * WF_SHM_REPLIES) {
		op++;
		assert_int_equal(send_final(w, op), op);
	}
	assert_int_equal(w->replies.count, WF_SHM_REPLIES);
	wf_shm_reply_flush(&w->replies); /* nothing was read */
	assert_int_equal(w->replies.count, WF_SHM_REPLIES);
	assert_int_equal(read_some(w, 5), 5);
	/* There is room in the ring, but others wait before it. */
	op++;
	assert_int_equal(send_final(w, op), op);
	assert_int_equal(w->replies.count, WF_SHM_REPLIES + 1);
	wf_shm_reply_flush(&w->replies);
	assert_int_equal(w->replies.count, WF_SHM_REPLIES + 1 - 5);
	while (w->last < op) {
		assert_true(read_some(w, 37) > 0);
		wf_shm_reply_flush(&w->replies);
	}
	assert_int_equal(w->replies.count, 0);
	op++;
	assert_int_equal(send_final(w, op), op);
	assert_int_equal(w->replies.count, 0);
	assert_int_equal(read_some(w, 2), 1);
}

/* Memory is there for all that an operation may get. */
static void test_expect_sets_memory_aside(void **state)
{
	struct world *w = *state;
	uint32_t op = 0;

	for (uint32_t i = 0; i < WF_SHM_REPLIES; i++) {
		wf_shm_reply_expect(&w->replies);
		send_final(w, ++op);
	}
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(wf_shm_reply_expect(&w->replies), 0);
		assert_true(w->replies.room >=
			    w->replies.count +
				    w->replies.owed * WF_SHM_REPLIES_PER_OP);
		if (i % 3)
			continue;
		send_reply(w, WF_SHM_REPLY_SHARE, ++op);
		send_reply(w, WF_SHM_REPLY_STREAM, ++op);
	}
	for (uint32_t i = 0; i < 500; i++)
		send_final(w, ++op);
	assert_int_equal(w->replies.owed, 0);
	while (w->last < op) {
		assert_true(read_some(w, WF_SHM_REPLIES) > 0);
		wf_shm_reply_flush(&w->replies);
	}
}

/* Bug: room was set aside for what is owed, not for what is kept. A sender that
 * sends on without reading replies, each of them final at once, made the kept
 * ones overwrite each other. */
static void test_finals_at_once_are_kept(void **state)
{
	struct world *w = *state;
	uint32_t op = 0;

	while (op < 2000) {
		assert_int_equal(wf_shm_reply_expect(&w->replies), 0);
		send_final(w, ++op);
		assert_true(w->replies.count <= w->replies.room);
	}
	assert_int_equal(w->replies.count, 2000 - WF_SHM_REPLIES);
	while (w->last < op) {
		assert_true(read_some(w, 100) > 0);
		wf_shm_reply_flush(&w->replies);
	}
}

/* The kept ones are a ring that grows while it is turned. */
static void test_random(void **state)
{
	struct world *w = *state;
	uint64_t random = 1;
	uint32_t op = 0;

	begin_at(w, UINT32_MAX - 1000); /* and counts go round */
	for (int round = 0; round < 100000; round++) {
		uint32_t pick;

		random = random * 6364136223846793005u + 1442695040888963407u;
		pick = (uint32_t)(random >> 33);
		switch (pick % 8) {
		case 0:
			read_some(w, pick / 8 % 20);
			break;
		case 1:
			wf_shm_reply_flush(&w->replies);
			break;
		case 2:
		case 3:
			if (w->replies.owed)
				send_final(w, ++op);
			break;
		default:
			if (w->replies.owed < 100)
				wf_shm_reply_expect(&w->replies);
		}
		assert_true(w->replies.head - w->tail <= WF_SHM_REPLIES);
	}
	while (w->last < op) {
		wf_shm_reply_flush(&w->replies);
		assert_true(read_some(w, WF_SHM_REPLIES) > 0);
	}
	assert_true(w->tail < UINT32_MAX - 1000);
}

static void check_was_read(struct world *w, uint32_t begin)
{
	uint32_t places[2 * WF_SHM_REPLIES], count = 2 * WF_SHM_REPLIES;

	begin_at(w, begin);
	for (uint32_t i = 0; i < count; i++) {
		wf_shm_reply_expect(&w->replies);
		places[i] = send_final(w, w->last + i + 1);
		assert_int_equal(places[i], begin + i + 1);
		assert_false(wf_shm_reply_was_read(&w->replies, places[i]));
	}
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(read_some(w, 1), 1);
		assert_true(wf_shm_reply_was_read(&w->replies, places[i]));
		if (i + 1 < count)
			assert_false(wf_shm_reply_was_read(&w->replies,
							   places[i + 1]));
		wf_shm_reply_flush(&w->replies);
	}
}

static void test_was_read(void **state)
{
	check_was_read(*state, 0);
	check_was_read(*state, 12345);
	check_was_read(*state, UINT32_MAX - WF_SHM_REPLIES / 2);
	check_was_read(*state, UINT32_MAX - WF_SHM_REPLIES * 3 / 2);
}

/* A sender that claims to have read what was never written: replies are kept
 * until it says something sensible, and nothing outside is written. */
static void test_hostile_seen(void **state)
{
	static const uint32_t lies[] = { WF_SHM_REPLIES + 1, 0x80000000u,
					 UINT32_MAX };
	struct world *w = *state;
	uint32_t op = 0;

	for (uint32_t i = 0; i < WF_SHM_REPLIES; i++) {
		wf_shm_reply_expect(&w->replies);
		send_final(w, ++op);
	}
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		atomic_store(&w->region.header->replies_seen, lies[i]);
		wf_shm_reply_expect(&w->replies);
		send_final(w, ++op);
		wf_shm_reply_flush(&w->replies);
		assert_int_equal(w->replies.count, i + 1);
	}
	while (w->last < op) {
		assert_true(read_some(w, WF_SHM_REPLIES) > 0);
		wf_shm_reply_flush(&w->replies);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_room),
		TEST(test_full_keeps_order),
		TEST(test_expect_sets_memory_aside),
		TEST(test_finals_at_once_are_kept),
		TEST(test_random),
		TEST(test_was_read),
		TEST(test_hostile_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
