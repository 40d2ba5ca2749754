/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_cq_sread() with each wait object: time-outs, fi_cq_signal() from another
 * thread, several endpoints on one CQ, a sender that connects meanwhile, errors
 * and the death of a peer. Each of these ends a call without a time-out.
 */
#include "wait_util.h"

#include <pthread.h>

#define LARGE 1000000
#define LATE_MS 60000 /* the machine may be busy */

static const enum fi_wait_obj objects[] = { FI_WAIT_UNSPEC, FI_WAIT_FD,
					    FI_WAIT_YIELD };

static struct weft_test_opts opts_with(enum fi_wait_obj obj)
{
	return (struct weft_test_opts){
		.caps = RMA_CAPS,
		.wait_obj = obj,
		.threading = FI_THREAD_SAFE,
		.one_cq = true,
	};
}

/* -- time-outs and signals ------------------------------------------------- */

static void test_timeouts(struct weft_test *t)
{
	static const int times[] = { 0, 1, 20, 100 };
	struct fi_cq_tagged_entry entry;

	for (size_t i = 0; i < COUNT_OF(times); i++) {
		uint64_t begin = weft_test_ms(), waited;

		CHECK_EQ(fi_cq_sread(t->txcq, &entry, 1, NULL, times[i]),
			 -FI_EAGAIN);
		waited = weft_test_ms() - begin;
		CHECK(waited + 1 >= (uint64_t)times[i]);
		CHECK(waited < (uint64_t)times[i] + LATE_MS);
	}
}

static void *signal_soon(void *arg)
{
	wait_nap(20);
	CHECK_OK(fi_cq_signal(arg));
	return NULL;
}

static void test_signal(struct weft_test *t)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		uint64_t begin = weft_test_ms();

		CHECK_EQ(pthread_create(&thread, NULL, signal_soon, t->txcq),
			 0);
		CHECK_EQ(fi_cq_sread(t->txcq, &entry, 1, NULL,
				     i % 2 ? -1 : 100000),
			 -FI_EAGAIN);
		CHECK(weft_test_ms() - begin < 60000);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
}

/* -- what a peer does ------------------------------------------------------ */

static void sread_ok(struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry entry;

	CHECK_EQ(fi_cq_sread(cq, &entry, 1, NULL, -1), 1);
	CHECK(entry.op_context == context);
}

/* Connects, sends to both endpoints, receives a large message, and dies. */
static void peer(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = opts_with(*(enum fi_wait_obj *)arg);
	uint8_t names[2][WEFT_TEST_NAME_MAX], *buf = msg_alloc(LARGE);
	struct fi_context context;
	fi_addr_t to[2];
	struct weft_test t;
	char mark;

	wait_nap(20);
	weft_test_open(&t, &opts);
	weft_test_put(line, t.name, sizeof(t.name));
	CHECK(weft_test_get(line, names, sizeof(names)));
	for (int i = 0; i < 6; i++) {
		size_t len = i % 3 ? 100 : LARGE;

		if (i < 2)
			to[i] = weft_test_insert(&t, names[i]);
		CHECK(weft_test_get_driving(line, &mark, 1));
		wait_nap(10);
		weft_test_fill(buf, len, (uint64_t)i);
		CHECK_OK(weft_test_tsend(&t, buf, len, to[i % 2], 1, &context));
		sread_ok(t.txcq, &context);
	}
	CHECK(weft_test_get_driving(line, &mark, 1));
	wait_nap(10);
	CHECK_OK(weft_test_trecv(&t, buf, LARGE, 2, 0, &context));
	sread_ok(t.txcq, &context);
	CHECK(weft_test_get_driving(line, &mark, 1));
	wait_nap(20);
	_exit(0);
}

/* Two endpoints on one CQ. */
static void test_peer(enum fi_wait_obj obj)
{
	struct weft_test_opts opts = opts_with(obj);
	uint8_t name[WEFT_TEST_NAME_MAX], *buf = msg_alloc(LARGE);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fi_context contexts[2];
	struct weft_test_line line;
	struct weft_test t[2];
	fi_addr_t to;

	weft_test_open(&t[0], &opts);
	opts.sibling = &t[0];
	opts.same_cqs = true;
	weft_test_open(&t[1], &opts);
	weft_test_fork(&line, peer, &obj);
	CHECK(weft_test_get(&line, name, sizeof(name)));
	to = weft_test_insert(&t[0], name);
	weft_test_put(&line, t[0].name, sizeof(name));
	weft_test_put(&line, t[1].name, sizeof(name));
	for (int i = 0; i < 6; i++) {
		CHECK_OK(weft_test_trecv(&t[i % 2], buf, LARGE, 1, 0,
					 &contexts[i % 2]));
		weft_test_put(&line, "g", 1);
		sread_ok(t[0].rxcq, &contexts[i % 2]);
		CHECK(weft_test_holds(buf, i % 3 ? 100 : LARGE, (uint64_t)i));
	}
	/* Completions of our own sends: the peer receives the first, never the
	 * second. */
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_test_tsend(&t[1], buf, LARGE, to, 2,
					 &contexts[i]));
		weft_test_progress_for(5);
		weft_test_put(&line, "g", 1);
		if (!i)
			sread_ok(t[0].txcq, &contexts[0]);
	}
	CHECK_EQ(fi_cq_sread(t[0].txcq, &entry, 1, NULL, -1), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(t[0].txcq, &err, 0), 1);
	CHECK(err.op_context == &contexts[1]);
	weft_test_join(&line);
	weft_test_close(&t[1]);
	weft_test_close(&t[0]);
	free(buf);
}

int main(void)
{
	/* The machine may be busy. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 0);
	weft_test_begin(60);
	for (size_t i = 0; i < COUNT_OF(objects); i++) {
		struct weft_test_opts opts = opts_with(objects[i]);
		struct weft_test t;

		weft_test_open(&t, &opts);
		test_timeouts(&t);
		test_signal(&t);
		weft_test_close(&t);
		test_peer(objects[i]);
	}
	return 0;
}
