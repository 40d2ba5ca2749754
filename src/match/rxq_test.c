/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an endpoint's receive side, with a transport that keeps its
 * unexpected messages in memory.
 */
#include "match/rxq.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include <cmocka.h>

#define RECV_MSG (FI_RECV | FI_MSG)
#define RECV_TAGGED (FI_RECV | FI_TAGGED)

struct fixture {
	struct wf_compq compq;
	struct wf_rxq rxq;
	uint8_t buf[4096];
};

static int discarded;

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || wf_op_compq_init(&f->compq, 16, false))
		return -1;
	wf_match_rxq_init(&f->rxq, &f->compq);
	discarded = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	wf_match_rxq_fini(&f->rxq);
	wf_op_compq_fini(&f->compq);
	free(f);
	return 0;
}

static struct wf_comp pop(struct fixture *f)
{
	struct wf_comp comp;

	assert_int_not_equal(wf_op_compq_count(&f->compq), 0);
	comp = f->compq.ring[f->compq.tail & f->compq.mask];
	f->compq.tail++;
	return comp;
}

static int err_of(const struct wf_comp *comp, size_t *olen)
{
	if (olen)
		*olen = wf_op_comp_olen(comp);
	return wf_op_comp_err(comp);
}

static void expect_nothing(struct fixture *f)
{
	assert_int_equal(wf_op_compq_count(&f->compq), 0);
}

static struct wf_rx *make_rx(struct fixture *f, void *buf, size_t len,
			     void *context)
{
	struct wf_rx *rx = wf_base_pool_get(&f->rxq.pool);

	assert_non_null(rx);
	*rx = (struct wf_rx){
		.src = WF_MATCH_ANY,
		.context = context,
		.flags = RECV_MSG,
		.len = len,
		.iov_count = 1,
		.wants_comp = true,
		.iov[0] = { buf, len },
	};
	return rx;
}

static void post(struct fixture *f, void *buf, size_t len, void *context)
{
	wf_match_rxq_post(&f->rxq, make_rx(f, buf, len, context));
}

static void post_multi(struct fixture *f, void *buf, size_t len, void *context)
{
	struct wf_rx *rx = make_rx(f, buf, len, context);

	rx->multi = true;
	wf_match_rxq_post(&f->rxq, rx);
}

/* -- a transport ----------------------------------------------------------- */

struct kept {
	struct wf_ux ux;
	uint8_t byte; /* all of its payload */
};

static struct wf_envelope plain(size_t len)
{
	return (struct wf_envelope){
		.tag = 0,
		.data = 0xd0,
		.src = 7,
		.flags = FI_REMOTE_CQ_DATA,
		.len = len,
	};
}

static void fill(const struct wf_rx *rx, uint8_t byte, size_t len)
{
	memset(rx->iov[0].iov_base, byte, len < rx->len ? len : rx->len);
}

static void deliver(struct wf_ux *ux, struct wf_rx *rx)
{
	struct kept *kept = wf_container_of(ux, struct kept, ux);
	struct wf_envelope env = plain(ux->len);

	fill(rx, kept->byte, ux->len);
	wf_match_rxq_done(ux->rxq, rx, &env);
	free(kept);
}

static void discard(struct wf_ux *ux)
{
	discarded++;
	free(wf_container_of(ux, struct kept, ux));
}

static const struct wf_ux_ops kept_ops = {
	.deliver = deliver,
	.discard = discard,
};

/* A message of @len times @byte, into its receive or kept. */
static void arrive(struct fixture *f, uint8_t byte, size_t len)
{
	struct wf_envelope env = plain(len);
	struct wf_rx *rx = wf_match_rxq_take(&f->rxq, false, 0, env.src, len);
	struct kept *kept;

	if (rx) {
		fill(rx, byte, len);
		wf_match_rxq_done(&f->rxq, rx, &env);
		return;
	}
	kept = malloc(sizeof(*kept));
	assert_non_null(kept);
	*kept = (struct kept){
		.ux = {
			.ops = &kept_ops,
			.rxq = &f->rxq,
			.compq = f->rxq.compq,
			.data = env.data,
			.src = env.src,
			.flags = env.flags,
			.len = len,
		},
		.byte = byte,
	};
	wf_match_park(&f->rxq.msg, &kept->ux);
}

