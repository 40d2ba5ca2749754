/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of waits: which receives and messages are in them, since when, and
 * that a wait keeps its time for as long as it lasts.
 */
#include "core/report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/core.h"
#include "match/rxq.h"

#define PEER 3

struct world {
	struct wf_core core;
	struct wf_compq q;
	struct wf_rxq rxq;
};

static int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	(void)arg;
	if (name != PEER)
		return -ENOENT;
	*addr = (struct wf_addr){
		.in = { .sin_family = AF_INET,
			.sin_port = 0x3930,
			.sin_addr = { 0x0100007f } },
	};
	return 0;
}

static int open_world(void **state)
{
	struct world *w = test_calloc(1, sizeof(*w));
	struct wf_host host = {
		.txq = &w->q,
		.rxq = &w->rxq,
		.names = { .get = get_name },
	};

	get_name(NULL, PEER, &host.addr);
	assert_int_equal(wf_op_compq_init(&w->q, 16, false), 0);
	wf_match_rxq_init(&w->rxq, &w->q);
	wf_core_init(&w->core, false);
	assert_int_equal(wf_core_open(&w->core, &host), 0);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	wf_core_close(&w->core);
	wf_match_rxq_fini(&w->rxq);
	wf_op_compq_fini(&w->q);
	test_free(w);
	return 0;
}

static const struct wf_waits_bank *report(struct world *w, uint64_t now)
{
	const struct wf_waits_page *page = w->core.report.waits.page;

	wf_core_look(&w->core, now);
	return &page->banks[page->current];
}

static struct wf_rx *post(struct world *w, uint64_t tag, uint64_t src)
{
	struct wf_rx *rx = wf_base_pool_get(&w->rxq.pool);

	*rx = (struct wf_rx){
		.tag = tag,
		.src = src,
		.tagged = true,
		.len = 100,
	};
	wf_match_rxq_post(&w->rxq, rx);
	return rx;
}

static void discard(struct wf_ux *ux)
{
	(void)ux;
}

static const struct wf_ux_ops ux_ops = { .discard = discard };

/* A receive is as old as the first report that has it, also when it is the
 * second oldest by then. */
static void test_receives(void **state)
{
	struct world *w = *state;
	const struct wf_waits_bank *bank;
	struct wf_rx *first;

	first = post(w, 7, PEER);
	bank = report(w, 1 * WF_NS_PER_S);
	assert_int_equal(bank->count, 1);
	assert_int_equal(bank->waits[0].kind, WF_WAIT_RECEIVE);
	assert_int_equal(bank->waits[0].since, 1 * WF_NS_PER_S);
	assert_int_equal(bank->waits[0].tag, 7);
	assert_int_equal(bank->waits[0].flags, WF_WAIT_TAGGED);
	assert_string_equal(bank->waits[0].peer, "127.0.0.1:12345");
	post(w, 8, WF_MATCH_ANY);
	bank = report(w, 2 * WF_NS_PER_S);
	assert_int_equal(bank->count, 2);
	assert_int_equal(bank->posted, 2);
	assert_int_equal(bank->waits[0].since, 1 * WF_NS_PER_S);
	assert_int_equal(bank->waits[1].since, 2 * WF_NS_PER_S);
	assert_true(bank->waits[1].flags & WF_WAIT_ANYONE);
	assert_string_equal(bank->waits[1].peer, "");
	wf_match_unpost(&w->rxq.tagged, first);
	wf_base_pool_put(&w->rxq.pool, first);
	bank = report(w, 3 * WF_NS_PER_S);
	assert_int_equal(bank->count, 1);
	assert_int_equal(bank->waits[0].since, 2 * WF_NS_PER_S);
	/* The same memory, but another receive. */
	assert_ptr_equal(post(w, 7, PEER), first);
	bank = report(w, 4 * WF_NS_PER_S);
	assert_int_equal(bank->waits[1].since, 4 * WF_NS_PER_S);
}

