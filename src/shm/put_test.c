/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the fast path's way through the ring: where the receiver keeps
 * up the first slots and lines are all that is used, a burst uses more of them,
 * and a ring of any size never stands still.
 */
#include "shm/put.h"

#include "shm/joined_test.h"

#define SLOTS_LOG2 9
#define LINES_LOG2 10
#define WINDOW WF_SHM_FIRST_SLOTS /* slots of a lap, see out.c ... */
#define LINE_WINDOW 128		  /* ... and lines */

/* Idle polls until a receiver has returned all credit. */
#define IDLE (2 * WF_HOST_POLLS_PER_CLOCK)

/* A receiver waits longer for a message than it takes to handle it. */
#define POLLS_PER_MESSAGE 4

static uint32_t slots_used(const struct joined *j)
{
	uint32_t count = j->out->region.slot_count;

	while (count && !atomic_load(&j->out->region.slots[count - 1].word))
		count--;
	return count;
}

static uint32_t lines_used(const struct joined *j)
{
	size_t count = (size_t)j->out->region.line_count * WF_LINE;

	while (count && !j->out->region.data[count - 1])
		count--;
	return (uint32_t)((count + WF_LINE - 1) / WF_LINE);
}

static void put_one(struct joined *j, const void *buf, size_t len)
{
	assert_true(wf_shm_put(j->out, 0, 0, 0, buf, len));
}

/* The messages that were put wait without a receive: counts them and forgets
 * them. */
static uint32_t forget_all(struct joined *j)
{
	uint32_t count = j->rxq.msg.unexpected;

	wf_match_rxq_fini(&j->rxq);
	wf_match_rxq_init(&j->rxq, &j->rxcq);
	return count;
}

static void idle(struct joined *j, int polls)
{
	for (int i = 0; i < polls; i++)
		joined_drive(j);
}

static void ping(struct joined *j, const void *buf, size_t len, int count)
{
	for (int i = 0; i < count; i++) {
		put_one(j, buf, len);
		idle(j, POLLS_PER_MESSAGE);
		assert_int_equal(forget_all(j), 1);
	}
}

static void test_keeps_to_window(void **state)
{
	static const size_t sizes[] = { 8, 100, 500, 2000, 4096 };
	uint8_t buf[4096];

	(void)state;
	memset(buf, 0xff, sizeof(buf));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct joined *j = joined_open_sized(WF_SHM_WAY_SELF,
						     SLOTS_LOG2, LINES_LOG2);

		ping(j, buf, sizes[i], 5000);
		assert_int_equal(slots_used(j), WINDOW);
		/* A record that began inside may end outside, and credit may
		 * come one poll too late. */
		assert_true(lines_used(j) <= 2 * LINE_WINDOW);
		joined_close(j);
	}
}

/* A sender that does not poll, so that it waits for no answer, uses the whole ring
 * although the receiver keeps up. */
static void test_burst_goes_on(void **state)
{
	struct joined *j =
		joined_open_sized(WF_SHM_WAY_SELF, SLOTS_LOG2, LINES_LOG2);
	uint8_t buf[500];

	(void)state;
	memset(buf, 0xff, sizeof(buf));
	for (int i = 0; i < 5000; i++) {
		put_one(j, buf, sizeof(buf));
		wf_core_progress(&j->to_core);
		assert_int_equal(forget_all(j), 1);
	}
	assert_true(lines_used(j) >= j->out->region.line_count - 16);
	assert_false(j->in->broken);
	joined_close(j);
}

/* How many fit; the receiver reads them afterwards. */
static uint32_t burst(struct joined *j, const void *buf, size_t len)
{
	uint32_t sent = 0;

	while (wf_shm_put(j->out, 0, 0, 0, buf, len))
		sent++;
	idle(j, IDLE);
	assert_int_equal(forget_all(j), sent);
	return sent;
}

static void test_burst_uses_more(void **state)
{
	struct joined *j =
		joined_open_sized(WF_SHM_WAY_SELF, SLOTS_LOG2, LINES_LOG2);
	uint32_t slots = j->out->region.slot_count;
	uint8_t buf[512];

	(void)state;
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(burst(j, buf, 8), slots - 1);
	assert_int_equal(slots_used(j), slots - 1);
	assert_true(burst(j, buf, sizeof(buf)) >= 1024 / 8 - 1);
	assert_true(lines_used(j) >= 1024 - 8);
	/* And back to the window. */
	ping(j, buf, sizeof(buf), 2 * WINDOW);
	for (int i = 0; i < 1000; i++) {
		ping(j, buf, sizeof(buf), 1);
		assert_true(j->out->slot_lap.pos < WINDOW);
		assert_true(j->out->line_lap.pos <= 2 * LINE_WINDOW);
	}
	/* Where a lap ended early while its messages were unread, the next one
	 * cannot pass them: the window is what is left of the ring. */
	for (int i = 0; i < 2 * WINDOW; i++) {
		ping(j, buf, 8, i);
		idle(j, IDLE);
		assert_in_range(burst(j, buf, 8), WINDOW, slots + WINDOW);
	}
	joined_close(j);
}