/* -- plain receives -------------------------------------------------------- */

static void test_posted_first(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;

	post(f, f->buf, 100, &comp);
	expect_nothing(f);
	arrive(f, 0xaa, 10);
	comp = pop(f);
	assert_ptr_equal(comp.context, &comp);
	assert_int_equal(comp.flags, RECV_MSG | FI_REMOTE_CQ_DATA);
	assert_int_equal(comp.len, 10);
	assert_ptr_equal(comp.buf, f->buf);
	assert_int_equal(comp.data, 0xd0);
	assert_int_equal(comp.src, 7);
	assert_int_equal(comp.failure, 0);
	assert_int_equal(f->buf[9], 0xaa);
	assert_int_equal(f->buf[10], 0);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

static void test_unexpected_first(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;

	arrive(f, 1, 10);
	arrive(f, 2, 20);
	expect_nothing(f);
	post(f, f->buf, 100, f);
	comp = pop(f);
	assert_int_equal(comp.len, 10);
	assert_int_equal(f->buf[0], 1);
	post(f, f->buf, 100, f);
	comp = pop(f);
	assert_int_equal(comp.len, 20);
	assert_int_equal(f->buf[0], 2);
	post(f, f->buf, 100, f);
	expect_nothing(f);
}

/* Tagged and plain messages never meet, even with tag 0. */
static void test_kinds_are_apart(void **state)
{
	struct fixture *f = *state;
	struct wf_rx *rx = make_rx(f, f->buf, 100, f);

	rx->tagged = true;
	rx->ignore = ~0ull;
	rx->flags = RECV_TAGGED;
	wf_match_rxq_post(&f->rxq, rx);
	arrive(f, 1, 10);
	expect_nothing(f);
	assert_int_equal(f->rxq.msg.unexpected, 1);
	assert_ptr_equal(wf_match_rxq_take(&f->rxq, true, 0, 7, 1), rx);
	wf_base_pool_put(&f->rxq.pool, rx);
}

static void test_truncation(void **state)
{
	static const struct {
		size_t sent, room;
	} cases[] = { { 11, 10 }, { 4000, 1 }, { 5, 0 } };
	struct fixture *f = *state;
	struct wf_comp comp;
	size_t olen;

	for (int late = 0; late < 2; late++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			memset(f->buf, 0, sizeof(f->buf));
			if (late)
				arrive(f, 9, cases[i].sent);
			post(f, f->buf, cases[i].room, f);
			if (!late)
				arrive(f, 9, cases[i].sent);
			comp = pop(f);
			assert_int_equal(comp.len, cases[i].room);
			assert_int_equal(err_of(&comp, &olen), FI_ETRUNC);
			assert_int_equal(olen, cases[i].sent - cases[i].room);
			assert_int_equal(f->buf[cases[i].room], 0);
			expect_nothing(f);
		}
	}
	assert_int_equal(f->rxq.pool.in_use, 0);
}

