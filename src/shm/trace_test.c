/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of messages through shared memory: both ends number them alike, so that
 * a reader finds which send and which receive belong together. Nothing is
 * recorded while nobody wants it.
 */
#include "shm/trace.h"

#include "base/clock.h"
#include "shm/crowd_test.h"
#include "shm/put.h"

static void turn(struct wf_core *core, bool on)
{
	atomic_store(&core->trace.front->wanted, on ? UINT64_MAX : 0);
	wf_core_look(core, wf_base_clock_ns());
	assert_int_equal(!!core->host.trace, on);
}

static int open_joined(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);

	turn(&j->from_core, true);
	turn(&j->to_core, true);
	*state = j;
	return 0;
}

static int close_joined(void **state)
{
	joined_close(*state);
	return 0;
}

/* The next event from *@at on that is of this type, or NULL. */
static const struct wf_trace_event *next(const struct wf_core *core,
					 uint64_t *at, enum wf_trace_type type)
{
	const struct wf_trace *trace = &core->trace;

	while (*at < trace->written) {
		const struct wf_trace_event *event =
			&trace->page->events[(*at)++];

		if (event->type == type)
			return event;
	}
	return NULL;
}

static void exchange(struct joined *j, size_t len, uint64_t tag)
{
	const struct joined_case c = {
		.len = len,
		.tx_parts = 1,
		.rx_parts = 1,
	};

	joined_exchange(j, &c, tag);
}

static void test_kinds(void **state)
{
	static const struct {
		size_t len;
		enum wf_trace_slot kind;
	} cases[] = {
		{ 8, WF_TRACE_SLOT_INLINE },
		{ 1000, WF_TRACE_SLOT_EAGER },
		{ 4097, WF_TRACE_SLOT_FIRST },
		{ 40000, WF_TRACE_SLOT_PARKED },
	};
	struct joined *j = *state;
	uint64_t at = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct wf_trace_event *e;

		exchange(j, cases[i].len, 70 + i);
		e = next(&j->from_core, &at, WF_TRACE_PUT);
		assert_non_null(e);
		assert_int_equal(e->kind, cases[i].kind);
		assert_int_equal(e->tag, 70 + i);
		assert_int_equal(e->len & ((1ull << WF_TRACE_LEN_BITS) - 1),
				 cases[i].len);
		assert_int_equal(e->channel, 0);
		while (cases[i].kind == WF_TRACE_SLOT_FIRST &&
		       e->seq != j->out->slot_lap.head) {
			e = next(&j->from_core, &at, WF_TRACE_PUT);
			assert_non_null(e);
			assert_int_equal(e->kind, WF_TRACE_SLOT_NEXT);
		}
		assert_int_equal(e->seq, j->out->slot_lap.head);
	}
	assert_null(next(&j->from_core, &at, WF_TRACE_PUT));
}

/* More messages than the ring has slots: each is taken once, in order. */
static void test_numbers(void **state)
{
	struct joined *j = *state;
	const struct wf_trace_event *e;
	uint32_t sent = 0, taken = 0;
	uint64_t at = 0;

	for (uint64_t i = 0; i < 100; i++)
		exchange(j, i % 2 ? 8 : 500, i + 1);
	while ((e = next(&j->from_core, &at, WF_TRACE_PUT)))
		assert_int_equal(e->seq, ++sent);
	assert_int_equal(sent, 100);
	at = 0;
	while ((e = next(&j->to_core, &at, WF_TRACE_TAKE))) {
		assert_true(e->len);
		taken += (uint32_t)e->len;
		assert_int_equal(e->seq, taken);
	}
	assert_int_equal(taken, 100);
}

/* A message that stays with its sender has a number until it was fetched. */
static void test_operation(void **state)
{
	struct joined *j = *state;
	const struct wf_trace_event *put, *reply, *end;
	uint64_t from_at = 0, to_at = 0;

	for (uint64_t i = 0; i < 3; i++) {
		exchange(j, 40000, i + 1);
		put = next(&j->from_core, &from_at, WF_TRACE_PUT);
		end = next(&j->from_core, &from_at, WF_TRACE_END);
		reply = next(&j->to_core, &to_at, WF_TRACE_REPLY);
		assert_non_null(put);
		assert_non_null(end);
		assert_non_null(reply);
		assert_int_equal(end->seq, put->len >> WF_TRACE_LEN_BITS);
		assert_int_equal(reply->seq, end->seq);
	}
}

static void test_off(void **state)
{
	struct joined *j = *state;
	uint64_t from, to;

	exchange(j, 8, 1);
	turn(&j->from_core, false);
	turn(&j->to_core, false);
	assert_ptr_equal(j->out->bell_wanted,
			 &j->out->region.header->bell_wanted);
	from = j->from_core.trace.written;
	to = j->to_core.trace.written;
	exchange(j, 8, 2);
	exchange(j, 40000, 3);
	assert_int_equal(j->from_core.trace.written, from);
	assert_int_equal(j->to_core.trace.written, to);
	/* Events of the time between are not recorded afterwards. */
	turn(&j->to_core, true);
	exchange(j, 8, 4);
	assert_int_equal(next(&j->to_core, &to, WF_TRACE_TAKE)->len, 1);
}

/* Bug: a message that came through a ring that was not watched was recorded
 * late. */
static void test_unwatched(void **state)
{
	struct crowd *c = crowd_open(CROWD, JOINED_SLOTS_LOG2);
	const struct wf_trace_event *e;
	uint64_t at = 0, value = 1;

	(void)state;
	turn(&c->j->to_core, true);
	assert_false(c->ins[CROWD - 1]->watched);
	assert_true(wf_shm_put(c->outs[CROWD - 1], WF_SHM_SLOT_TAGGED, 1, 0,
			       &value, sizeof(value)));
	wf_core_progress(&c->j->to_core);
	e = next(&c->j->to_core, &at, WF_TRACE_TAKE);
	assert_non_null(e);
	assert_true(c->ins[CROWD - 1]->traced);
	assert_int_equal(e->channel, c->ins[CROWD - 1]->trace_channel);
	assert_int_equal(e->len, 1);
	crowd_close(c);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_joined, close_joined)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_kinds),
		TEST(test_numbers),
		TEST(test_operation),
		TEST(test_off),
		cmocka_unit_test(test_unwatched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