/* Where the processor writes whole lines, a burst does not make the lines of large
 * and of small records its own: it took a third of the bandwidth at 4 KiB and half
 * of it at 256 bytes. */
static void test_owns_lines_where_it_helps(void **state)
{
	(void)state;
	assert_int_equal(wf_shm_put_lines_to_own(2, true), 0);
	assert_int_equal(wf_shm_put_lines_to_own(256 / WF_LINE, true), 0);
	assert_int_equal(wf_shm_put_lines_to_own(1024 / WF_LINE, true), 16);
	assert_int_equal(wf_shm_put_lines_to_own(2048 / WF_LINE, true), 32);
	assert_int_equal(wf_shm_put_lines_to_own(4096 / WF_LINE, true), 0);
	assert_int_equal(wf_shm_put_lines_to_own(2, false), 2);
	assert_int_equal(wf_shm_put_lines_to_own(2048 / WF_LINE, false), 32);
	assert_int_equal(wf_shm_put_lines_to_own(4096 / WF_LINE, false), 32);
}

/* -- never stands still ---------------------------------------------------- */

static uint32_t draw(uint64_t *random, uint32_t below)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % below;
}

static size_t draw_len(uint64_t *random)
{
	static const uint32_t below[] = { 9, 105, 500, 2049, 4097 };

	return draw(random, below[draw(random, 5)]);
}

/* Bursts up to what fits; then the receiver reads all there is and has nothing
 * to do. Credit that it holds back must not keep the sender waiting. */
static void bursts(unsigned int slots_log2, unsigned int lines_log2)
{
	struct joined *j =
		joined_open_sized(WF_SHM_WAY_SELF, slots_log2, lines_log2);
	uint64_t random = slots_log2 * 100 + lines_log2;
	uint8_t buf[4096] = { 0 };

	for (int round = 0; round < 1000; round++) {
		uint32_t most = 1 + draw(&random, 40), sent = 0;

		/* The first after a pause is always taken. */
		put_one(j, buf, draw_len(&random));
		for (sent = 1; sent < most; sent++) {
			if (!wf_shm_put(j->out, 0, 0, 0, buf,
					draw_len(&random)))
				break;
		}
		idle(j, IDLE);
		assert_int_equal(forget_all(j), sent);
		assert_false(j->in->broken);
	}
	joined_close(j);
}

static void test_bursts(void **state)
{
	(void)state;
	for (unsigned int slots = 4; slots <= 9; slots++) {
		for (unsigned int lines = 8; lines <= 11; lines++)
			bursts(slots, lines);
	}
}

/* One side moves at a time, each as far as it can: messages of all sizes and
 * protocols get through, with the right bytes. */
static void in_turns(unsigned int slots_log2, unsigned int lines_log2)
{
	enum { COUNT = 40 };
	struct joined *j =
		joined_open_sized(WF_SHM_WAY_NONE, slots_log2, lines_log2);
	struct joined_buf from[COUNT + 1], to[COUNT + 1];
	uint64_t random = slots_log2 * 100 + lines_log2;

	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		size_t len = draw(&random, 4) ? draw_len(&random) :
						draw(&random, 40000);
		struct wf_tx tx;

		joined_alloc(&from[tag], len, 1 + draw(&random, 4));
		joined_alloc(&to[tag], len, 1);
		joined_fill(&from[tag], tag);
		joined_post(j, &to[tag], tag);
		tx = joined_tx(&from[tag], tag);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	for (int turn = 0; wf_op_compq_count(&j->txq) < COUNT; turn++) {
		assert_true(turn < 1000);
		idle(j, IDLE);
		wf_core_progress(&j->from_core);
	}
	idle(j, IDLE);
	assert_int_equal(wf_op_compq_count(&j->rxcq), COUNT);
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		joined_check(&to[tag], to[tag].len, tag);
		free(from[tag].memory);
		free(to[tag].memory);
	}
	joined_close(j);
}

static void test_in_turns(void **state)
{
	(void)state;
	for (unsigned int slots = 4; slots <= 9; slots++) {
		for (unsigned int lines = 8; lines <= 11; lines++)
			in_turns(slots, lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_to_window),
		cmocka_unit_test(test_burst_goes_on),
		cmocka_unit_test(test_burst_uses_more),
		cmocka_unit_test(test_owns_lines_where_it_helps),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