static void test_messages(void **state)
{
	struct world *w = *state;
	struct wf_ux ux = { .tag = 9, .src = PEER, .len = 50, .ops = &ux_ops };
	const struct wf_waits_bank *bank;

	wf_match_park(&w->rxq.tagged, &ux);
	report(w, 1 * WF_NS_PER_S);
	bank = report(w, 2 * WF_NS_PER_S);
	assert_int_equal(bank->count, 1);
	assert_int_equal(bank->unexpected, 1);
	assert_int_equal(bank->waits[0].kind, WF_WAIT_MESSAGE);
	assert_int_equal(bank->waits[0].since, 1 * WF_NS_PER_S);
	assert_int_equal(bank->waits[0].tag, 9);
	assert_int_equal(bank->waits[0].len, 50);
	assert_string_equal(bank->waits[0].peer, "127.0.0.1:12345");
	wf_match_unpark(&w->rxq.tagged, &ux);
}

/* Those that take the same messages are counted. */
static void test_alike(void **state)
{
	struct world *w = *state;
	const struct wf_waits_bank *bank;

	for (int i = 0; i < 5; i++)
		post(w, 7, PEER);
	post(w, 7, WF_MATCH_ANY);
	bank = report(w, WF_NS_PER_S);
	assert_int_equal(bank->count, 2);
	assert_int_equal(bank->waits[0].count, 5);
	assert_int_equal(bank->waits[1].count, 1);
}

/* Many receives leave out some, but not messages. */
static void test_many(void **state)
{
	struct world *w = *state;
	struct wf_ux ux = { .tag = 9, .src = PEER, .ops = &ux_ops };
	const struct wf_waits_bank *bank;

	wf_match_park(&w->rxq.tagged, &ux);
	for (uint64_t i = 0; i < 100; i++)
		post(w, 100 + i, PEER);
	bank = report(w, WF_NS_PER_S);
	assert_int_equal(bank->posted, 100);
	assert_int_equal(bank->waits[0].tag, 100);
	assert_int_equal(bank->waits[bank->count - 1].kind, WF_WAIT_MESSAGE);
	assert_true(bank->count < 100);
	wf_match_unpark(&w->rxq.tagged, &ux);
}

static void test_full_queue(void **state)
{
	struct world *w = *state;
	const struct wf_waits_bank *bank;
	const struct wf_comp comp = { 0 };

	bank = report(w, 1 * WF_NS_PER_S);
	assert_int_equal(bank->count, 0);
	while (wf_op_compq_room(&w->q))
		wf_op_compq_push(&w->q, &comp);
	report(w, 2 * WF_NS_PER_S);
	bank = report(w, 3 * WF_NS_PER_S);
	assert_int_equal(bank->count, 1);
	assert_int_equal(bank->waits[0].kind, WF_WAIT_CQ);
	assert_int_equal(bank->waits[0].since, 2 * WF_NS_PER_S);
	assert_int_equal(bank->waits[0].done, wf_op_compq_count(&w->q));
	w->q.tail = w->q.head;
	bank = report(w, 4 * WF_NS_PER_S);
	assert_int_equal(bank->count, 0);
}

/* The time of the last poll is always right; the rest is written now and
 * then. */
static void test_times(void **state)
{
	struct world *w = *state;
	const struct wf_waits_page *page = w->core.report.waits.page;
	const struct wf_waits_bank *bank = report(w, WF_NS_PER_S);

	assert_int_equal(page->polled, WF_NS_PER_S);
	bank = report(w, WF_NS_PER_S + WF_NS_PER_MS);
	assert_int_equal(bank->written, WF_NS_PER_S);
	assert_int_equal(page->polled, WF_NS_PER_S + WF_NS_PER_MS);
	assert_int_equal(page->asleep, 0);
	post(w, 7, PEER);
	assert_true(wf_core_sleep(&w->core));
	assert_int_not_equal(page->asleep, 0);
	assert_int_equal(page->banks[page->current].count, 1);
	wf_core_wake(&w->core);
	assert_int_equal(page->asleep, 0);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_receives), TEST(test_messages),   TEST(test_many),
		TEST(test_alike),    TEST(test_full_queue), TEST(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
