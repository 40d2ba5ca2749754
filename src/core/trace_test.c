/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turning the recording of events on and off: transports are told once, and
 * change their table; nothing is written while it is off.
 */
#include "core/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/core.h"

struct fake {
	int turns;
	bool on;
};

struct world {
	struct wf_core core;
	struct fake fake;
};

static const struct wf_transport usual, traced;

static const struct wf_transport *trace(void *self, bool on)
{
	struct fake *fake = self;

	fake->turns++;
	fake->on = on;
	return on ? &traced : &usual;
}

static uint64_t look(void *self, uint64_t now)
{
	(void)self;
	(void)now;
	return UINT64_MAX;
}

static void nothing(void *self)
{
	(void)self;
}

static bool drain(void *self)
{
	(void)self;
	return false;
}

static bool says_yes(void *self, uint64_t *deadline)
{
	(void)self;
	(void)deadline;
	return true;
}

static bool says_no(void *self, uint64_t *deadline)
{
	(void)self;
	(void)deadline;
	return false;
}

#define TABLE                                                                  \
	{                                                                      \
		.close = nothing, .forked = nothing, .look = look,             \
		.trace = trace, .drain = drain, .doze = says_yes,              \
		.has_work = says_no, .wake = nothing,                          \
	}

static const struct wf_transport usual = TABLE;
static const struct wf_transport traced = TABLE;

static int open_world(void **state)
{
	const struct wf_host host = { .tx_size = 1 };
	struct world *w = test_calloc(1, sizeof(*w));

	wf_core_init(&w->core, false);
	assert_int_equal(wf_core_open(&w->core, &host), 0);
	wf_core_add(&w->core, &usual, &w->fake)->on = true;
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	wf_core_close(&w->core);
	test_free(w);
	return 0;
}

static void want(struct world *w, uint64_t until)
{
	atomic_store(&w->core.trace.front->wanted, until);
}

static void test_on_and_off(void **state)
{
	struct world *w = *state;
	const struct wf_trace_page *page;

	wf_core_look(&w->core, 1000);
	assert_null(w->core.host.trace);
	assert_int_equal(w->fake.turns, 0);
	assert_int_equal(w->core.trace.front->written, 0);
	/* It costs no memory before somebody wants it. */
	assert_null(w->core.trace.page);
	want(w, 5000);
	wf_core_look(&w->core, 2000);
	wf_core_look(&w->core, 3000);
	page = w->core.trace.page;
	assert_non_null(page);
	assert_int_equal(w->fake.turns, 1);
	assert_true(w->fake.on);
	assert_ptr_equal(w->core.ways[0].ops, &traced);
	assert_int_equal(page->front.written, 2);
	assert_int_equal(page->events[0].type, WF_TRACE_POLL);
	/* Whoever wanted it is gone. */
	wf_core_look(&w->core, 5000);
	assert_int_equal(w->fake.turns, 2);
	assert_false(w->fake.on);
	assert_ptr_equal(w->core.ways[0].ops, &usual);
	assert_null(w->core.host.trace);
	wf_core_look(&w->core, 6000);
	assert_int_equal(page->front.written, 2);
	/* And again: events go on behind the others. */
	want(w, 9000);
	wf_core_look(&w->core, 7000);
	assert_int_equal(page->front.written, 3);
}

static void test_sleep(void **state)
{
	struct world *w = *state;
	const struct wf_trace_page *page;

	want(w, UINT64_MAX);
	wf_core_look(&w->core, 1000);
	page = w->core.trace.page;
	assert_true(wf_core_sleep(&w->core));
	wf_core_wake(&w->core);
	assert_int_equal(page->front.written, 3);
	assert_int_equal(page->events[1].type, WF_TRACE_SLEEP);
	assert_int_equal(page->events[2].type, WF_TRACE_WAKE);
	assert_true(page->events[1].ticks <= page->events[2].ticks);
}

/* More than the ring and the table hold. */
static void test_wrap(void **state)
{
	struct world *w = *state;
	struct wf_trace *t = &w->core.trace;
	struct wf_addr addr = { .in = { .sin_family = AF_INET } };

	assert_true(wf_base_trace_start(t));
	for (uint32_t i = 0; i < WF_TRACE_EVENTS + 5; i++)
		wf_base_trace_emit(t, WF_TRACE_PUT, 7, i, 1, 2, 3);
	assert_int_equal(t->page->front.written, WF_TRACE_EVENTS + 5);
	assert_int_equal(t->page->events[4].seq, WF_TRACE_EVENTS + 4);
	assert_int_equal(t->page->events[5].seq, 5);
	for (uint16_t i = 0; i < WF_TRACE_CHANNELS; i++)
		assert_int_equal(wf_base_trace_channel(t, &addr), i);
	assert_int_equal(wf_base_trace_channel(t, &addr), WF_TRACE_NO_CHANNEL);
	assert_int_equal(t->page->front.channel_count, WF_TRACE_CHANNELS);
}

static void test_forked(void **state)
{
	struct world *w = *state;

	want(w, UINT64_MAX);
	wf_core_look(&w->core, 1000);
	assert_non_null(w->core.host.trace);
	wf_core_forked(&w->core);
	assert_null(w->core.host.trace);
	assert_null(w->core.trace.page);
	assert_null(w->core.trace.front);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_on_and_off),
		TEST(test_sleep),
		TEST(test_wrap),
		TEST(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
