/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check where chains of waiting end, and which pages are refused.
 */
#include "tools/why/graph.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

#define NOW (1000 * WF_NS_PER_S)
#define MOST 600

struct host {
	struct wf_tools_waiters waiters;
	struct wf_tools_graph graph;
};

/* Process i has pid 100 + i and the address "127.0.0.1:<i>". */
static void open_host(struct host *h, size_t count)
{
	h->waiters = (struct wf_tools_waiters){
		.all = calloc(count, sizeof(*h->waiters.all)),
		.count = count,
		.now = NOW,
	};
	for (size_t i = 0; i < count; i++) {
		struct wf_tools_waiter *w = &h->waiters.all[i];

		w->process = (struct wf_tools_process){
			.pid = (pid_t)(100 + i),
			.state = 'R',
		};
		w->waits.polled = NOW;
		w->job.rank = -1;
		snprintf(w->waits.name, sizeof(w->waits.name), "127.0.0.1:%zu",
			 i);
	}
}

static void close_host(struct host *h)
{
	wf_tools_graph_free(&h->graph);
	free(h->waiters.all);
}

static struct wf_wait *add_wait(struct host *h, size_t from,
				enum wf_wait_kind kind, enum wf_wait_step step)
{
	struct wf_waits_bank *bank = &h->waiters.all[from].waits.bank;
	struct wf_wait *wait = &bank->waits[bank->count++];

	wait->kind = (uint8_t)kind;
	wait->step = (uint8_t)step;
	wait->since = NOW - 5 * WF_NS_PER_S;
	return wait;
}

static void receive_from(struct host *h, size_t from, size_t to)
{
	struct wf_wait *wait =
		add_wait(h, from, WF_WAIT_RECEIVE, WF_WAIT_FOR_MESSAGE);

	snprintf(wait->peer, sizeof(wait->peer), "127.0.0.1:%zu", to);
}

static void make(struct host *h)
{
	assert_int_equal(
		wf_tools_graph_make(&h->graph, &h->waiters, WF_NS_PER_S), 0);
}

static pid_t blamed(const struct host *h, size_t i)
{
	return h->graph.culprits[i].node->first->process.pid;
}

static void test_chain(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 4);
	receive_from(&h, 0, 1);
	receive_from(&h, 1, 2);
	receive_from(&h, 2, 3);
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_NOT_SENT);
	assert_int_equal(blamed(&h, 0), 103);
	assert_int_equal(h.graph.culprits[0].behind, 3);
	close_host(&h);
}

/* Whoever waits for a member of a circle is not in it. */
static void test_circle(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 5);
	receive_from(&h, 0, 1);
	receive_from(&h, 1, 2);
	receive_from(&h, 2, 3);
	receive_from(&h, 3, 1);
	receive_from(&h, 4, 3);
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_CYCLE);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(h.graph.nodes[i].group ==
					 h.graph.culprits[0].group,
				 i >= 1 && i <= 3);
	close_host(&h);
}

/* A circle of which one waits for somebody else as well is not the end. */
static void test_circle_leads_on(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 3);
	receive_from(&h, 0, 1);
	receive_from(&h, 1, 0);
	receive_from(&h, 1, 2);
	h.waiters.all[2].process.state = 'T';
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_STOPPED);
	assert_int_equal(blamed(&h, 0), 102);
	close_host(&h);
}

/* The waits of a stopped process do not matter. */
static void test_stopped_in_circle(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 3);
	receive_from(&h, 0, 1);
	receive_from(&h, 1, 2);
	receive_from(&h, 2, 0);
	h.waiters.all[1].process.state = 'T';
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_STOPPED);
	assert_int_equal(h.graph.culprits[0].behind, 2);
	close_host(&h);
}

static void test_self(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 1);
	receive_from(&h, 0, 0);
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_CYCLE);
	close_host(&h);
}

static void test_progress(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 3);
	receive_from(&h, 0, 1);
	receive_from(&h, 1, 2);
	h.waiters.all[1].waits.polled = NOW - 3 * WF_NS_PER_S;
	make(&h);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_NO_PROGRESS);
	assert_int_equal(blamed(&h, 0), 101);
	wf_tools_graph_free(&h.graph);
	/* Who sleeps is woken by a message. */
	h.waiters.all[1].waits.asleep = NOW - 3 * WF_NS_PER_S;
	make(&h);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_NOT_SENT);
	assert_int_equal(blamed(&h, 0), 102);
	close_host(&h);
}

static void test_young(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 2);
	receive_from(&h, 0, 1);
	h.waiters.all[0].waits.bank.waits[0].since = NOW - WF_NS_PER_MS;
	make(&h);
	assert_int_equal(h.graph.culprit_count, 0);
	assert_false(h.graph.nodes[0].waits);
	close_host(&h);
}