static void test_selective(void **state)
{
	struct fixture *f = *state;
	struct wf_rx *rx = make_rx(f, f->buf, 100, f);
	struct wf_comp comp;

	rx->wants_comp = false;
	wf_match_rxq_post(&f->rxq, rx);
	arrive(f, 1, 10);
	expect_nothing(f);
	assert_int_equal(f->buf[9], 1);
	/* A failure is told all the same. */
	rx = make_rx(f, f->buf, 5, f);
	rx->wants_comp = false;
	wf_match_rxq_post(&f->rxq, rx);
	arrive(f, 1, 10);
	comp = pop(f);
	assert_int_equal(err_of(&comp, NULL), FI_ETRUNC);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

static void test_fail(void **state)
{
	struct fixture *f = *state;
	struct wf_envelope env = plain(50);
	struct wf_comp comp;

	post(f, f->buf, 100, f);
	wf_match_rxq_fail(&f->rxq, wf_match_rxq_take(&f->rxq, false, 0, 7, 50),
			  &env, FI_ECONNRESET);
	comp = pop(f);
	assert_ptr_equal(comp.context, f);
	assert_int_equal(comp.len, 0);
	assert_int_equal(comp.src, 7);
	assert_int_equal(err_of(&comp, NULL), FI_ECONNRESET);
}

/* -- multi-receive --------------------------------------------------------- */

static void test_multi_is_cut(void **state)
{
	static const size_t lens[] = { 100, 0, 1, 300, 500 };
	struct fixture *f = *state;
	uint8_t *at = f->buf;
	struct wf_comp comp;

	f->rxq.min_multi = 128;
	post_multi(f, f->buf, 1024, f);
	for (size_t i = 0; i < 5; i++) {
		arrive(f, (uint8_t)(i + 1), lens[i]);
		comp = pop(f);
		assert_ptr_equal(comp.context, f);
		assert_ptr_equal(comp.buf, at);
		assert_int_equal(comp.len, lens[i]);
		/* 123 bytes are left after the last: it gives the buffer
		 * back. */
		assert_int_equal(comp.flags & FI_MULTI_RECV,
				 i == 4 ? FI_MULTI_RECV : 0);
		at += lens[i];
	}
	assert_int_equal(f->buf[99], 1);
	assert_int_equal(f->buf[100], 3);
	assert_int_equal(f->buf[101], 4);
	assert_int_equal(f->buf[900], 5);
	assert_int_equal(f->buf[901], 0);
	arrive(f, 6, 1);
	expect_nothing(f);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

/* Bug of libfabric's shm: unexpected messages in a multi-receive buffer were
 * reported at the wrong offset. */
static void test_multi_takes_unexpected(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;

	f->rxq.min_multi = 64;
	arrive(f, 1, 40);
	arrive(f, 2, 60);
	post_multi(f, f->buf, 400, f);
	arrive(f, 3, 200);
	for (int i = 0; i < 3; i++) {
		static const size_t at[] = { 0, 40, 100 };

		comp = pop(f);
		assert_ptr_equal(comp.buf, f->buf + at[i]);
		assert_int_equal(comp.flags & FI_MULTI_RECV, 0);
		assert_int_equal(f->buf[at[i]], i + 1);
	}
	arrive(f, 4, 50);
	comp = pop(f);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

/* The buffer is used up by what waits; the rest goes on waiting. */
static void test_multi_used_up_at_once(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;

	f->rxq.min_multi = 64;
	for (uint8_t i = 0; i < 5; i++)
		arrive(f, i, 50);
	post_multi(f, f->buf, 150, f);
	pop(f);
	comp = pop(f);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	expect_nothing(f);
	assert_int_equal(f->rxq.msg.unexpected, 3);
	post_multi(f, f->buf, 150, f);
	comp = pop(f);
	assert_ptr_equal(comp.buf, f->buf);
	assert_int_equal(f->buf[0], 2);
}

static void test_multi_truncates(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;
	size_t olen;

	f->rxq.min_multi = 10;
	post_multi(f, f->buf, 100, f);
	arrive(f, 1, 130);
	comp = pop(f);
	assert_int_equal(comp.len, 100);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	assert_int_equal(err_of(&comp, &olen), FI_ETRUNC);
	assert_int_equal(olen, 30);
	assert_int_equal(f->buf[100], 0);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

/* Pieces may finish in any order; the last to finish gives the buffer back. */
static void test_multi_last_completion_releases(void **state)
{
	struct fixture *f = *state;
	struct wf_envelope env = plain(60);
	struct wf_rx *piece[2];
	struct wf_comp comp;

	f->rxq.min_multi = 64;
	post_multi(f, f->buf, 120, f);
	piece[0] = wf_match_rxq_take(&f->rxq, false, 0, 7, 60);
	assert_null(wf_match_rxq_take(&f->rxq, false, 0, 7, 1));
	wf_match_rxq_done(&f->rxq, piece[0], &env);
	comp = pop(f);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);

	f->rxq.min_multi = 60;
	post_multi(f, f->buf, 120, f);
	piece[0] = wf_match_rxq_take(&f->rxq, false, 0, 7, 60);
	piece[1] = wf_match_rxq_take(&f->rxq, false, 0, 7, 60);
	wf_match_rxq_done(&f->rxq, piece[1], &env);
	comp = pop(f);
	assert_ptr_equal(comp.buf, f->buf + 60);
	assert_int_equal(comp.flags & FI_MULTI_RECV, 0);
	wf_match_rxq_fail(&f->rxq, piece[0], &env, FI_EIO);
	comp = pop(f);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	assert_int_equal(err_of(&comp, NULL), FI_EIO);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

/* Without completions for successes the release is still told. */
static void test_multi_selective(void **state)
{
	struct fixture *f = *state;
	struct wf_rx *rx = make_rx(f, f->buf, 100, f);
	struct wf_comp comp;

	rx->multi = true;
	rx->wants_comp = false;
	wf_match_rxq_post(&f->rxq, rx);
	arrive(f, 1, 20);
	expect_nothing(f);
	arrive(f, 1, 20);
	comp = pop(f);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
}

/* -- cancelling ------------------------------------------------------------ */

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct wf_comp comp;
	int context[2];

	assert_int_equal(wf_match_rxq_cancel(&f->rxq, f), -ENOENT);
	post(f, f->buf, 100, &context[0]);
	post(f, f->buf, 100, &context[1]);
	assert_int_equal(wf_match_rxq_cancel(&f->rxq, &context[0]), 0);
	comp = pop(f);
	assert_ptr_equal(comp.context, &context[0]);
	assert_int_equal(comp.len, 0);
	assert_int_equal(err_of(&comp, NULL), FI_ECANCELED);
	assert_int_equal(wf_match_rxq_cancel(&f->rxq, &context[0]), -ENOENT);
	arrive(f, 1, 10);
	comp = pop(f);
	assert_ptr_equal(comp.context, &context[1]);
	assert_int_equal(wf_match_rxq_cancel(&f->rxq, &context[1]), -ENOENT);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

static void test_cancel_multi_with_pieces(void **state)
{
	struct fixture *f = *state;
	struct wf_envelope env = plain(10);
	struct wf_rx *piece;
	struct wf_comp comp;

	post_multi(f, f->buf, 1000, f);
	piece = wf_match_rxq_take(&f->rxq, false, 0, 7, 10);
	assert_int_equal(wf_match_rxq_cancel(&f->rxq, f), 0);
	comp = pop(f);
	assert_int_equal(err_of(&comp, NULL), FI_ECANCELED);
	/* Nothing new goes there, but the piece is still being filled. */
	assert_null(wf_match_rxq_take(&f->rxq, false, 0, 7, 10));
	assert_int_equal(f->rxq.pool.in_use, 2);
	wf_match_rxq_done(&f->rxq, piece, &env);
	comp = pop(f);
	assert_ptr_equal(comp.buf, f->buf);
	assert_int_equal(comp.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	assert_int_equal(f->rxq.pool.in_use, 0);
}

/* -- closing --------------------------------------------------------------- */

static void test_close_discards(void **state)
{
	struct fixture *f = *state;

	arrive(f, 1, 10);
	arrive(f, 2, 10);
	wf_match_rxq_fini(&f->rxq);
	assert_int_equal(discarded, 2);
	wf_match_rxq_init(&f->rxq, &f->compq);
	post(f, f->buf, 10, f);
	wf_match_rxq_fini(&f->rxq);
	expect_nothing(f);
	wf_match_rxq_init(&f->rxq, &f->compq);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_posted_first),
		TEST(test_unexpected_first),
		TEST(test_kinds_are_apart),
		TEST(test_truncation),
		TEST(test_selective),
		TEST(test_fail),
		TEST(test_multi_is_cut),
		TEST(test_multi_takes_unexpected),
		TEST(test_multi_used_up_at_once),
		TEST(test_multi_truncates),
		TEST(test_multi_last_completion_releases),
		TEST(test_multi_selective),
		TEST(test_cancel),
		TEST(test_cancel_multi_with_pieces),
		TEST(test_close_discards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