static void test_elsewhere(void **state)
{
	struct host h;
	struct wf_wait *wait;

	(void)state;
	open_host(&h, 1);
	wait = add_wait(&h, 0, WF_WAIT_SEND, WF_WAIT_FOR_LISTENER);
	strcpy(wait->peer, "192.0.2.1:9");
	wait = add_wait(&h, 0, WF_WAIT_SEND, WF_WAIT_FOR_LISTENER);
	strcpy(wait->peer, "127.0.0.1:9");
	make(&h);
	assert_int_equal(h.graph.culprit_count, 2);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_ELSEWHERE);
	assert_int_equal(h.graph.culprits[1].reason, WF_TOOLS_NOBODY);
	assert_int_equal(h.graph.culprits[1].behind, 1);
	close_host(&h);
}

/* The same address in another network namespace is another endpoint. */
static void test_namespaces(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 3);
	receive_from(&h, 0, 1);
	strcpy(h.waiters.all[2].waits.name, "127.0.0.1:1");
	h.waiters.all[0].net = 7;
	h.waiters.all[1].net = 8;
	h.waiters.all[2].net = 7;
	make(&h);
	assert_int_equal(blamed(&h, 0), 102);
	wf_tools_graph_free(&h.graph);
	/* The address states where it is. */
	h.waiters.all[0].waits.bank.waits[0].place = 5;
	h.waiters.all[1].waits.place = 5;
	h.waiters.all[2].waits.place = 6;
	make(&h);
	assert_int_equal(blamed(&h, 0), 101);
	close_host(&h);
}

/* A job of many that all wait for one, and a long chain. */
static void test_many(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, MOST);
	for (size_t i = 1; i < MOST; i++) {
		receive_from(&h, i, 0);
		receive_from(&h, i, i - 1);
	}
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(blamed(&h, 0), 100);
	assert_int_equal(h.graph.culprits[0].behind, MOST - 1);
	close_host(&h);
}

static void receive_from_anyone(struct host *h, size_t from)
{
	add_wait(h, from, WF_WAIT_RECEIVE, WF_WAIT_FOR_MESSAGE)->flags =
		WF_WAIT_ANYONE;
}

/* The memory of channels: 7 is that of processes 0 and 2, 9 of 0 and 1. */
static void open_channels(struct host *h)
{
	static ino_t channels[] = { 7, 9, 9, 7 };

	h->waiters.channels = channels;
	h->waiters.channel_count = 4;
	h->waiters.all[0].channel_count = 2;
	h->waiters.all[1].channels = 2;
	h->waiters.all[1].channel_count = 1;
	h->waiters.all[2].channels = 3;
	h->waiters.all[2].channel_count = 1;
}

static void expect_idle(const struct host *h)
{
	assert_int_equal(h->graph.culprit_count, 0);
	assert_int_equal(h->graph.idle_count, 1);
	assert_int_equal(h->graph.idle[0].reason, WF_TOOLS_ANYONE);
	assert_int_equal(h->graph.idle[0].node->first->process.pid, 100);
}

static void expect_suspect(const struct host *h, size_t i, pid_t pid,
			   enum wf_tools_reason reason, uint32_t behind)
{
	assert_true(h->graph.culprit_count > i);
	assert_int_equal(h->graph.idle_count, 0);
	assert_int_equal(h->graph.culprits[i].reason, reason);
	assert_int_equal(blamed(h, i), pid);
	assert_int_equal(h->graph.culprits[i].behind, behind);
	assert_true(h->graph.culprits[i].suspect);
}

/* Who waits for anyone waits for a stopped process that it has a channel to, and
 * for no other one. */
static void test_anyone_channel(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 4);
	receive_from_anyone(&h, 0);
	open_channels(&h);
	make(&h);
	expect_idle(&h);
	wf_tools_graph_free(&h.graph);
	/* It has channels, but not to this one. */
	h.waiters.all[3].process.state = 'T';
	make(&h);
	expect_idle(&h);
	wf_tools_graph_free(&h.graph);
	/* First the one that is stopped. */
	h.waiters.all[1].waits.polled = NOW - 3 * WF_NS_PER_S;
	h.waiters.all[2].process.state = 'T';
	make(&h);
	assert_int_equal(h.graph.culprit_count, 2);
	expect_suspect(&h, 0, 102, WF_TOOLS_STOPPED, 1);
	expect_suspect(&h, 1, 101, WF_TOOLS_NO_PROGRESS, 1);
	assert_int_equal(h.graph.culprits[0].edge->bond, WF_TOOLS_CHANNEL);
	assert_string_equal(h.graph.culprits[0].address, "127.0.0.1:2");
	close_host(&h);
}

/* Chains go on over it, and a wait that names a process is no guess. */
static void test_anyone_chain(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 4);
	receive_from_anyone(&h, 0);
	receive_from(&h, 3, 0);
	open_channels(&h);
	h.waiters.all[2].process.state = 'T';
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	expect_suspect(&h, 0, 102, WF_TOOLS_STOPPED, 2);
	wf_tools_graph_free(&h.graph);
	receive_from(&h, 1, 2);
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].behind, 3);
	assert_false(h.graph.culprits[0].suspect);
	close_host(&h);
}

/* Without a channel: processes of the same job, and stopped ones of the user. */
static void test_anyone_packets(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 2);
	receive_from_anyone(&h, 0);
	h.waiters.all[1].process.state = 'T';
	make(&h);
	expect_suspect(&h, 0, 101, WF_TOOLS_STOPPED, 1);
	assert_int_equal(h.graph.culprits[0].edge->bond, WF_TOOLS_USER);
	wf_tools_graph_free(&h.graph);
	h.waiters.all[1].process.uid = 5;
	make(&h);
	expect_idle(&h);
	wf_tools_graph_free(&h.graph);
	/* It waited for the other one when it was stopped. */
	receive_from(&h, 1, 0);
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	expect_suspect(&h, 0, 101, WF_TOOLS_STOPPED, 1);
	assert_int_equal(h.graph.culprits[0].edge->bond, WF_TOOLS_NAMES);
	wf_tools_graph_free(&h.graph);
	h.waiters.all[1].waits.bank.count = 0;
	h.waiters.all[1].process.uid = 0;
	strcpy(h.waiters.all[1].job.id, "2");
	make(&h);
	expect_idle(&h);
	wf_tools_graph_free(&h.graph);
	strcpy(h.waiters.all[0].job.id, "2");
	h.waiters.all[1].process.state = 'R';
	h.waiters.all[1].waits.polled = NOW - 3 * WF_NS_PER_S;
	make(&h);
	expect_suspect(&h, 0, 101, WF_TOOLS_NO_PROGRESS, 1);
	assert_int_equal(h.graph.culprits[0].edge->bond, WF_TOOLS_JOB);
	wf_tools_graph_free(&h.graph);
	/* A program that rests, and has nothing to do with it. */
	h.waiters.all[0].job.id[0] = h.waiters.all[1].job.id[0] = 0;
	make(&h);
	expect_idle(&h);
	close_host(&h);
}

/* It also waits for a process that it names: that one is to blame. */
static void test_anyone_and_named(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, 3);
	receive_from_anyone(&h, 0);
	receive_from(&h, 0, 1);
	h.waiters.all[2].process.state = 'T';
	make(&h);
	assert_int_equal(h.graph.culprit_count, 1);
	assert_int_equal(h.graph.culprits[0].reason, WF_TOOLS_NOT_SENT);
	assert_int_equal(blamed(&h, 0), 101);
	close_host(&h);
}

/* Many that wait for anyone, and many that give no sign: memory for edges. */
static void test_anyone_many(void **state)
{
	struct host h;

	(void)state;
	open_host(&h, MOST);
	for (size_t i = 0; i < MOST; i++) {
		strcpy(h.waiters.all[i].job.id, "2");
		if (i % 2)
			receive_from_anyone(&h, i);
		else
			h.waiters.all[i].waits.polled = 0;
	}
	h.waiters.all[MOST - 2].process.state = 'T';
	make(&h);
	expect_suspect(&h, 0, 100 + MOST - 2, WF_TOOLS_STOPPED, MOST / 2);
	close_host(&h);
}

static struct wf_waits_page good_page(void)
{
	struct wf_waits_page page = {
		.magic = WF_WAITS_MAGIC,
		.layout = WF_WAITS_LAYOUT,
		.name = "127.0.0.1:1\x1b[2J",
	};

	page.banks[0].count = 1;
	page.banks[0].waits[0].kind = WF_WAIT_SEND;
	return page;
}

static void test_pages(void **state)
{
	static struct wf_tools_waits waits;
	static struct wf_waits_page page;
	const char *why = NULL;

	(void)state;
	page = good_page();
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), 0);
	/* No control characters. */
	assert_string_equal(waits.name, "127.0.0.1:1?[2J");
	page.magic++;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	page.layout++;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	page.current = 2;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	page.banks[0].count = WF_WAITS_MAX + 1;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	page.banks[0].waits[0].kind = WF_WAIT_KIND_COUNT;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	page.banks[0].waits[0].step = WF_WAIT_STEP_COUNT;
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	memset(page.banks[0].waits[0].peer, 'x',
	       sizeof(page.banks[0].waits[0].peer));
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
	page = good_page();
	memset(page.name, 'x', sizeof(page.name));
	assert_int_equal(wf_tools_waits_read(&waits, &page, &why), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_circle_leads_on),
		cmocka_unit_test(test_stopped_in_circle),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_young),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_anyone_channel),
		cmocka_unit_test(test_anyone_chain),
		cmocka_unit_test(test_anyone_packets),
		cmocka_unit_test(test_anyone_and_named),
		cmocka_unit_test(test_anyone_many),
		cmocka_unit_test(test_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
